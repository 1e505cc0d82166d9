"""Time that a test moves by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class VirtualClock:
    """The clock of a harness: the driver's, the store's and the enqueuers', all in one.

    It stands still unless it is moved. Satisfies ``pumps.clock.Clock``.
    """

    def __init__(self, now: datetime) -> None:
        self._start = self._now = now.astimezone(UTC)

    def now(self) -> datetime:
        """Return the virtual instant, in UTC."""
        return self._now

    def move_to(self, instant: datetime) -> None:
        """Move forward to ``instant``; an instant that has passed changes nothing."""
        self._now = max(self._now, instant)

    def mark(self) -> float:
        """Return the seconds since the clock was made."""
        return (self._now - self._start).total_seconds()

    def observe(self, database_clock: datetime, *, sent_at: float, received_at: float) -> bool:
        """Agree when it is the same clock, as it is for a store that was given this one."""
        return database_clock == self._now and sent_at <= received_at

    def adopt(self, database_clock: datetime, *, sent_at: float, received_at: float) -> None:
        """Move to the store's clock, which is this one."""
        if sent_at <= received_at:
            self.move_to(database_clock)

    def seconds_until(self, instant: datetime) -> float:
        """Return the virtual seconds until ``instant``; zero when it is past."""
        return max(timedelta(0), instant - self._now).total_seconds()
