"""Cron rules: five fields read on the clocks of one time zone, as instants in UTC.

The rules are Debian's. ``cronsim`` reads the expression and walks over wall clock times; what a
wall clock time means where clocks are changed is decided here:

- A rule whose minute or hour begins with ``*`` follows the clock as it really runs: it matches
  twice what is shown twice, and not at all what is skipped.
- Any other rule names fixed times of day. One that is shown twice counts the first time; one
  that is skipped counts at the first instant after the gap.

Ticks are strictly increasing in UTC, whatever the zone does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from backwave_django.core.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from datetime import tzinfo

MAX_EXPRESSION_CHARS = 200
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
#: Where the search for a past tick begins; it goes back by ever longer spans.
_NEAR = timedelta(minutes=2)
#: ``cronsim`` looks 50 years ahead, and the calendar ends with the year 9999.
LAST_YEAR = 9900
#: Where no instant matters, ``cronsim`` wants one all the same.
_ANY_TIME = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall clock time has no zone

_SHAPE = "write five fields: minute, hour, day of month, month, day of week"
#: What the zone database holds besides zones: what a machine is set to, and leap seconds.
_NO_ZONES = re.compile(r"(right|posix)/|localtime$|posixrules$|Factory$")
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class _Field:
    """What one field of an expression may hold. ``count`` values; a longer step never returns."""

    name: str
    hint: str
    count: int
    special: str = "(?!)"

    def wrong(self, text: str) -> str | None:
        """Say what is wrong with the field's text, as far as its form shows it."""
        for item in text.split(","):
            if re.fullmatch(self.special, item):
                continue
            found = re.fullmatch(r"(\*|[0-9A-Z]+(-[0-9A-Z]+)?)(/([0-9]{1,4}))?", item)
            if found is None or "L" in re.sub("JUL", "", item):
                return self.refuse(text)
            if found[4] and int(found[4]) > self.count:
                return f"{self.refuse(text)}; for steps as long as {found[4]} use an interval"
        return None

    def refuse(self, text: str) -> str:
        """Say that the field cannot be, and what it may be."""
        return f"the {self.name} field cannot be {text!r}: {self.hint}"


_MINUTE = _Field("minute", "write 0-59, lists, ranges or steps of them, or *", 60)
_HOUR = _Field("hour", "write 0-23, lists, ranges or steps of them, or *", 24)
_MONTH_DAY = _Field(
    "day-of-month",
    "write 1-31 within the months named, lists, ranges or steps of them, L, LW, or *",
    31,
    special="LW?",
)
_MONTH = _Field("month", "write 1-12 or JAN-DEC, lists, ranges or steps of them, or *", 12)
_WEEK_DAY = _Field(
    "day-of-week",
    "write 0-7 (0 and 7 are Sunday) or SUN-SAT, lists or steps of them, ranges that do not pass "
    "the end of the week (sat,sun instead of sat-sun), MON#2, 5L, or *",
    7,
    special="[0-7]L|([0-7]|[A-Z]{3})#[1-5]",
)
_FIELDS = (_MINUTE, _HOUR, _MONTH_DAY, _MONTH, _WEEK_DAY)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron rule in a time zone. Raises ``InvalidOption`` that names what is wrong with either."""

    expression: str
    timezone: str = "UTC"
    _zone: tzinfo = field(init=False, repr=False, compare=False)
    _fixed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        minute, hour, *_ = _fields(self.expression)
        object.__setattr__(self, "_zone", zone_of(self.timezone))
        object.__setattr__(self, "_fixed", not (minute.startswith("*") or hour.startswith("*")))

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first tick after ``instant``; ``None`` when the next 50 years hold none."""
        return next(self.ticks_after(instant), None)

    def ticks_after(self, instant: datetime) -> Iterator[datetime]:
        """Go through the ticks after ``instant``, strictly increasing, in UTC."""
        if instant.year > LAST_YEAR:
            return iter(())
        return self._fixed_ticks(instant) if self._fixed else self._running_ticks(instant)

    def last_by(self, until: datetime, *, since: datetime) -> datetime | None:
        """Return the last tick after ``since`` and by ``until``, however long ago that was."""
        span = _NEAR
        while True:
            start = max(since, until - span)
            found = None
            for tick in takewhile(until.__ge__, self.ticks_after(start)):
                found = tick
            if found is not None or start == since:
                return found
            span *= 4

    def count(self, *, since: datetime, before: datetime, most: int) -> int:
        """Return how many ticks lie after ``since`` and before ``before``; at most ``most``."""
        ticks = takewhile(before.__gt__, self.ticks_after(since))
        return sum(1 for _ in islice(ticks, most))

    def describe(self) -> str:
        """Return the rule in English words, without its zone."""
        return CronSim(self.expression, _ANY_TIME).explain()

    def _fixed_ticks(self, instant: datetime) -> Iterator[datetime]:
        last = instant
        for wall in CronSim(self.expression, _wall(instant, self._zone)):
            tick = first_shown(wall, self._zone)
            # Several skipped times share the end of their gap; and a start between the two
            # showings of an hour has had its times already.
            if tick > last:
                last = tick
                yield tick

    def _running_ticks(self, instant: datetime) -> Iterator[datetime]:
        since: datetime | None = instant
        wall = _wall(instant, self._zone)
        while since is not None:
            since = yield from self._stretch(since, wall)
            if since is not None:
                wall = _wall(since, self._zone) - _SECOND

    def _stretch(
        self, since: datetime, wall: datetime
    ) -> Generator[datetime, None, datetime | None]:
        """Go through ticks from after ``wall`` until clocks are changed; return when they are."""
        offset = _offset(since, self._zone)
        for shown in CronSim(self.expression, wall):
            tick = shown.replace(tzinfo=UTC) - offset
            change = _change(since, tick, self._zone)
            if change is not None:
                return change
            since = tick
            yield tick
        return None


