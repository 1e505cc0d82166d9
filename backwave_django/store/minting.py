"""Minting: due ticks of schedules become jobs, each tick once.

The row of a schedule is locked by whoever mints for it or triggers it. Under that lock, what was
decided is applied only if the row is still as it was seen, and no tick gets a second job.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from backwave_django.core import schedule_rows
from backwave_django.core.schedule_answers import (
    MintAnswer,
    MintResult,
    MintRow,
    SchedulesAnswer,
)
from backwave_django.store.chores import look
from backwave_django.store.hints import announce
from backwave_django.store.inserting import insert_plain
from backwave_django.store.names import Statement
from backwave_django.store.scheduling import (
    SELECTED,
    lock_free_schedules,
    row_of,
    update_schedules,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from backwave_django.core.jobs import NewJob
    from backwave_django.core.schedule_rows import ScheduleRow
    from backwave_django.core.schedules import Decision
    from backwave_django.store.room import Room

_LOAD: Final = f"""
SELECT {SELECTED} FROM {{{{schedule}}}} s
WHERE s.enabled AND s.retired_at IS NULL AND {{{{bytewise:s.name}}}} > %(after)s
ORDER BY {{{{bytewise:s.name}}}} LIMIT {{limit}}
"""  # noqa: S608 - names of ours
_OVERLAPPING: Final = Statement(
    """
SELECT DISTINCT j.schedule FROM {job} j
WHERE j.schedule {any:names} AND j.state IN ('scheduled', 'awaiting', 'leased')
"""
)
_TAKEN: Final = Statement(
    """
SELECT j.schedule, j.scheduled_for FROM {job} j
WHERE j.schedule {any:names} AND j.scheduled_for {any:ticks}
"""
)


@cache
def _load(limit: int) -> Statement:
    return Statement(_LOAD.format(limit=limit))


def load_schedules(room: Room, *, after: str, limit: int) -> SchedulesAnswer:
    """Return the next schedules that may mint; see ``Store.load_schedules``."""
    if not after:
        seen = look(room, now=None)
        if not seen.scheduled:
            return SchedulesAnswer(schedules=(), full=False, clock=seen.clock)
    rows = room.executor.fetch(_load(limit), {"after": after})
    return SchedulesAnswer(
        schedules=tuple(row_of(room, row).loaded() for row in rows),
        full=len(rows) == limit,
        clock=room.clock(),
    )


def mint(room: Room, decisions: Sequence[Decision], *, now: datetime) -> MintAnswer:
    """Apply decisions about schedules; see ``Store.mint``."""
    with room.executor.transaction():
        rows = lock_free_schedules(room, [decision.name for decision in decisions])
        overlapping = overlapping_schedules(
            room, [name for name, row in rows.items() if row.spec.no_overlap]
        )
        taken = _taken_ticks(room, decisions)
        answers, moved, jobs = [], [], []
        for decision in decisions:
            row, result = schedule_rows.minted(
                rows.get(decision.name),
                decision,
                overlaps=decision.name in overlapping,
                taken=(decision.name, decision.tick) in taken,
            )
            job = _job(room, row, decision, result, now=now)
            jobs += [] if job is None else [job]
            moved += [] if row is None else [row]
            answers.append(MintRow(decision.name, result, None if job is None else job.id))
        update_schedules(room, moved)
        add_jobs(room, jobs)
    return MintAnswer(rows=tuple(answers), clock=room.clock())


def add_jobs(room: Room, jobs: Sequence[NewJob]) -> None:
    """Insert jobs that are due now, and tell the pumps once that is committed."""
    if jobs:
        insert_plain(room, jobs)
        announce(room, [(job.queue, job.priority) for job in jobs])


def overlapping_schedules(room: Room, names: Iterable[str]) -> set[str]:
    """Return those of the schedules that have a job which is not over."""
    wanted = sorted(names)
    if not wanted:
        return set()
    return {row[0] for row in room.executor.fetch(_OVERLAPPING, {"names": wanted})}


def _taken_ticks(room: Room, decisions: Iterable[Decision]) -> set[tuple[str, datetime | None]]:
    """Return the ticks that have a job, whatever the cursors say."""
    ticks = {(one.name, one.tick) for one in decisions if one.tick is not None}
    if not ticks:
        return set()
    names = sorted({name for name, _ in ticks})
    instants = sorted({tick for _, tick in ticks})
    rows = room.executor.fetch(_TAKEN, {"names": names, "ticks": instants})
    instant = room.executor.values.instant
    return {(row[0], instant(row[1])) for row in rows}


def _job(
    room: Room,
    row: ScheduleRow | None,
    decision: Decision,
    result: MintResult,
    *,
    now: datetime,
) -> NewJob | None:
    if row is None or result is not MintResult.MINTED:
        return None
    return row.job(room.new_id(), tick=decision.tick, now=now)
