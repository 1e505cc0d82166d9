"""Queue windows: the local times at which a queue is served.

A window is written as people say it: ``20:00-06:00 Europe/Zurich``, on given days
``Mon-Fri 20:00-06:00 Europe/Zurich``, several of them separated by semicolons with one time zone
at the end, ``always`` for no window at all. One that ends at or before its beginning lasts past
midnight, and belongs to the day on which it begins.

Times are those of the wall clock. Where clocks are changed, one that is shown twice counts the
first time and one that is skipped counts at the first instant after the gap, for both ends alike:
what touches on the clock touches in time as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from backwave_django.core.bounds import MAX_WINDOW_CHARS
from backwave_django.core.cron import first_shown, zone_of
from backwave_django.core.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, tzinfo

ALWAYS: Final = "always"
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EXAMPLE: Final = '"20:00-06:00 Europe/Zurich" or "Mon-Fri 08:00-18:00; Sat 09:00-12:00 UTC"'
_SPAN: Final = re.compile(
    r"(?:(?P<days>[A-Za-z,-]+)\s+)?(?P<begins>\d{1,2}:\d\d)\s*-\s*(?P<ends>\d{1,2}:\d\d)", re.ASCII
)
_DAY: Final = timedelta(days=1)
_MIDNIGHT: Final = 24 * 60
#: Each window is open in every week; two weeks hold one that a change of clocks skips once.
_FARTHEST: Final = 15


class _Span(NamedTuple):
    """One window: the days on which it begins, and minutes after their midnight."""

    days: frozenset[int]
    begins: int
    ends: int

    def on(self, day: date, zone: tzinfo) -> tuple[datetime, datetime] | None:
        """Return when the window of this day is open, if it has one."""
        if day.weekday() not in self.days:
            return None
        midnight = datetime.combine(day, time())
        begins, ends = (
            first_shown(midnight + timedelta(minutes=minutes), zone)
            for minutes in (self.begins, self.ends)
        )
        return (begins, ends) if begins < ends else None

    def __str__(self) -> str:
        days = "" if len(self.days) == len(_DAYS) else f"{_days_in_words(self.days)} "
        # What lies past midnight is written as the clock shows it; a day ends at 24:00.
        ends = self.ends if self.ends <= _MIDNIGHT else self.ends - _MIDNIGHT
        return f"{days}{_clock(self.begins)}-{_clock(ends)}"


@dataclass(frozen=True, slots=True)
class Window:
    """When a queue is served. ``spans`` is empty for a queue that always is."""

    spans: tuple[_Span, ...]
    timezone: str
    _zone: tzinfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", zone_of(self.timezone))

    @classmethod
    def parse(cls, text: object) -> Window:
        """Return what ``text`` says. Raises ``InvalidOption`` that says what to write."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidOption("window", text, f"write {_EXAMPLE}")
        if len(text) > MAX_WINDOW_CHARS:
            shown = f"{text[:20]}…"
            raise InvalidOption("window", shown, f"write {MAX_WINDOW_CHARS} characters at most")
        return _parsed(text)

    def is_open(self, at: datetime) -> bool:
        """Tell whether the queue is served at ``at``. The instant of an opening is inside."""
        if not self.spans:
            return True
        return any(begins <= at < ends for begins, ends in self._near(at, days=1))

    def next_change(self, at: datetime) -> datetime | None:
        """Return when the queue next opens or closes after ``at``; ``None`` if it never does."""
        if not self.spans:
            return None
        now_open = self.is_open(at)
        instants = {edge for span in self._near(at, days=_FARTHEST) for edge in span}
        later = sorted(instant for instant in instants if instant > at)
        return next((edge for edge in later if self.is_open(edge) is not now_open), None)

    def opens_at(self, at: datetime) -> datetime | None:
        """Return when a queue that is closed at ``at`` opens; ``None`` for one that is open."""
        return None if self.is_open(at) else self.next_change(at)

    def _near(self, at: datetime, *, days: int) -> Iterator[tuple[datetime, datetime]]:
        """Go through what is open from two days before ``at`` until ``days`` after it."""
        today = at.astimezone(self._zone).date()
        for distance in range(-2, days + 1):
            for span in self.spans:
                found = span.on(today + distance * _DAY, self._zone)
                if found is not None:
                    yield found

    def __str__(self) -> str:
        """Return the text that ``parse`` reads, in one spelling."""
        if not self.spans:
            return ALWAYS
        return f"{'; '.join(map(str, self.spans))} {self.timezone}"


@lru_cache(maxsize=256)
def _parsed(text: str) -> Window:
    if text.strip().lower() == ALWAYS:
        return Window((), "UTC")
    written, _, zone = text.strip().rpartition(" ")
    if not written or ":" in zone or ";" in zone:
        raise InvalidOption("window", text, f"end with a time zone: {_EXAMPLE}")
    spans = tuple(_span(part.strip(), text) for part in written.split(";"))
    try:
        return Window(spans, zone)
    except InvalidOption as error:
        raise InvalidOption("window", text, f"time zone {zone!r}: {error.hint}") from None


def _span(part: str, text: str) -> _Span:
    found = _SPAN.fullmatch(part)
    if found is None:
        raise InvalidOption("window", text, f"{part!r} is no window: write {_EXAMPLE}")
    begins, ends = (_minutes(found[name], text) for name in ("begins", "ends"))
    if begins in {ends, _MIDNIGHT}:
        hint = f"{part!r} has no length: write 00:00-24:00 for a whole day"
        raise InvalidOption("window", text, hint)
    days = frozenset(range(7)) if found["days"] is None else _days(found["days"], text)
    return _Span(days, begins, ends if ends > begins else ends + _MIDNIGHT)


def _minutes(clock: str, text: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    total = 60 * hours + minutes
    if minutes >= 60 or total > _MIDNIGHT:  # noqa: PLR2004 - minutes of an hour
        raise InvalidOption("window", text, f"{clock!r} is no time: write 00:00 to 24:00")
    return total


def _days(words: str, text: str) -> frozenset[int]:
    days: set[int] = set()
    for word in words.split(","):
        first, dash, last = word.title().partition("-")
        if first not in _DAYS or (dash and last not in _DAYS):
            hint = f"{word!r} is no day: write Mon, Tue, Wed, Thu, Fri, Sat, Sun, or Mon-Fri"
            raise InvalidOption("window", text, hint)
        begins = _DAYS.index(first)
        length = (_DAYS.index(last) - begins) % 7 if dash else 0
        days.update((begins + step) % 7 for step in range(length + 1))
    return frozenset(days)


def _days_in_words(days: frozenset[int]) -> str:
    return ",".join(_DAYS[day] for day in sorted(days))


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
