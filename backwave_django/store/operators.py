"""Operator actions on jobs: compare-and-set, in one transaction with their audit.

Unlike a pump, a person waits: rows are locked, not skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from backwave_django.core.contract import ActionAnswer, ActionResult
from backwave_django.core.states import CANCELLABLE, Cause, JobState
from backwave_django.store.audit import Audit
from backwave_django.store.hints import announce, announce_cancel
from backwave_django.store.names import Statement
from backwave_django.store.settling import cancel_rows, settle_dependents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import Actor
    from backwave_django.store.room import Room

_FIND: Final = "SELECT l.job_id, l.id FROM {lease} l WHERE l.job_id {any:jobs} ORDER BY l.id"
_LEASES: Final = Statement(_FIND + " {lock:l}")
_FREE_LEASES: Final = Statement(_FIND + " {skip_locked:l}")
_ASK: Final = Statement("UPDATE {lease} SET cancel_requested = {true} WHERE id {any:leases}")
_JOBS: Final = Statement(
    """
SELECT j.id, j.state, j.spent, j.queue, j.priority, j.due_at, j.unique_key FROM {job} j
WHERE j.id {any:jobs} ORDER BY j.id {lock:j}
"""
)
_MAKE_DUE: Final = Statement("UPDATE {job} SET due_at = %(due)s WHERE id = %(job)s")


class _ClaimedMeanwhile(Exception):
    """A job has a lease now that had none when leases were looked for, and it is not to be had."""


class Locked(NamedTuple):
    """A job under our lock."""

    id: UUID
    state: JobState
    spent: int
    queue: str
    priority: int
    due_at: datetime
    unique_key: str | None


def lock_jobs(room: Room, ids: Iterable[UUID]) -> dict[UUID, Locked]:
    """Lock jobs in the order of their ids, waiting for whoever holds them."""
    values = room.executor.values
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = (
        Locked(
            values.uuid(row[0]),
            JobState(row[1]),
            row[2],
            row[3],
            row[4],
            values.instant(row[5]),
            row[6],
        )
        for row in room.executor.fetch(_JOBS, {"jobs": wanted})
    )
    return {row.id: row for row in rows}


def refused(state: JobState, what: str) -> tuple[ActionResult, str]:
    """Say that an action does not apply to a state."""
    return ActionResult.REFUSED, f"a job that is {state} cannot be {what}"


def answers_to(
    job_ids: Sequence[UUID], answers: Mapping[UUID, ActionAnswer]
) -> tuple[ActionAnswer, ...]:
    """Return the answers in the order of the request."""
    return tuple(answers[job_id] for job_id in job_ids)


def gone(job_id: UUID) -> ActionAnswer:
    """Say that a job is not in the database."""
    return ActionAnswer(job_id=job_id, result=ActionResult.GONE, state=None)


def cancel(
    room: Room, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
) -> tuple[ActionAnswer, ...]:
    """Cancel waiting jobs; ask running ones to stop; see ``Store.cancel``."""
    with room.executor.transaction():
        before, asked = cancel_each(room, dict.fromkeys(job_ids), now=now)
        done = [job.id for job in before.values() if job.state in CANCELLABLE]
        settle_dependents(room, done, now=now)
        audit = Audit(room, actor, now)
        answers = {}
        for job_id in dict.fromkeys(job_ids):
            answers[job_id] = answer = _cancelled(job_id, before.get(job_id), asked)
            view = _was(job_id, before, asked)
            after = {"state": str(answer.state)} if answer.state else {}
            audit.note("cancel", ("job", str(job_id)), view, after, answer.result)
        audit.write()
        if asked:
            announce_cancel(room)
    return answers_to(job_ids, answers)


def cancel_each(
    room: Room, job_ids: Iterable[UUID], *, now: datetime
) -> tuple[dict[UUID, Locked], set[UUID]]:
    """Try the lease first, then the job; return jobs as they were, and those asked to stop."""
    ids = list(job_ids)
    # Undone when a job was claimed meanwhile and somebody has its lease: to wait for that while we
    # hold jobs is to wait in a circle with whoever locks leases first, as all do.
    return room.tried(
        lambda last_try: _cancel_each(room, ids, now=now, last_try=last_try),
        again_on=_ClaimedMeanwhile,
    )


def _cancel_each(
    room: Room, job_ids: Sequence[UUID], *, now: datetime, last_try: bool
) -> tuple[dict[UUID, Locked], set[UUID]]:
    asked = _ask(room, job_ids, _LEASES)
    found = lock_jobs(room, [job_id for job_id in job_ids if job_id not in asked])
    claimed = {job.id for job in found.values() if job.state is JobState.LEASED}
    asked |= _ask(room, sorted(claimed), _FREE_LEASES)
    if claimed - asked and not last_try:
        raise _ClaimedMeanwhile
    waiting = [job.id for job in found.values() if job.state in CANCELLABLE]
    cancel_rows(room, waiting, cause=Cause.OPERATOR, now=now)
    return found, asked


def _ask(room: Room, job_ids: Sequence[UUID], leases: Statement) -> set[UUID]:
    rows = room.executor.fetch(leases, {"jobs": list(job_ids)}) if job_ids else []
    if rows:
        room.executor.execute(_ASK, {"leases": [row[1] for row in rows]})
    return {room.executor.values.uuid(row[0]) for row in rows}


def _cancelled(job_id: UUID, job: Locked | None, asked: set[UUID]) -> ActionAnswer:
    if job_id in asked:
        return ActionAnswer(
            job_id=job_id,
            result=ActionResult.REQUESTED,
            state=JobState.LEASED,
            detail="it runs; its body was asked to stop",
        )
    if job is None:
        return gone(job_id)
    if job.state in CANCELLABLE:
        return ActionAnswer(job_id=job_id, result=ActionResult.DONE, state=JobState.CANCELLED)
    result, detail = refused(job.state, "cancelled")
    return ActionAnswer(job_id=job_id, result=result, state=job.state, detail=detail)


def _was(job_id: UUID, before: Mapping[UUID, Locked], asked: set[UUID]) -> dict[str, object]:
    if job_id in asked:
        return {"state": str(JobState.LEASED)}
    job = before.get(job_id)
    return {} if job is None else {"state": str(job.state)}


def run_now(
    room: Room, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
) -> tuple[ActionAnswer, ...]:
    """Make scheduled jobs due now; see ``Store.run_now``."""
    with room.executor.transaction():
        found = lock_jobs(room, job_ids)
        audit = Audit(room, actor, now)
        answers, due = {}, []
        for job_id in dict.fromkeys(job_ids):
            answers[job_id] = answer = _made_due(job_id, found.get(job_id))
            job = found.get(job_id)
            at = min(job.due_at, now) if job is not None else now
            if answer.result is ActionResult.DONE:
                due.append({"job": job_id, "due": at})
            elif job is not None:
                at = job.due_at
            before = _due_view(job, None if job is None else job.due_at)
            audit.note("run_now", ("job", str(job_id)), before, _due_view(job, at), answer.result)
        room.executor.execute_many(_MAKE_DUE, due)
        audit.write()
        made = (found[job_id] for job_id, a in answers.items() if a.result is ActionResult.DONE)
        announce(room, [(job.queue, -job.priority) for job in made])
    return answers_to(job_ids, answers)


def _made_due(job_id: UUID, job: Locked | None) -> ActionAnswer:
    if job is None:
        return gone(job_id)
    if job.state is JobState.SCHEDULED:
        return ActionAnswer(job_id=job_id, result=ActionResult.DONE, state=job.state)
    result, detail = refused(job.state, "made due")
    return ActionAnswer(job_id=job_id, result=result, state=job.state, detail=detail)


def _due_view(job: Locked | None, due_at: datetime | None) -> dict[str, object]:
    if job is None or due_at is None:
        return {}
    return {"state": str(job.state), "due_at": due_at.isoformat()}
