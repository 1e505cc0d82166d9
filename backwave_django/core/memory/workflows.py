"""Workflows: inserting them, and what people do to one as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backwave_django.core.contract import ActionResult, WorkflowAnswer
from backwave_django.core.dependencies import birth, is_over
from backwave_django.core.jobs import IfDuplicate
from backwave_django.core.memory.endings import settle
from backwave_django.core.memory.intake import enqueue
from backwave_django.core.memory.rows import ActionRow, WorkflowRow
from backwave_django.core.states import CANCELLABLE, TERMINAL, Cause, JobState
from backwave_django.core.workflows import (
    NOTHING_TO_CANCEL,
    NOTHING_TO_RETRY,
    STILL_ALIVE,
    Edge,
    Standing,
    key_is_held,
    partly_purged,
    shared_key,
    tally,
    to_retry,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import Actor
    from backwave_django.core.jobs import Enqueued, NewJob
    from backwave_django.core.memory.rows import JobRow
    from backwave_django.core.memory.tables import Tables
    from backwave_django.core.workflows import NewWorkflow, RetryScope


def start_workflow(
    tables: Tables, workflow: NewWorkflow, jobs: Sequence[NewJob]
) -> tuple[Enqueued, ...]:
    """Insert a workflow with its jobs; see the contract."""
    answers = enqueue(tables, jobs)
    created = sum(answer.created for answer in answers)
    if created:
        stands_for = {job.id: answer.id for job, answer in zip(jobs, answers, strict=True)}
        tables.workflows[workflow.id] = WorkflowRow(
            name=workflow.name,
            created_at=tables.clock(),
            size=created,
            steps={name: stands_for[step] for name, step in workflow.steps.items()},
        )
    return answers


class WorkflowDesk:
    """The operator's side of one workflow, for one actor at one instant."""

    def __init__(self, tables: Tables, workflow_id: UUID, *, actor: Actor, now: datetime) -> None:
        self._tables = tables
        self._id = workflow_id
        self._actor = actor
        self._now = now
        members = (job for job in tables.jobs.values() if job.new.workflow == workflow_id)
        self._members = sorted(members, key=lambda job: job.id)

    def cancel(self) -> WorkflowAnswer:
        """Cancel what waits, ask what runs; dependents settle after all of them."""
        return self._audited("cancel", self._cancel)

    def retry(self, scope: RetryScope) -> WorkflowAnswer:
        """Bring failed members back in place."""
        return self._audited("retry", lambda: self._retry(scope), scope=scope.value)

    def restart(self, new_id: Callable[[], UUID]) -> WorkflowAnswer:
        """Insert it all once more."""
        return self._audited("restart", lambda: self._restart(new_id))

    def _cancel(self) -> WorkflowAnswer:
        tables = self._tables
        waiting = [job for job in self._members if job.state in CANCELLABLE]
        running = [lease for job in self._members if (lease := tables.lease_of.get(job.id))]
        for job in waiting:
            tables.end_waiting(job, JobState.CANCELLED, cause=Cause.OPERATOR, at=self._now)
        for lease in running:
            lease.cancel_requested = True
        settle(tables, [job.id for job in waiting], now=self._now)
        moved = [*(job.id for job in waiting), *(lease.job_id for lease in running)]
        if not moved:
            return self._answer(ActionResult.REFUSED, NOTHING_TO_CANCEL)
        result = ActionResult.DONE if waiting else ActionResult.REQUESTED
        return self._answer(result, jobs=sorted(moved))

    def _retry(self, scope: RetryScope) -> WorkflowAnswer:
        tables = self._tables
        edges = self._edges()
        known = {job.id for job in self._members}
        outside = {
            edge.parent: state
            for edge in edges
            if edge.parent not in known and (state := tables.state_of(edge.parent)) is not None
        }
        chosen = to_retry(
            {job.id: Standing(_state(job), job.cause) for job in self._members},
            edges,
            outside,
            scope=scope,
        )
        if not chosen:
            return self._answer(ActionResult.REFUSED, NOTHING_TO_RETRY)
        back = [tables.jobs[job_id] for job_id in chosen]
        in_the_way = self._holder_in_the_way(back)
        if in_the_way is not None:
            return self._answer(ActionResult.CONFLICT, key_is_held(*in_the_way))
        for job in back:
            self._bring_back(job)
        return self._answer(ActionResult.DONE, jobs=sorted(chosen))

    def _holder_in_the_way(self, jobs: Sequence[JobRow]) -> tuple[UUID, UUID] | None:
        """Return a job that cannot have its unique key, and who has it: one of them, or another."""
        shared = shared_key((job.id, job.new.unique_key) for job in jobs)
        if shared is not None:
            return shared
        held = ((job.id, self._tables.live_keys.get(job.new.unique_key or "")) for job in jobs)
        return next(((job_id, holder) for job_id, holder in held if holder is not None), None)

    def _bring_back(self, job: JobRow) -> None:
        edges = list(self._tables.parents.get(job.id, {}).values())
        states = {edge.parent: self._tables.state_of(edge.parent) for edge in edges}
        for edge in edges:
            edge.settled = is_over(states[edge.parent])
        born = birth((edge.mode, states[edge.parent]) for edge in edges)
        self._tables.move(job, born.state, at=self._now)
        job.pending_parents = born.pending
        job.spent, job.due_at, job.deadline, job.unroutable_since = 0, self._now, None, None
        job.output = None

    def _restart(self, new_id: Callable[[], UUID]) -> WorkflowAnswer:
        tables = self._tables
        row = tables.workflows[self._id]
        if any(job.state not in TERMINAL for job in self._members):
            return self._answer(ActionResult.REFUSED, STILL_ALIVE)
        if len(self._members) < row.size:
            detail = partly_purged(row.size - len(self._members), row.size)
            return self._answer(ActionResult.REFUSED, detail)
        # Another step took the place of a superseded one.
        again = [job for job in self._members if job.cause is not Cause.SUPERSEDED]
        in_the_way = self._holder_in_the_way(again)
        if in_the_way is not None:
            return self._answer(ActionResult.CONFLICT, key_is_held(*in_the_way))
        new = new_id()
        ids = {job.id: new_id() for job in again}
        enqueue(tables, [self._anew(job, ids, new) for job in again])
        tables.workflows[new] = WorkflowRow(
            name=row.name,
            created_at=tables.clock(),
            size=len(again),
            steps={name: ids.get(step, step) for name, step in row.steps.items()},
        )
        return self._answer(ActionResult.DONE, jobs=sorted(ids.values()), restarted_as=new)

    def _anew(self, job: JobRow, ids: Mapping[UUID, UUID], workflow: UUID) -> NewJob:
        edges = self._tables.parents.get(job.id, {}).values()
        return replace(
            job.new,
            id=ids[job.id],
            workflow=workflow,
            due_at=self._now,
            deadline=None,
            tags=job.tags,
            if_duplicate=IfDuplicate.ALLOW,
            parents=tuple((ids.get(edge.parent, edge.parent), edge.mode) for edge in edges),
            schedule=None,
            scheduled_for=None,
            trace=None,
        )

    def _edges(self) -> list[Edge]:
        return [
            Edge(edge.parent, edge.child, edge.mode)
            for job in self._members
            for edge in self._tables.parents.get(job.id, {}).values()
        ]

    def _answer(
        self,
        result: ActionResult,
        detail: str = "",
        *,
        jobs: Sequence[UUID] = (),
        restarted_as: UUID | None = None,
    ) -> WorkflowAnswer:
        return WorkflowAnswer(
            workflow_id=self._id,
            result=result,
            detail=detail,
            jobs=tuple(jobs),
            restarted_as=restarted_as,
        )

    def _audited(
        self, action: str, act: Callable[[], WorkflowAnswer], **more: object
    ) -> WorkflowAnswer:
        """Act, unless the workflow is gone, and write it down whatever came of it."""
        before = self._view()
        known = self._id in self._tables.workflows
        answer = act() if known else self._answer(ActionResult.GONE)
        after = self._view() | more
        if answer.restarted_as is not None:
            after["restarted_as"] = str(answer.restarted_as)
        actor = self._actor
        self._tables.actions.append(
            ActionRow(
                self._now,
                actor.name,
                actor.source,
                actor.user_id,
                action,
                "workflow",
                str(self._id),
                actor.reason,
                before,
                after,
                answer.result.value,
            )
        )
        return answer

    def _view(self) -> dict[str, object]:
        counts = tally(_state(job) for job in self._members)
        return {str(state): count for state, count in counts.items()}


def _state(job: JobRow) -> JobState:
    assert job.state is not None
    return job.state
