"""The settle sweep: edges that were left over, and jobs whose deadline has passed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.contract import History, SweepAnswer
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from backwave_django.store.chores import Sweep, look_for
from backwave_django.store.endings import APPEND, END, ending
from backwave_django.store.names import Statement
from backwave_django.store.observing import observe_ends
from backwave_django.store.settling import leave_queue, settle_dependents

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.store.room import Room

_LEFT_OVER: Final = """
SELECT s.id, s.parent_id FROM {{settle}} s LEFT JOIN {{job}} p ON p.id = s.parent_id
WHERE p.id IS NULL OR p.state IN {{terminal}}
ORDER BY s.id LIMIT {limit} {{skip_locked:s}}
"""
_LATE: Final = """
SELECT j.id, j.run, j.spent FROM {{job}} j WHERE j.state = 'scheduled'
  AND j.deadline IS NOT NULL AND j.deadline <= %(now)s
ORDER BY j.deadline, j.id LIMIT {limit} {{skip_locked:j}}
"""


@cache
def _left_over(limit: int) -> Statement:
    return Statement(_LEFT_OVER.format(limit=limit))


@cache
def _late(limit: int) -> Statement:
    return Statement(_LATE.format(limit=limit))


def settle(room: Room, *, limit: int, now: datetime) -> SweepAnswer:
    """Drain the settle queue and end passed deadlines; see ``Store.settle``."""
    seen = look_for(room, Sweep.SETTLE, now=now)
    if not (seen.left_over or seen.late):
        return SweepAnswer(count=0, full=False, clock=seen.clock)
    with room.executor.transaction():
        room.executor.relax()
        edges = _settle_left_over(room, limit=limit, now=now) if seen.left_over else 0
        # Settling may have freed jobs that are late already.
        jobs = _end_late(room, limit=limit, now=now)
    return SweepAnswer(count=edges + jobs, full=limit in {edges, jobs}, clock=room.clock())


def _settle_left_over(room: Room, *, limit: int, now: datetime) -> int:
    rows = room.executor.fetch(_left_over(limit), {})
    if rows:
        # What cannot be settled now goes back into the queue as a new row.
        leave_queue(room, [row[0] for row in rows])
        settle_dependents(room, list(dict.fromkeys(row[1] for row in rows)), now=now)
    return len(rows)


def _end_late(room: Room, *, limit: int, now: datetime) -> int:
    rows = room.executor.fetch(_late(limit), {"now": now})
    if not rows:
        return 0
    lines = [_missed(row, now=now) for row in rows]
    room.executor.execute_many(END, lines)
    if room.settings.history is not History.OFF:
        room.executor.execute_many(APPEND, lines)
    ended = [row[0] for row in rows]
    observe_ends(room, ended, among=(JobState.EXPIRED, JobState.DEAD_LETTERED), now=now)
    settle_dependents(room, ended, now=now)
    return len(rows)


def _missed(row: tuple[Any, ...], *, now: datetime) -> dict[str, object]:
    job_id, run, spent = row
    state = JobState.DEAD_LETTERED if run else JobState.EXPIRED
    return ending(
        job=job_id,
        spent=spent,
        kind=OutcomeKind.EXPIRED.value,
        state=state.value,
        cause=Cause.DEADLINE.value,
        at=now,
    )
