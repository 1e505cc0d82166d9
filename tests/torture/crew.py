"""The processes of a run: who they are, who dies next, and who takes the place of the dead."""

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from backwave_django.pumps.clock import SystemClock
from tests.torture.children import SHOW_STACKS, Child, runpumps
from tests.torture.enqueuers import Enqueuer
from tests.torture.journal import Journal
from tests.torture.loops import Random, Stop, stream
from tests.torture.operators import Operator
from tests.torture.watching import Watcher

GROUPS = ("strict", "weighted", "twin")
#: How pumps end: drained; drained with bodies left behind; no database at their start; or by us.
EXPECTED_CODES = {0, 1, 4, 128 + signal.SIGKILL, 128 + signal.SIGTERM}
#: Far longer than a drain may take: whoever is still there by then hangs.
PATIENCE_SECONDS = 40.0


@dataclass(slots=True)
class Place:
    """One member of the crew: how it begins, and the process that is it now."""

    name: str
    begin: Callable[[int], int | None]
    is_pump: bool = False
    child: Child | None = None
    lives: int = 0
    #: When a stopped process goes on, or a dead one is replaced, on the run's clock.
    due_at: float | None = None
    codes: list[int] = field(default_factory=list)


class Crew:
    """Starts everybody, and replaces who has died until told not to."""

    def __init__(self, *, seed: int, directory: Path, backlog: int, deadly: bool = False) -> None:
        self._seed = seed
        self._directory = directory
        self._backlog = backlog
        self._deadly = deadly
        self._journal = Journal.current()
        self.places: list[Place] = []
        self._gone: list[Place] = []
        self._clock = SystemClock()
        self._pause = threading.Event()

    def _rng(self, name: str, life: int) -> Random:
        """Each life has its own stream: that of another does not change when one dies earlier."""
        return stream(self._seed, f"{name}/{life}")

    def add_pumps(self, count: int, run: Callable[[str], int] = runpumps) -> None:
        """Add processes that run pumps; ``run`` begins one for a group."""
        for number in range(len(self.pumps()), len(self.pumps()) + count):
            group = GROUPS[number % len(GROUPS)]
            begin = partial(_run_pumps, run, group)
            self.places.append(Place(f"pump-{number}-{group}", begin, is_pump=True))

    def add_clients(self, *, enqueuers: int, operators: int) -> None:
        """Add those who enqueue, who operate, and who watch."""
        for number in range(enqueuers):
            name = f"enqueuer-{number}"
            self.places.append(Place(name, partial(self._enqueue, name)))
        for number in range(operators):
            name = f"operator-{number}"
            self.places.append(Place(name, partial(self._operate, name)))
        self.places.append(Place("watcher", self._watch))

    def _enqueue(self, name: str, life: int) -> None:
        rng = self._rng(name, life)
        member = f"{name}.{life}"
        Enqueuer(member, rng, backlog=self._backlog, deadly=self._deadly).run(Stop())

    def _operate(self, name: str, life: int) -> None:
        rng = self._rng(name, life)
        Operator(f"{name}.{life}", rng, backlog=self._backlog).run(Stop())

    def _watch(self, life: int) -> None:
        Watcher(self._rng("watcher", life)).run(Stop())

    def pumps(self) -> list[Place]:
        return [place for place in self.places if place.is_pump]

    def clients(self) -> list[Place]:
        """All but pumps and the watcher."""
        return [place for place in self.places if not place.is_pump and place.name != "watcher"]

    def living(self, places: list[Place]) -> list[Place]:
        """Those that run, and are not stopped."""
        return [place for place in places if place.child and not place.child.stopped]

    def tend(self, *, at: float) -> None:
        """Start who is missing, and wake who has slept long enough."""
        for place in self.places:
            if place.child is not None and place.child.poll() is not None:
                self._ended(place)
                place.due_at = at + 0.2
            if place.due_at is None or place.due_at <= at:
                place.due_at = None
                self._revive(place)

    def _revive(self, place: Place) -> None:
        if place.child is not None:
            if place.child.stopped:
                place.child.signal(signal.SIGCONT)
            return
        life, place.lives = place.lives, place.lives + 1
        begin = partial(place.begin, life)
        place.child = Child(begin, log=self._directory / f"{place.name}.log")

    def _ended(self, place: Place) -> None:
        assert place.child is not None
        code = place.child.wait()
        place.codes.append(code)
        place.child = None
        if code not in EXPECTED_CODES:
            self._broke(place, f"it ended with {code}")

    def _broke(self, place: Place, how: str) -> None:
        kind = "pump" if place.is_pump else "client"
        self._journal.write(f"{kind}.broke", name=place.name, how=how)

    def kill(self, place: Place) -> None:
        """End a process hard."""
        if place.child is not None:
            place.child.kill()
            self._ended(place)

    def stop(self, places: list[Place]) -> None:
        """Ask processes to end, and wait for it."""
        for place in places:
            if place.child is not None:
                place.child.signal(signal.SIGCONT)
                place.child.signal(signal.SIGTERM)
        ends_at = self._clock.mark() + PATIENCE_SECONDS
        for place in places:
            while place.child is not None and place.child.poll() is None:
                if self._clock.mark() > ends_at:
                    self._broke(place, "it does not end")
                    place.child.kill()
                self._pause.wait(0.02)
            if place.child is not None:
                self._ended(place)

    def send_home(self, places: list[Place]) -> None:
        """Ask processes to end for good."""
        self.stop(places)
        self._gone += places
        self.places = [place for place in self.places if place not in places]

    def show_stacks(self) -> None:
        """Let everybody write down what they are doing."""
        for place in self.places:
            if place.child is not None:
                place.child.signal(SHOW_STACKS)

    @property
    def everybody(self) -> list[Place]:
        """All members, those who went home among them."""
        return [*self.places, *self._gone]

    def close(self) -> None:
        """Leave nobody behind."""
        for place in self.places:
            self.kill(place)


def _run_pumps(run: Callable[[str], int], group: str, _life: int) -> int:
    return run(group)
