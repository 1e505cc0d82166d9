"""Workflows: inserting them, and what people do to one as a whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.contract import ActionResult, WorkflowAnswer
from backwave_django.core.dependencies import parents_first
from backwave_django.core.jobs import IfDuplicate, NewJob
from backwave_django.core.states import CANCELLABLE, TERMINAL, Cause, JobState
from backwave_django.core.workflows import (
    NOTHING_TO_CANCEL,
    NOTHING_TO_RETRY,
    STILL_ALIVE,
    Standing,
    key_is_held,
    partly_purged,
    shared_key,
    tally,
    to_retry,
)
from backwave_django.store.audit import Audit
from backwave_django.store.hints import announce, announce_cancel
from backwave_django.store.intake import enqueue
from backwave_django.store.names import Statement
from backwave_django.store.operators import cancel_each, lock_jobs
from backwave_django.store.requeueing import Comeback, edges_into, in_key_order
from backwave_django.store.settling import settle_dependents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import Actor
    from backwave_django.core.jobs import Enqueued
    from backwave_django.core.workflows import Edge, NewWorkflow, RetryScope
    from backwave_django.store.room import Room

_INSERT: Final = Statement(
    """
INSERT INTO {workflow} (id, name, created_at, steps, size)
VALUES (%(id)s, %(name)s, %(created_at)s, {json:steps}, %(size)s)
"""
)
_WORKFLOW: Final = Statement("SELECT name, size, steps FROM {workflow} WHERE id = %(id)s")
_MEMBERS: Final = Statement(
    "SELECT id, state, cause FROM {job} WHERE workflow = %(id)s ORDER BY id"
)
_COPY: Final = Statement(
    """
