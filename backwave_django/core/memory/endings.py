"""How leases end, and what the end of a job does to those that wait for it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from backwave_django.core.bounds import MAX_SETTLED_IN_REPORT
from backwave_django.core.dependencies import is_dead, released_due
from backwave_django.core.memory.rows import OutcomeRow
from backwave_django.core.outcomes import BODILESS, SPENDING, OutcomeKind
from backwave_django.core.retries import Retry, due_after_loss
from backwave_django.core.states import TERMINAL, Cause, JobState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.memory.rows import EdgeRow, JobRow, LeaseRow
    from backwave_django.core.memory.tables import Tables
    from backwave_django.core.outcomes import Failure


class Ending(NamedTuple):
    """Where a job goes when its lease ends: to be scheduled again, or to rest with a cause."""

    state: JobState
    due_at: datetime | None = None
    cause: Cause | None = None


class Record(NamedTuple):
    """What the history says about the end of a lease."""

    kind: OutcomeKind
    started_at: datetime
    finished_at: datetime
    failure: Failure | None = None
    log: str | None = None


def end_lease(
    tables: Tables, lease: LeaseRow, ending: Ending, record: Record, *, now: datetime
) -> JobState:
    """End a lease and return its job's state; a requested cancellation beats all but success."""
    job = tables.jobs[lease.job_id]
    if lease.cancel_requested and ending.state is not JobState.SUCCEEDED:
        ending = Ending(JobState.CANCELLED, cause=Cause.OPERATOR)
    tables.append(
        OutcomeRow(
            job_id=job.id,
            run=lease.run,
            attempt=job.spent + 1,
            kind=record.kind,
            state=ending.state,
            cause=ending.cause,
            pump_id=lease.pump_id,
            started_at=record.started_at,
            finished_at=record.finished_at,
            failure=record.failure,
            log=record.log,
            next_due_at=ending.due_at,
        )
    )
    tables.drop_lease(lease)
    tables.move(job, ending.state, at=now, cause=ending.cause)
    job.spent += record.kind in SPENDING
    job.due_at = ending.due_at or job.due_at
    return ending.state


def note_body(job: JobRow, kind: OutcomeKind) -> None:
    """Stop the clock of hand-backs when a body ran after all."""
    if kind not in BODILESS:
        job.unroutable_since = None


def lapse(tables: Tables, lease: LeaseRow, *, now: datetime) -> JobState:
    """End a lease whose pump is gone: a spent attempt, under the numbers of the lease."""
    job = tables.jobs[lease.job_id]
    policy = Retry.decode(lease.retry)
    due_at = due_after_loss(policy, job_id=job.id, attempt=job.spent + 1, now=now)
    ending = Ending(JobState.DEAD_LETTERED, cause=Cause.ATTEMPTS)
    if due_at is not None:
        ending = Ending(JobState.SCHEDULED, due_at=due_at)
    note_body(job, OutcomeKind.LAPSED)
    record = Record(OutcomeKind.LAPSED, lease.acquired_at, now)
    return end_lease(tables, lease, ending, record, now=now)


def end_leases(tables: Tables, endings: Iterable[tuple[UUID, JobState]], *, now: datetime) -> int:
    """Settle what waits for the jobs that rest now; return how many leases ended."""
    ended = tuple(endings)
    settle(tables, (job_id for job_id, state in ended if state in TERMINAL), now=now)
    return len(ended)


def settle(tables: Tables, ended: Iterable[UUID], *, now: datetime) -> None:
    """Settle the edges out of ``ended`` jobs, and of those that are cancelled by it.

    At most ``MAX_SETTLED_IN_REPORT`` edges; a parent with edges left goes into the settle queue.
    """
    parents = deque(ended)
    left = MAX_SETTLED_IN_REPORT
    while parents:
        parent = parents.popleft()
        for edge in tables.open_edges(parent):
            if left == 0 or tables.is_held(edge.child):
                tables.settle_queue[parent] = None
                continue
            left -= 1
            if _settle_edge(tables, edge, now=now):
                parents.append(edge.child)


def _settle_edge(tables: Tables, edge: EdgeRow, *, now: datetime) -> bool:
    """Mark one edge; tell whether it cancelled the child."""
    child = tables.jobs[edge.child]
    edge.settled = True
    child.pending_parents -= 1
    if child.state is not JobState.AWAITING:
        return False
    if is_dead(edge.mode, tables.state_of(edge.parent)):
        tables.end_waiting(child, JobState.CANCELLED, cause=Cause.PARENT, at=now)
        return True
    if child.pending_parents == 0:
        tables.move(child, JobState.SCHEDULED, at=now)
        child.due_at = released_due(child.due_at, now=now)
    return False
