"""``--processes N``: a parent that keeps N children running."""

from __future__ import annotations

import logging
import signal
from collections import deque
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from backwave_django.pumps.children import Child, end_all
from backwave_django.pumps.shutdown import ABANDONED, DRAINED, HALTED, StopSignals, code_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from backwave_django.pumps.clock import Clock

logger = logging.getLogger("backwave.pump")

MOST_DEATHS: Final = 5
WINDOW_SECONDS: Final = 60.0
_BURIAL_SECONDS: Final = 5.0
#: Ends that a child chose itself: it was told to drain, or had a rule when to stop.
_ORDERLY: Final = frozenset({DRAINED, ABANDONED})


@dataclass(slots=True, eq=False)
class Place:
    """One of the N: the child in it, or when the next one starts."""

    number: int
    child: Child | None = None
    start_at: float | None = 0.0
    deaths: deque[float] = field(default_factory=deque)

    def died(self, *, at: float) -> bool:
        """Note a death; return whether there were too many within a minute."""
        self.deaths.append(at)
        while self.deaths and self.deaths[0] < at - WINDOW_SECONDS:
            self.deaths.popleft()
        # At once after the first, then 1, 2, 4 seconds: what is broken stays broken for a while.
        count = len(self.deaths)
        self.start_at = at + (0 if count == 1 else 2 ** (count - 2))
        return count >= MOST_DEATHS


class Parent:
    """Starts children, starts dead ones anew, passes signals on.

    ``bury`` gets the pid of a child that did not end by itself, on a thread that may take long.
    """

    def __init__(self, *, processes: int, clock: Clock, bury: Callable[[int], object]) -> None:
        self._clock = clock
        self._bury = bury
        self._dead: list[Child] = []
        self._places = [Place(number) for number in range(1, processes + 1)]
        self._news: SimpleQueue[Child | int] = SimpleQueue()
        self._draining = False
        self._codes: list[int] = []

    def run(self, *, ends_process: bool = False) -> int:
        """Run until all children have ended for good; return the exit code.

        With ``ends_process`` no signal is heard after that: the caller ends with this code.
        """
        put = self._news.put
        with StopSignals(first=put, again=put, ends_process=ends_process):
            while True:
                self._start_due()
                if not any(place.child or place.start_at is not None for place in self._places):
                    for child in self._dead:
                        child.join(seconds=_BURIAL_SECONDS)
                    return self._exit_code()
                news = self._next_news()
                if isinstance(news, Child):
                    self._ended(news)
                elif news is not None:
                    if self._draining:
                        end_all(self._living())
                        return code_of(news)
                    self._drain()

    def _start_due(self) -> None:
        for place in self._places:
            if place.start_at is not None and place.start_at <= self._clock.mark():
                place.start_at = None
                place.child = Child(ended=self._over)
                logger.info("process %d has pid %d", place.number, place.child.pid)

    def _over(self, child: Child) -> None:
        """Called on the child's own thread: its place must not wait for its burial."""
        self._news.put(child)
        if child.code not in _ORDERLY:
            self._bury(child.pid)

    def _next_news(self) -> Child | int | None:
        starts = [place.start_at for place in self._places if place.start_at is not None]
        wait = max(0.0, min(starts) - self._clock.mark()) if starts else None
        try:
            return self._news.get(timeout=wait)
        except Empty:
            return None

    def _ended(self, child: Child) -> None:
        place = next(place for place in self._places if place.child is child)
        place.child = None
        code = child.code
        assert code is not None, "an ended child has a code"
        self._dead = [*(each for each in self._dead if each.is_waited_for()), child]
        if code in _ORDERLY or self._draining:
            # Whom the signal met before it could listen had not begun with anything.
            self._codes.append(DRAINED if code == -signal.SIGTERM else code)
            return
        logger.error("process %d (pid %d) died with %d", place.number, child.pid, code)
        if place.died(at=self._clock.mark()):
            logger.error("process %d died %d times in a minute", place.number, MOST_DEATHS)
            place.start_at = None
            self._codes.append(HALTED)
            self._drain()

    def _drain(self) -> None:
        self._draining = True
        for place in self._places:
            place.start_at = None
        for child in self._living():
            child.terminate()

    def _living(self) -> tuple[Child, ...]:
        return tuple(place.child for place in self._places if place.child is not None)

    def _exit_code(self) -> int:
        if any(code not in _ORDERLY for code in self._codes):
            return HALTED
        return ABANDONED if ABANDONED in self._codes else DRAINED