SELECT id, wire_name, queue, priority, payload, payload_version, tags, limit_key, unique_key
FROM {job} WHERE workflow = %(id)s ORDER BY id
"""
)


def start_workflow(
    room: Room, workflow: NewWorkflow, jobs: Sequence[NewJob]
) -> tuple[Enqueued, ...]:
    """Insert a workflow with its jobs; see ``Store.start_workflow``."""
    with room.executor.transaction():
        answers = enqueue(room, jobs) if jobs else ()
        created = sum(answer.created for answer in answers)
        if created:
            stands_for = {job.id: answer.id for job, answer in zip(jobs, answers, strict=True)}
            steps = {name: stands_for[step] for name, step in workflow.steps.items()}
            _insert(room, workflow.id, name=workflow.name, steps=steps, size=created)
    return answers


def _insert(
    room: Room, workflow_id: UUID, *, name: str, steps: Mapping[str, UUID], size: int
) -> None:
    row = {
        "id": workflow_id,
        "name": name,
        "created_at": room.clock(),
        "steps": json.dumps({step: str(job_id) for step, job_id in steps.items()}),
        "size": size,
    }
    room.executor.execute(_INSERT, row)


def cancel_workflow(
    room: Room, workflow_id: UUID, *, actor: Actor, now: datetime
) -> WorkflowAnswer:
    """Cancel what is left of a workflow; see ``Store.cancel_workflow``."""
    return _Action(room, workflow_id, actor, now).run("cancel", _cancel)


def retry_workflow(
    room: Room, workflow_id: UUID, *, scope: RetryScope, actor: Actor, now: datetime
) -> WorkflowAnswer:
    """Bring failed members back in place; see ``Store.retry_workflow``."""
    action = _Action(room, workflow_id, actor, now)
    return action.run("retry", lambda it: _retry(it, scope), scope=scope.value)


def restart_workflow(
    room: Room, workflow_id: UUID, *, new_id: Callable[[], UUID], actor: Actor, now: datetime
) -> WorkflowAnswer:
    """Insert it all once more; see ``Store.restart_workflow``."""
    return _Action(room, workflow_id, actor, now).run("restart", lambda it: _restart(it, new_id))


class _CannotBeDone(Exception):
    """Undoes what an action has written so far."""

    def __init__(self, answer: WorkflowAnswer) -> None:
        super().__init__(answer.detail)
        self.answer = answer


@dataclass(slots=True)
class _Action:
    """One action on one workflow, and the transaction with its audit."""

    room: Room
    workflow_id: UUID
    actor: Actor
    now: datetime

    def run(
        self, name: str, act: Callable[[_Action], WorkflowAnswer], **more: object
    ) -> WorkflowAnswer:
        """Act, unless the workflow is gone, and write it down whatever came of it."""
        with self.room.executor.transaction():
            before = self.members()
            known = self.room.executor.fetch(_WORKFLOW, {"id": self.workflow_id})
            answer = self._attempt(act) if known else self.answer(ActionResult.GONE)
            after = _view(self.members()) | more
            if answer.restarted_as is not None:
                after["restarted_as"] = str(answer.restarted_as)
            audit = Audit(self.room, self.actor, self.now)
            target = ("workflow", str(self.workflow_id))
            audit.note(name, target, _view(before), after, answer.result)
            audit.write()
        return answer

    def _attempt(self, act: Callable[[_Action], WorkflowAnswer]) -> WorkflowAnswer:
        try:
            with self.room.executor.transaction():
                return act(self)
        except _CannotBeDone as refusal:
            return refusal.answer

    def members(self) -> dict[UUID, Standing]:
        """Return where each member stands."""
        uuid = self.room.executor.values.uuid
        rows = self.room.executor.fetch(_MEMBERS, {"id": self.workflow_id})
        return {
            uuid(job_id): Standing(JobState(state), None if cause is None else Cause(cause))
            for job_id, state, cause in rows
        }

    def answer(
        self,
        result: ActionResult,
        detail: str = "",
        *,
        jobs: Sequence[UUID] = (),
        restarted_as: UUID | None = None,
    ) -> WorkflowAnswer:
        """Return an answer about this workflow."""
        return WorkflowAnswer(
            workflow_id=self.workflow_id,
            result=result,
            detail=detail,
            jobs=tuple(jobs),
            restarted_as=restarted_as,
        )

    def refuse_shared_key(self, keys: Iterable[tuple[UUID, str | None]]) -> None:
        """Give up where two of the jobs have one unique key: only one of them can live."""
        shared = shared_key(keys)
        if shared is not None:
            raise self.conflict(*shared)

    def conflict(self, job_id: UUID, holder: UUID | str) -> _CannotBeDone:
        """Return what to raise when a live job holds the unique key of a member."""
        return _CannotBeDone(self.answer(ActionResult.CONFLICT, key_is_held(job_id, holder)))


def _view(members: Mapping[UUID, Standing]) -> dict[str, object]:
    counts = tally(member.state for member in members.values())
    return {str(state): count for state, count in counts.items()}


def _cancel(action: _Action) -> WorkflowAnswer:
    room, now = action.room, action.now
    alive = [job_id for job_id, member in action.members().items() if member.state not in TERMINAL]
    before, asked = cancel_each(room, alive, now=now)
    done = sorted(job.id for job in before.values() if job.state in CANCELLABLE)
    settle_dependents(room, done, now=now)
    if asked:
        announce_cancel(room)
    if not done and not asked:
        return action.answer(ActionResult.REFUSED, NOTHING_TO_CANCEL)
    result = ActionResult.DONE if done else ActionResult.REQUESTED
    return action.answer(result, jobs=sorted({*done, *asked}))


def _retry(action: _Action, scope: RetryScope) -> WorkflowAnswer:
    room = action.room
    known = list(action.members())
    edges = edges_into(room, known)
    flat: list[Edge] = [edge for found in edges.values() for edge in found]
    # Parents too: one that ends while we look would leave a job waiting for nobody.
    jobs = lock_jobs(room, {*known, *(edge.parent for edge in flat)})
    members = action.members()
    outside = {job.id: job.state for job in jobs.values() if job.id not in members}
    chosen = to_retry(members, flat, outside, scope=scope)
    if not chosen:
        return action.answer(ActionResult.REFUSED, NOTHING_TO_RETRY)
    action.refuse_shared_key((job_id, jobs[job_id].unique_key) for job_id in chosen)
    desk = Comeback(room, action.now, jobs, edges, {job.id: job.state for job in jobs.values()})
    parents = {child: [edge.parent for edge in found] for child, found in edges.items()}
    for job_id in parents_first(in_key_order(chosen, jobs), parents=parents):
        holder = desk.holder(jobs[job_id]) or desk.bring_back(jobs[job_id])
        if holder is not None:
            raise action.conflict(job_id, holder)
    desk.write()
    due = (jobs[job_id] for job_id in chosen if desk.states[job_id] is JobState.SCHEDULED)
    announce(room, [(job.queue, -job.priority) for job in due])
    return action.answer(ActionResult.DONE, jobs=sorted(chosen))


def _restart(action: _Action, new_id: Callable[[], UUID]) -> WorkflowAnswer:
    room = action.room
    # A retry that runs at the same time moves all members or none: whoever comes second waits.
    locked = lock_jobs(room, action.members())
    members = action.members()
    ((name, size, steps),) = room.executor.fetch(_WORKFLOW, {"id": action.workflow_id})
    size = len(members) if size is None else size
    if any(member.state not in TERMINAL for member in members.values()):
        return action.answer(ActionResult.REFUSED, STILL_ALIVE)
    if len(members) < size:
        return action.answer(ActionResult.REFUSED, partly_purged(size - len(members), size))
    # Another step took the place of a superseded one.
    again = [job_id for job_id in locked if members[job_id].cause is not Cause.SUPERSEDED]
    action.refuse_shared_key((job_id, locked[job_id].unique_key) for job_id in sorted(again))
    new = new_id()
    ids = {job_id: new_id() for job_id in sorted(again)}
    jobs = _copies(action, ids, new)
    for job_id, answer in zip(ids, enqueue(room, jobs), strict=True):
        if not answer.created:
            raise action.conflict(job_id, answer.id)
    named = json.loads(steps) if isinstance(steps, str) else steps or {}
    by_text = {str(job_id): again_as for job_id, again_as in ids.items()}
    kept = {step: by_text.get(job_id, job_id) for step, job_id in named.items()}
    _insert(room, new, name=name, steps=kept, size=len(ids))
    return action.answer(ActionResult.DONE, jobs=sorted(ids.values()), restarted_as=new)


def _copies(action: _Action, ids: Mapping[UUID, UUID], workflow: UUID) -> list[NewJob]:
    room = action.room
    uuid = room.executor.values.uuid
    edges = edges_into(room, list(ids))
    rows: dict[UUID, tuple[Any, ...]] = {
        uuid(row[0]): row for row in room.executor.fetch(_COPY, {"id": action.workflow_id})
    }
    return [
        _copy(
            rows[job_id],
            new,
            workflow=workflow,
            parents=[(ids.get(e.parent, e.parent), e.mode) for e in edges.get(job_id, ())],
            now=action.now,
        )
        for job_id, new in ids.items()
    ]


def _copy(
    row: tuple[Any, ...],
    new: UUID,
    *,
    workflow: UUID,
    parents: Sequence[tuple[UUID, Any]],
    now: datetime,
) -> NewJob:
    _id, wire_name, queue, priority, payload, version, tags, limit_key, unique_key = row
    return NewJob(
        id=new,
        wire_name=wire_name,
        queue=queue,
        payload=payload,
        payload_version=version,
        priority=-priority,
        due_at=now,
        tags=tags if isinstance(tags, str) else json.dumps(tags),
        limit_key=limit_key,
        unique_key=unique_key,
        if_duplicate=IfDuplicate.ALLOW,
        parents=tuple(parents),
        workflow=workflow,
    )
