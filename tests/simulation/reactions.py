"""Those who observe ends, workflows as a whole, and what must hold of both."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from backwave_django.core.contract import ActionResult
from backwave_django.core.jobs import NewJob
from backwave_django.core.observing import Ended
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import CANCELLABLE, TERMINAL, JobState
from tests.simulation.oracles import MARK, invariant

if TYPE_CHECKING:
    from tests.simulation.steps import Step


class Audience:
    """Wants to know of every job that ends in one of ``states``, and gets one job for each."""

    def __init__(self, states: list[str], new_id: Callable[[], UUID]) -> None:
        self.states = frozenset(map(JobState, states))
        self._new_id = new_id

    def jobs(self, ended: Ended) -> tuple[NewJob, ...]:
        if ended.state not in self.states or MARK in json.loads(ended.tags):
            return ()
        mark = json.dumps({MARK: str(ended.job_id)})
        new = NewJob(
            id=self._new_id(), wire_name="twice", queue=ended.queue, payload="{}", tags=mark
        )
        return (new,)


def observed_by(job: NewJob) -> UUID | None:
    """Whose end a job was made for, if it is an observer's."""
    told = json.loads(job.tags).get(MARK)
    return told and UUID(told)


def ended_now(step: "Step") -> Iterator[UUID]:
    """The jobs that this step brought to an end."""
    for job_id, before, after in step.changed:
        if after.state in TERMINAL and (before is None or before.state not in TERMINAL):
            yield job_id


@invariant("observer-at-least-once")
def each_observed_end_makes_one_job(step: "Step") -> Iterator[str]:
    jobs, wanted = step.tables.jobs, step.tables.settings.observers.states
    due = Counter(
        job_id
        for job_id in ended_now(step)
        if step.after[job_id].state in wanted and observed_by(jobs[job_id].new) is None
    )
    made = Counter(
        told
        for job_id, before, _ in step.changed
        if before is None and (told := observed_by(jobs[job_id].new)) is not None
    )
    for job_id in due.keys() | made.keys():
        if due[job_id] != made[job_id]:
            yield f"job {job_id.int} ended {due[job_id]} times, {made[job_id]} jobs tell of it"


@invariant("workflow-cancel-complete")
def a_cancelled_workflow_comes_to_rest(step: "Step") -> Iterator[str]:
    if step.kind != "cancel workflow":
        return
    for job in step.tables.jobs.values():
        if job.new.workflow is None or job.new.workflow != step.answer.workflow_id:
            continue
        lease = step.tables.lease_of.get(job.id)
        if job.state in CANCELLABLE or (lease is not None and not lease.cancel_requested):
            yield f"job {job.id.int} goes on although its workflow was cancelled"


@invariant("first-loss-waits-for-nothing")
def losses_come_back_in_time(step: "Step") -> Iterator[str]:
    for job_id, _, _ in step.changed:
        for row in step.rows(job_id):
            if row.kind is not OutcomeKind.LAPSED or row.next_due_at is None:
                continue
            waits = row.next_due_at > row.finished_at
            hasty = step.tables.jobs[job_id].new.wire_name == "hasty"
            if waits if row.attempt == 1 or hasty else not waits:
                yield f"job {job_id.int} lost attempt {row.attempt}: due at {row.next_due_at}"


def situations(step: "Step") -> Iterator[str]:
    """Name what a step was an example of."""
    for job_id, before, _ in step.changed:
        for row in step.rows(job_id):
            if row.kind is OutcomeKind.LAPSED and row.next_due_at is not None:
                yield "first loss" if row.attempt == 1 else "later loss"
        if before is None and observed_by(step.tables.jobs[job_id].new) is not None:
            loss = step.kind in {"ExpireLeases", "Dispose"}
            yield "observer: told of a loss" if loss else "observer: told"
    yield from _of_observers(step)
    if step.kind.endswith(" workflow"):
        yield from _of_workflow(step)


def _of_observers(step: "Step") -> Iterator[str]:
    for job_id in ended_now(step):
        if observed_by(step.tables.jobs[job_id].new) is not None:
            yield "observer: its own end is told to none"


def _of_workflow(step: "Step") -> Iterator[str]:
    result = step.answer.result
    if result in {ActionResult.REFUSED, ActionResult.CONFLICT, ActionResult.GONE}:
        yield f"workflow: {result}"
    if step.kind == "restart workflow" and result is ActionResult.DONE:
        yield "workflow: made anew"
    if any(b is not None and b.state is JobState.SUCCEEDED for _, b, _ in step.changed):
        yield "workflow: a success runs again"
