"""Time: the only module that reads a clock.

A pump's time is the database's time, carried between answers on a line that never steps: the
machine's time since boot. Setting the node's wall clock changes nothing; the database's clock is
followed wherever it goes.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final, Protocol

#: How far an answer's clock may lie off ours before it is measured again.
TOLERANCE_SECONDS: Final = 1.0
#: The longest wait handed to the operating system in one piece.
LONGEST_WAIT_SECONDS: Final = 60.0

#: Counts while the machine is suspended too, where the system has such a clock.
_LINE: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """The database's time, and a line to measure spans on. Safe to read from any thread."""

    def now(self) -> datetime:
        """Return the database's time, as well as it is known, in UTC."""

    def mark(self) -> float:
        """Return a point on a line of seconds that never steps."""

    def observe(self, database_clock: datetime, *, sent_at: float, received_at: float) -> bool:
        """Take in the clock of an answer, which was read between the two marks.

        Returns false, and changes nothing, when it lies over a second off: the caller then
        measures again and calls ``adopt``.
        """

    def adopt(self, database_clock: datetime, *, sent_at: float, received_at: float) -> None:
        """Follow the database's clock from here on, wherever it points."""

    def seconds_until(self, instant: datetime) -> float:
        """Return the wait until ``instant``: zero when it is past, never over a minute."""


class SystemClock:
    """The clock of a process. One thread observes; any thread reads."""

    def __init__(self) -> None:
        # A guess until the first answer: the wall clock of this machine.
        self._offset = time.time() - self.mark()
        self._measured = False

    def now(self) -> datetime:
        """Return the database's time, as well as it is known, in UTC."""
        return datetime.fromtimestamp(self.mark() + self._offset, UTC)

    def mark(self) -> float:
        """Return a point on a line of seconds that never steps."""
        return time.monotonic() if _LINE is None else time.clock_gettime(_LINE)

    def observe(self, database_clock: datetime, *, sent_at: float, received_at: float) -> bool:
        """Take in the clock of an answer; false when it must be measured again.

        The true offset lies between the two bounds, however long the answer took; an offset that
        already does is left alone, so that time runs evenly.
        """
        if not self._measured:
            self.adopt(database_clock, sent_at=sent_at, received_at=received_at)
            return True
        stamp = database_clock.timestamp()
        least, most = stamp - received_at, stamp - sent_at
        if not least - TOLERANCE_SECONDS <= self._offset <= most + TOLERANCE_SECONDS:
            return False
        self._offset = min(max(self._offset, least), most)
        return True

    def adopt(self, database_clock: datetime, *, sent_at: float, received_at: float) -> None:
        """Follow the database's clock from here on: it was read half-way, give or take."""
        self._offset = database_clock.timestamp() - (sent_at + received_at) / 2
        self._measured = True

    def seconds_until(self, instant: datetime) -> float:
        """Return the wait until ``instant``: zero when it is past, never over a minute."""
        seconds = instant.timestamp() - self._offset - self.mark()
        return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)
