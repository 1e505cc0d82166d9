"""Rates: at most so many starts in a period, as a bucket of tokens that fills evenly.

A bucket of ``10/second`` holds ten tokens at most and gets one each tenth of a second; a start
takes one. So any span of time has at most ten starts and one more for each tenth of a second in
it. What is kept of a bucket is the instant at which it is full again: one value says it all, whole
microseconds never drift, and a clock that goes back finds fewer tokens, not more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from backwave_django.core.bounds import MAX_RATE, MAX_RATE_PERIOD, MAX_RATE_SKEW
from backwave_django.core.errors import InvalidOption

if TYPE_CHECKING:
    from datetime import datetime

_UNITS: Final = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_SHAPE: Final = re.compile(
    rf"\s*(\d{{1,9}})\s*/\s*(?:(\d{{1,9}})\s*)?({'|'.join(_UNITS)})s?\s*", re.ASCII
)
_HINT: Final = 'write starts and a period: "10/second", "100/minute", "500/hour" or "1/30 seconds"'
_TICK: Final = timedelta(microseconds=1)
_ZERO: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``number`` starts at once, and so many again in each ``count`` of ``unit``.

    ``unit`` is ``second``, ``minute``, ``hour`` or ``day``. Raises ``InvalidOption`` outside of
    1 to 1,000,000 starts in up to 366 days.
    """

    number: int
    count: int
    unit: str

    def __post_init__(self) -> None:
        if not 1 <= self.number <= MAX_RATE:
            raise InvalidOption("rate", str(self), f"write 1 to {MAX_RATE:,} starts")
        if not 1 <= self.count <= MAX_RATE_PERIOD / _UNITS[self.unit]:
            days = MAX_RATE_PERIOD.days
            raise InvalidOption("rate", str(self), f"write a period of 1 second to {days} days")

    @classmethod
    def parse(cls, text: object) -> Rate:
        """Return what ``text`` says. Raises ``InvalidOption`` that says what to write."""
        found = _SHAPE.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InvalidOption("rate", text, _HINT)
        return cls(int(found[1]), int(found[2] or 1), found[3])

    def __str__(self) -> str:
        """Return the text that ``parse`` reads, in one spelling."""
        period = self.unit if self.count == 1 else f"{self.count} {self.unit}s"
        return f"{self.number}/{period}"

    @property
    def interval(self) -> timedelta:
        """How long the bucket takes for one token.

        Rounded up to a whole microsecond, so that many starts at once take what they take one by
        one, and no more of them fit into a period than should.
        """
        period = self.count * _UNITS[self.unit]
        return -(-period // (self.number * _TICK)) * _TICK

    def tokens(self, full_at: datetime | None, *, now: datetime) -> int:
        """Return how many may start at ``now``, of a bucket that is full again at ``full_at``."""
        return max(0, self.number - -(-self._missing(full_at, now) // self.interval))

    def next_token(self, full_at: datetime | None, *, now: datetime) -> datetime:
        """Return when the next may start: ``now`` while there is a token."""
        wait = self._missing(full_at, now) - (self.number - 1) * self.interval
        return now + max(wait, _ZERO)

    def taken(self, full_at: datetime | None, count: int, *, now: datetime) -> datetime:
        """Return when the bucket is full again after ``count`` more starts at ``now``."""
        return now + self._missing(full_at, now) + count * self.interval

    def _missing(self, full_at: datetime | None, now: datetime) -> timedelta:
        """Return how long the bucket still fills.

        Never much longer than an empty one does: after a clock was set back, or under a rate that
        was slower when its bucket was emptied, nobody waits for longer than that.
        """
        if full_at is None or full_at <= now:
            return _ZERO
        return min(full_at - now, self.number * self.interval + MAX_RATE_SKEW)


def rate_view(rate: Rate | None) -> dict[str, object]:
    """Return a rate as the audit of an operator action shows it."""
    return {"rate": None if rate is None else str(rate)}


def rate_or_none(text: str | None) -> Rate | None:
    """Return a stored rate."""
    return None if text is None else Rate.parse(text)
