"""What each schedule does: its rule in words, when it ticks next, and what came of it."""

from __future__ import annotations

import json
from datetime import timedelta
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django.conf import get_config
from backwave_django.core.errors import UsageError
from backwave_django.core.schedule_rows import ScheduleRow, differences
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.jobs.schedules import schedules
from backwave_django.models import Job, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django_stubs_ext import StrPromise

    from backwave_django.core.schedules import Timetable

#: More schedules than a person reads.
MOST_SCHEDULES: Final = 500
MOST_RUNS: Final = 30
NEXT_RUNS: Final = 10
#: A tick that nobody has decided about for so long: no pump is there to do it.
OVERDUE_AFTER: Final = timedelta(minutes=1)


class Standing(StrEnum):
    """How a schedule is."""

    ACTIVE = "active"
    PAUSED = "paused"
    RETIRED = "retired"
    ERROR = "error"
    OVERDUE = "overdue"


STANDING_LABELS: Final[dict[Standing, StrPromise]] = {
    Standing.ACTIVE: gettext_lazy("active"),
    Standing.PAUSED: gettext_lazy("paused"),
    Standing.RETIRED: gettext_lazy("retired"),
    Standing.ERROR: gettext_lazy("in error"),
    Standing.OVERDUE: gettext_lazy("overdue"),
}


class ScheduleView(NamedTuple):
    """One schedule. ``problem`` and ``drift`` are empty when nothing is wrong with it.

    ``last`` is the job of the last tick that was minted; ``drift`` names what the code of this
    process declares otherwise.
    """

    schedule: Schedule
    rule: str
    raw: str
    standing: Standing
    problem: str
    last: Job | None
    drift: tuple[str, ...]

    @property
    def label(self) -> str:
        """The standing in words."""
        return str(STANDING_LABELS[self.standing])

    @property
    def of_code(self) -> bool:
        """Whether code declares it."""
        return self.schedule.owner is not None

    @property
    def next_at(self) -> datetime | None:
        """When it ticks next, if it does."""
        return self.schedule.next_at if self.standing in _TICKING else None


_TICKING: Final = frozenset({Standing.ACTIVE, Standing.OVERDUE})


def schedule_views(*, clock: datetime) -> Sequence[ScheduleView]:
    """Return every schedule by name, retired ones last, in a constant number of statements."""
    rows = _rows().order_by("name")[:MOST_SCHEDULES]
    views = _views(rows, clock=clock)
    return sorted(views, key=lambda view: view.standing is Standing.RETIRED)


def schedule_view(name: str, *, clock: datetime) -> ScheduleView | None:
    """Return one schedule, or ``None`` when there is none of that name."""
    views = _views(_rows().filter(pk=name), clock=clock)
    return views[0] if views else None


def next_runs(view: ScheduleView, *, clock: datetime, count: int = NEXT_RUNS) -> Sequence[datetime]:
    """Return the ticks to come; none for a schedule that does not tick."""
    if view.standing not in _TICKING:
        return ()
    row = view.schedule
    since = max(row.cursor or clock, clock)
    return tuple(islice(_ticks(rule_of(row).timetable(anchor=row.created_at), since), count))


def past_runs(name: str, *, count: int = MOST_RUNS) -> Sequence[Job]:
    """Return the jobs of the last ticks, newest first."""
    ticked = Job.objects.using(get_config().database).filter(
        schedule=name, scheduled_for__isnull=False
    )
    return list(ticked.defer("payload", "output").order_by("-scheduled_for")[:count])


def rule_of(row: Schedule) -> Rule:
    """Return when a stored schedule ticks."""
    return Rule(cron=row.cron, every_seconds=row.every_seconds, timezone=row.timezone)


def kept_row(row: Schedule) -> ScheduleRow:
    """Return a stored schedule as the core knows it."""
    spec = ScheduleSpec(
        name=row.name,
        rule=rule_of(row),
        wire_name=row.wire_name,
        queue=row.queue,
        payload=row.payload,
        payload_version=row.payload_version,
        priority=row.priority,
        tags=json.dumps(row.tags or {}),
        limit_key=row.limit_key,
        catch_up=row.catch_up,
        no_overlap=row.no_overlap,
    )
    return ScheduleRow(
        spec=spec,
        created_at=row.created_at,
        owner=row.owner,
        release=row.release,
        enabled=row.enabled,
        retired_at=row.retired_at,
    )


def _ticks(timetable: Timetable, since: datetime) -> Iterator[datetime]:
    tick = timetable.next_after(since)
    while tick is not None:
        yield tick
        tick = timetable.next_after(tick)


def _rows() -> QuerySet[Schedule]:
    last = (
        Job.objects.filter(schedule=OuterRef("pk"), scheduled_for__isnull=False)
        .order_by("-scheduled_for")
        .values("pk")[:1]
    )
    return Schedule.objects.using(get_config().database).annotate(last_job=Subquery(last))


def _views(rows: Iterable[Schedule], *, clock: datetime) -> list[ScheduleView]:
    found = list(rows)
    last = {row.pk: getattr(row, "last_job", None) for row in found}
    wanted = [job_id for job_id in last.values() if job_id is not None]
    jobs = Job.objects.using(get_config().database).defer("payload", "output").in_bulk(wanted)
    declared = _declared()
    return [
        _view(row, last=jobs.get(last[row.pk]), declared=declared, clock=clock) for row in found
    ]


def _view(
    row: Schedule,
    *,
    last: Job | None,
    declared: Mapping[str, ScheduleSpec],
    clock: datetime,
) -> ScheduleView:
    rule, broken = _in_words(row)
    problem = broken or row.problem
    return ScheduleView(
        schedule=row,
        rule=rule,
        raw=row.cron or _("every %(seconds)s s") % {"seconds": f"{row.every_seconds or 0:g}"},
        standing=_standing(row, problem=problem, clock=clock),
        problem=problem,
        last=last,
        drift=_drift(row, declared),
    )


def _in_words(row: Schedule) -> tuple[str, str]:
    """Return the rule in words, or what is wrong with it."""
    try:
        return rule_of(row).timetable(anchor=row.created_at).describe(), ""
    except ValueError as error:
        return "", str(error)


def _standing(row: Schedule, *, problem: str, clock: datetime) -> Standing:
    if row.retired_at is not None:
        return Standing.RETIRED
    if not row.enabled:
        return Standing.PAUSED
    if problem:
        return Standing.ERROR
    overdue = row.next_at is not None and clock - row.next_at > OVERDUE_AFTER
    return Standing.OVERDUE if overdue else Standing.ACTIVE


def _declared() -> dict[str, ScheduleSpec]:
    try:
        return {spec.name: spec for spec in schedules.specs()}
    except UsageError:
        return {}  # a system check says so


def _drift(row: Schedule, declared: Mapping[str, ScheduleSpec]) -> tuple[str, ...]:
    if row.owner != get_config().schedule_owner:
        return ()
    spec = declared.get(row.name)
    if spec is None:
        return () if row.retired_at is not None else ("declared no more",)
    return tuple(differences(kept_row(row), spec))