def zone_of(name: str) -> tzinfo:
    """Return the IANA time zone. Raises ``InvalidOption`` when there is none of that name."""
    if name == "UTC":
        return UTC  # needs no zone data, which a slim machine may not have
    try:
        if not _NO_ZONES.match(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass  # not there, not a name, or a directory
    raise InvalidOption(
        "timezone",
        name,
        'no such zone here; write an IANA name like "Europe/Zurich" '
        "(a system without zone data needs the tzdata package)",
    )


def _fields(expression: str) -> list[str]:
    """Return the five fields, in capitals. Raises ``InvalidOption`` that names the wrong one."""
    if expression.strip().startswith("@"):
        instead = _MACROS.get(expression.strip().lower(), "0 0 * * *")
        raise InvalidOption("cron", expression, f'{_SHAPE}, like "{instead}"')
    texts = expression.upper().split()
    if len(texts) != len(_FIELDS) or len(expression) > MAX_EXPRESSION_CHARS:
        raise InvalidOption("cron", expression, f"{_SHAPE}; these are {len(texts)}")
    for kind, text in zip(_FIELDS, texts, strict=True):
        problem = kind.wrong(text)
        if problem is not None:
            raise InvalidOption("cron", expression, problem)
    try:
        walk = CronSim(expression, _ANY_TIME)
    except CronSimError as error:
        raise InvalidOption("cron", expression, _named(str(error), texts)) from None
    if next(walk, None) is None:
        raise InvalidOption("cron", expression, "no day of the next 50 years is like that")
    return texts


def _named(problem: str, texts: list[str]) -> str:
    """Say in our words which field ``cronsim`` refused; in its own where we do not know them."""
    for kind, text in zip(_FIELDS, texts, strict=True):
        if problem == f"Bad {kind.name}":
            return kind.refuse(text)
    return problem


def _offset(instant: datetime, zone: tzinfo) -> timedelta:
    """Return how far the zone's clocks are ahead of UTC."""
    return instant.astimezone(zone).replace(tzinfo=UTC) - instant


def _wall(instant: datetime, zone: tzinfo) -> datetime:
    """Return what the zone's clocks show."""
    return instant.astimezone(zone).replace(tzinfo=None)


def first_shown(wall: datetime, zone: tzinfo) -> datetime:
    """Return the first instant at which clocks show ``wall``, or have just skipped it."""
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if _wall(first, zone) == wall:
        return first
    # In a gap: read by the clocks after it, the time lies before the change, and vice versa.
    before = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _change(before, first, zone) or first


def _change(since: datetime, until: datetime, zone: tzinfo) -> datetime | None:
    """Return when clocks are first changed after ``since``, if by ``until``."""
    offset = _offset(since, zone)
    while since < until:
        # No zone has changed its clocks to and fro within a day.
        step = min(since + _DAY, until)
        if _offset(step, zone) != offset:
            return _bisect(since, step, zone)
        since = step
    return None


def _bisect(since: datetime, until: datetime, zone: tzinfo) -> datetime:
    """Return the second of the one change of clocks after ``since`` and by ``until``."""
    offset = _offset(since, zone)
    since = since.replace(microsecond=0)
    while until - since > _SECOND:
        middle = since + timedelta(seconds=(until - since) // _SECOND // 2)
        if _offset(middle, zone) == offset:
            since = middle
        else:
            until = middle
    return until
