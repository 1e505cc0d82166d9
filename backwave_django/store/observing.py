"""Reactions: the jobs of those who observe an end, inserted in the transaction that records it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.observing import Ended, may_concern
from backwave_django.core.outcomes import SPENDING
from backwave_django.core.states import Cause, JobState
from backwave_django.store.hints import announce
from backwave_django.store.inserting import insert_plain
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from backwave_django.core.outcomes import Outcome
    from backwave_django.store.applied import Applied
    from backwave_django.store.room import Room

_ENDED: Final = Statement(
    """
SELECT j.id, j.wire_name, j.queue, j.state, j.cause, j.spent, j.run, j.tags FROM {job} j
WHERE j.id {any:jobs}
"""
)


def is_watched(room: Room, outcomes: Iterable[Outcome]) -> bool:
    """Tell whether any of ``outcomes`` may end a job in a state that somebody observes."""
    states = room.settings.observers.states
    return bool(states) and any(may_concern(outcome, states) for outcome in outcomes)


def observe_applied(
    room: Room, outcomes: Sequence[Outcome], answers: Sequence[Applied], *, now: datetime
) -> None:
    """React to reported ends; to be called in the transaction that applied them."""
    states = room.settings.observers.states
    by_job = {
        answer.job_id: outcome
        for outcome, answer in zip(outcomes, answers, strict=True)
        if answer.reported.state in states
    }
    if by_job:
        ends = [_reported(row, by_job[row.job_id]) for row in _read(room, list(by_job), now)]
        _insert(room, ends)


def observe_ends(
    room: Room, jobs: Iterable[Any], *, among: Collection[JobState], now: datetime
) -> None:
    """React to the ends of jobs that no lease was held on, in the transaction that ended them.

    They ended in one of the states ``among``.
    """
    wanted = list(jobs)
    states = room.settings.observers.states
    if wanted and not states.isdisjoint(among):
        ends = (row._replace(run=None, attempt=row.attempt + 1) for row in _read(room, wanted, now))
        _insert(room, [end for end in ends if end.state in states])


def _read(room: Room, jobs: Sequence[Any], at: datetime) -> list[Ended]:
    """Read jobs that have ended. The attempt is what was spent so far."""
    uuid = room.executor.values.uuid
    return [
        Ended(
            job_id=uuid(row[0]),
            wire_name=row[1],
            queue=row[2],
            state=JobState(row[3]),
            cause=Cause(row[4]),
            attempt=row[5],
            run=row[6],
            finished_at=at,
            tags=row[7] if isinstance(row[7], str) else json.dumps(row[7]),
        )
        for row in room.executor.fetch(_ENDED, {"jobs": jobs})
    ]


def _reported(end: Ended, outcome: Outcome) -> Ended:
    failure = outcome.failure
    return end._replace(
        attempt=end.attempt if outcome.kind in SPENDING else end.attempt + 1,
        finished_at=outcome.finished_at,
        error_class=None if failure is None else failure.error_class,
        message=None if failure is None else failure.message,
    )


def _insert(room: Room, ends: Sequence[Ended]) -> None:
    jobs = [job for end in ends for job in room.settings.observers.jobs(end)]
    if jobs:
        insert_plain(room, jobs)
        announce(room, [(job.queue, job.priority) for job in jobs if job.due_at is None])
