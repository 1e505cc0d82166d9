"""What is done to the crew and to its database, drawn from the seed."""

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.torture.children import Child
from tests.torture.crew import Crew, Place
from tests.torture.databases import PostgresServer, SqliteFile
from tests.torture.journal import Journal
from tests.torture.loops import Random, choose

LEASE_SECONDS = 2.0
_MERCY = 0.8


class Tormentor:
    """Does one thing after another."""

    def __init__(
        self,
        crew: Crew,
        database: SqliteFile | PostgresServer,
        rng: Random,
        *,
        directory: Path,
    ) -> None:
        self._crew = crew
        self._database = database
        self._rng = rng
        self._directory = directory
        self._journal = Journal.current()
        self._holders: list[Child] = []
        self.counts: dict[str, int] = {}
        self._ways: dict[str, tuple[float, Callable[[float], str | None]]] = {
            "kill a pump": (8, self._kill_pump),
            "stop a pump": (8, self._stop_pump),
            "drain a process": (3, self._drain_process),
            "kill a client": (3, self._kill_client),
            **{
                name.replace("_", " "): (weight, partial(self._to_database, name))
                for name, weight in (
                    *(("hold_locks", 4), ("cut_some", 3), ("cut_all", 2)),
                    *(("restart", 1), ("crash", 1)),
                )
                if name in database.faults()
            },
        }

    def act(self, *, at: float) -> None:
        """Do one thing now, on the run's clock."""
        kind = choose(self._rng, {name: weight for name, (weight, _) in self._ways.items()})
        whom = self._ways[kind][1](at)
        if whom is not None:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self._journal.write("fault", kind=kind, whom=whom)

    def heal(self) -> None:
        """Wait for what holds locks to let go."""
        for holder in self._holders:
            holder.wait()

    def _one_of(self, places: list[Place]) -> Place | None:
        living = self._crew.living(places)
        return self._rng.choice(living) if living else None

    def _kill_pump(self, at: float) -> str | None:
        return self._kill(self._crew.pumps(), at)

    def _kill_client(self, at: float) -> str | None:
        return self._kill(self._crew.clients(), at)

    def _kill(self, places: list[Place], at: float) -> str | None:
        place = self._one_of(places)
        if place is None:
            return None
        self._crew.kill(place)
        place.due_at = at + self._rng.uniform(0, 1.5)
        return place.name

    def _stop_pump(self, at: float) -> str | None:
        place = self._one_of(self._crew.pumps())
        if place is None or place.child is None or len(self._awake()) < 2:
            return None
        place.child.signal(signal.SIGSTOP)
        if self._database.is_stuck() and self._rng.random() < _MERCY:
            # It held the one lock there is: that is an outage for all, and fences nobody.
            place.child.signal(signal.SIGCONT)
            return None
        place.due_at = at + LEASE_SECONDS * self._rng.uniform(0.3, 2.5)
        return place.name

    def _awake(self) -> list[Place]:
        return self._crew.living(self._crew.pumps())

    def _drain_process(self, _at: float) -> str | None:
        place = self._one_of(self._crew.pumps())
        if place is None or place.child is None:
            return None
        place.child.signal(signal.SIGTERM)
        return place.name

    def _to_database(self, name: str, _at: float) -> str:
        act = getattr(self._database, name)
        if name == "hold_locks":
            # A process of its own: whatever holds a lock does not wait here.
            log = self._directory / "holder.log"
            self._holders.append(Child(partial(act, self._rng), log=log))
            self._rng.random()
        else:
            act(self._rng)
        return name
