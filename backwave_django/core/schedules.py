"""Schedules: when they tick, and what to do about the ticks that have come due.

A schedule's ``cursor`` is the instant up to which every tick was decided about, its ``next_at``
the tick that comes after it. Deciding moves both, and it is the same for every pump: given the
same row and instant, the answer is the same, so that one compare-and-set keeps ticks unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from backwave_django.core.cron import LAST_YEAR, Cron, zone_of
from backwave_django.core.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

#: A shorter interval is a busy loop: each tick costs a turn of a pump.
MIN_INTERVAL = timedelta(seconds=1)
MAX_INTERVAL = timedelta(days=3660)
#: A tick that is noticed later than this was missed: nothing ran that could have noticed it.
LATE = timedelta(minutes=5)
#: A schedule whose job type no pump has known for this long after a tick is in error.
UNKNOWN_FOR = timedelta(minutes=1)
#: Missed ticks of cron rules are counted up to here; who was away for longer knows enough.
MOST_COUNTED = 1_000


class CatchUp(StrEnum):
    """What a schedule does about ticks that were missed while nothing ran."""

    SKIP = "skip"
    COALESCE = "coalesce"


class SkipReason(StrEnum):
    """Why a tick got no job of its own."""

    MISSED = "missed"
    OVERLAP = "overlap"


@dataclass(frozen=True, slots=True)
class Interval:
    """Ticks at ``anchor`` plus every whole number of intervals, 1 or more: they never drift."""

    every: timedelta
    anchor: datetime

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first tick after ``instant``."""
        if instant.year > LAST_YEAR:
            return None
        return self.anchor + max(self._number(instant) + 1, 1) * self.every

    def last_by(self, until: datetime, *, since: datetime) -> datetime | None:
        """Return the last tick after ``since`` and by ``until``."""
        tick = self.anchor + self._number(until) * self.every
        return tick if tick > max(since, self.anchor) else None

    def count(self, *, since: datetime, before: datetime, most: int) -> int:
        """Return how many ticks lie after ``since`` and before ``before``; at most ``most``."""
        passed = max(self._number(since), 0)
        return min(max(-((self.anchor - before) // self.every) - 1 - passed, 0), most)

    def describe(self) -> str:
        """Return the rule in English words."""
        return f"Every {in_words(self.every)}"

    def _number(self, instant: datetime) -> int:
        return (instant - self.anchor) // self.every


Timetable: TypeAlias = Cron | Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a schedule ticks, as it is stored: a cron expression read in a zone, or an interval.

    Anything may stand in a row; what cannot work comes out of ``timetable`` as ``InvalidOption``.
    """

    cron: str | None = None
    every_seconds: float | None = None
    timezone: str = "UTC"

    def timetable(self, *, anchor: datetime) -> Timetable:
        """Return the rule ready for questions. Intervals are counted from ``anchor``'s second."""
        if (self.cron is None) == (self.every_seconds is None):
            raise InvalidOption("cron", self.cron, "give a cron expression or an interval")
        if self.cron is not None:
            return _cron(self.cron, self.timezone)
        zone_of(self.timezone)
        return Interval(_interval(self.every_seconds or 0.0), anchor.replace(microsecond=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """A schedule as code or a person declares it: a rule, and the job that each tick makes.

    ``priority`` is what a caller writes, high first. ``payload`` and ``tags`` are JSON texts.
    """

    name: str
    rule: Rule
    wire_name: str
    queue: str
    payload: str
    payload_version: int = 1
    priority: int = 0
    tags: str = "{}"
    limit_key: str | None = None
    catch_up: str = CatchUp.SKIP
    no_overlap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSchedule:
    """What a pump has to know of an enabled schedule to decide about its ticks.

    ``next_at`` is what the last decision expected to come next: where the rule says otherwise by
    now, somebody has edited the row. ``catch_up`` is the row's word, whatever that is.
    """

    name: str
    rule: Rule
    wire_name: str
    payload_version: int
    catch_up: str
    cursor: datetime | None
    next_at: datetime | None
    created_at: datetime
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to become of one schedule, as long as its row is still as it was ``seen``.

    ``tick``: mint the job of this nominal time. ``skipped`` ticks, the last of them at
    ``skipped_at``, get no job. ``cursor`` and ``next_at`` replace those of the row.
    """

    seen: LoadedSchedule
    cursor: datetime | None
    next_at: datetime | None
    tick: datetime | None = None
    skipped: int = 0
    skipped_at: datetime | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """The schedule's name."""
        return self.seen.name


def decide(
    schedule: LoadedSchedule, *, now: datetime, known: Mapping[str, int] | None = None
) -> Decision | None:
    """Return what to do about the schedule; ``None`` when there is nothing to do.

    At most one job comes of it, whatever was missed. ``known`` maps the wire names that this
    process can run to the newest payload version of each, ``None`` for any: what others know is
    left to them, and is an error only when nobody has taken it up.
    """
    try:
        timetable = schedule.rule.timetable(anchor=schedule.created_at)
        catch_up = CatchUp(schedule.catch_up)
    except ValueError as error:
        return _troubled(schedule, str(error))
    if schedule.cursor is None:
        return _planned(schedule, timetable, cursor=now)
    expected = timetable.next_after(schedule.cursor)
    if schedule.next_at != expected:
        begin = expected is not None and expected <= now
        return _planned(schedule, timetable, cursor=now if begin else schedule.cursor)
    if schedule.next_at is None or now < schedule.next_at:
        return _troubled(schedule, _ahead(schedule.cursor, now=now))
    if known is not None and known.get(schedule.wire_name, 0) < schedule.payload_version:
        overdue = now - schedule.next_at > UNKNOWN_FOR
        return _troubled(schedule, _unknown(schedule)) if overdue else None
    return _ticked(schedule, timetable, catch_up, first=schedule.next_at, now=now)


def first_plan(rule: Rule, *, created_at: datetime, now: datetime) -> datetime | None:
    """Return the next tick of a schedule that begins, or begins anew, ``now``.

    Raises ``InvalidOption`` when the rule cannot work.
    """
    return rule.timetable(anchor=created_at).next_after(now)


def in_words(span: timedelta) -> str:
    """Return a span in the largest unit that measures it without a rest."""
    for unit, one in (("day", timedelta(days=1)), ("hour", timedelta(hours=1))):
        if not span % one:
            return f"{span // one} {unit}s" if span > one else unit
    if not span % timedelta(minutes=1):
        minutes = span // timedelta(minutes=1)
        return f"{minutes} minutes" if minutes > 1 else "minute"
    seconds = span.total_seconds()
    return "second" if seconds == 1 else f"{seconds:g} seconds"


@lru_cache(maxsize=1024)
def _cron(expression: str, timezone: str) -> Cron:
    return Cron(expression, timezone)


def _interval(seconds: float) -> timedelta:
    if MIN_INTERVAL.total_seconds() <= seconds <= MAX_INTERVAL.total_seconds():
        return timedelta(seconds=seconds)
    raise InvalidOption("every", seconds, "give an interval between one second and ten years")


def _ticked(
    schedule: LoadedSchedule,
    timetable: Timetable,
    catch_up: CatchUp,
    *,
    first: datetime,
    now: datetime,
) -> Decision:
    """Mint the last tick that has come due, unless it is too late for it; pass over the others."""
    tick, following, missed, before = first, timetable.next_after(first), 0, None
    if following is not None and following <= now:
        tick = timetable.last_by(now, since=first) or first
        following = timetable.next_after(tick)
        missed = 1 + timetable.count(since=first, before=tick, most=MOST_COUNTED - 1)
        before = timetable.last_by(tick - timedelta(microseconds=1), since=first) or first
    if now - tick > LATE and catch_up is CatchUp.SKIP:
        return Decision(
            seen=schedule, cursor=tick, next_at=following, skipped=missed + 1, skipped_at=tick
        )
    return Decision(
        seen=schedule,
        cursor=tick,
        next_at=following,
        tick=tick,
        skipped=missed,
        skipped_at=before,
    )


def _planned(schedule: LoadedSchedule, timetable: Timetable, *, cursor: datetime) -> Decision:
    """Go by the rule as it is now: the row is new, or was edited.

    What an edited rule would have done until now is nobody's wish: it is not caught up with.
    """
    return Decision(seen=schedule, cursor=cursor, next_at=timetable.next_after(cursor))


def _troubled(schedule: LoadedSchedule, problem: str) -> Decision | None:
    """Write down a problem, or that it is over; nothing else changes."""
    if problem == schedule.problem:
        return None
    return Decision(
        seen=schedule, cursor=schedule.cursor, next_at=schedule.next_at, problem=problem
    )


def _ahead(cursor: datetime, *, now: datetime) -> str:
    """Say so when the clock was set back by more than clocks differ."""
    if cursor - now <= LATE:
        return ""
    return (
        f"it has ticked until {cursor:%Y-%m-%d %H:%M:%S} UTC, which is still to come: the clock "
        "was set back; pause and resume it to begin anew from now"
    )


def _unknown(schedule: LoadedSchedule) -> str:
    version = schedule.payload_version
    newer = f" (payload version {version})" if version > 1 else ""
    return (
        f"no pump knows the job type {schedule.wire_name!r}{newer}: deploy the code that declares "
        "it, or pause the schedule"
    )
