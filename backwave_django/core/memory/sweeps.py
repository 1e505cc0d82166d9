"""Maintenance: leases that lapsed or were lost, edges and deadlines left over, and the purge."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from backwave_django.core.contract import SweepAnswer
from backwave_django.core.dependencies import is_over
from backwave_django.core.memory.endings import (
    Ending,
    Record,
    end_lease,
    end_leases,
    lapse,
    settle,
)
from backwave_django.core.memory.rows import OutcomeRow
from backwave_django.core.memory.tables import LIVE
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.memory.rows import JobRow, LeaseRow
    from backwave_django.core.memory.tables import Tables


def recover(tables: Tables, *, pump_id: UUID, held: Sequence[UUID], now: datetime) -> SweepAnswer:
    """Release what the pump owns and does not hold; see the contract."""
    known = set(held)
    lost = [
        lease
        for lease in _leases_of(tables, {pump_id})
        if lease.id not in known and lease.acquired_at <= now
    ]
    released = [(lease.job_id, _release(tables, lease, now=now)) for lease in lost]
    return _swept(tables, end_leases(tables, released, now=now))


def dispose(tables: Tables, *, pumps: Sequence[UUID], now: datetime) -> SweepAnswer:
    """End the leases of dead pumps; see the contract."""
    lost = _leases_of(tables, set(pumps))
    lapsed = [(lease.job_id, lapse(tables, lease, now=now)) for lease in lost]
    return _swept(tables, end_leases(tables, lapsed, now=now))


def expire_leases(tables: Tables, *, limit: int, now: datetime) -> SweepAnswer:
    """End lapsed leases and put back leaseless jobs; see the contract."""
    lapsed = sorted(
        (lease for lease in _free_leases(tables) if _is_lapsed(tables, lease, now=now)),
        key=lambda lease: (lease.expires_at, lease.job_id),
    )[:limit]
    ended = [(lease.job_id, lapse(tables, lease, now=now)) for lease in lapsed]
    count = end_leases(tables, ended, now=now)
    leaseless = sorted(
        job.id for job in tables.free_jobs(JobState.LEASED) if job.id not in tables.lease_of
    )
    for job_id in leaseless[: limit - count]:
        _put_back(tables, tables.jobs[job_id], now=now)
        count += 1
    return _swept(tables, count, limit=limit)


def settle_queue(tables: Tables, *, limit: int, now: datetime) -> SweepAnswer:
    """Drain the settle queue, then end passed deadlines; see the contract."""
    over = (parent for parent in tables.settle_queue if is_over(tables.state_of(parent)))
    parents = tuple(islice(over, limit))
    for parent in parents:
        del tables.settle_queue[parent]
    # What it cannot finish goes back into the queue by itself.
    settle(tables, parents, now=now)
    late = _late(tables, limit=limit, now=now)
    for job in late:
        state = JobState.DEAD_LETTERED if job.run else JobState.EXPIRED
        tables.end_waiting(job, state, cause=Cause.DEADLINE, at=now, kind=OutcomeKind.EXPIRED)
    settle(tables, [job.id for job in late], now=now)
    full = limit in {len(parents), len(late)}
    return SweepAnswer(count=len(parents) + len(late), full=full, clock=tables.clock())


def purge(tables: Tables, *, limit: int, now: datetime) -> SweepAnswer:
    """Delete what is past its retention; see the contract."""
    retention = tables.settings.retention
    living = {job.new.workflow for state in LIVE for job in tables.by_state[state].values()}
    old = sorted(
        (job.terminal_at, job.id)
        for state, horizon in retention.horizons(now=now)
        for job in tables.free_jobs(state)
        if job.terminal_at is not None
        and job.terminal_at < horizon
        and (job.new.workflow is None or job.new.workflow not in living)
        and not _has_live_child(tables, job)
    )
    emptied = {tables.jobs[job_id].new.workflow for _, job_id in old[:limit]}
    for _, job_id in old[:limit]:
        tables.forget(tables.jobs[job_id])
    for workflow_id in emptied - {job.new.workflow for job in tables.jobs.values()}:
        tables.workflows.pop(workflow_id, None)  # type: ignore[arg-type]  # None is no key
    if retention.operator_actions is not None:
        kept = now - retention.operator_actions
        tables.actions[:] = [action for action in tables.actions if action.at >= kept]
    if retention.dead_pumps is not None:
        _forget_pumps(tables, before=now - retention.dead_pumps)
    return _swept(tables, len(old[:limit]), limit=limit)


def _swept(tables: Tables, count: int, *, limit: int | None = None) -> SweepAnswer:
    return SweepAnswer(count=count, full=count == limit, clock=tables.clock())


def _free_leases(tables: Tables) -> list[LeaseRow]:
    leases = tables.leases.values()
    return [lease for lease in leases if not tables.is_held(lease.id, lease.job_id)]


def _leases_of(tables: Tables, pumps: set[UUID]) -> list[LeaseRow]:
    leases = [lease for lease in _free_leases(tables) if lease.pump_id in pumps]
    return sorted(leases, key=lambda lease: lease.job_id)


def _is_lapsed(tables: Tables, lease: LeaseRow, *, now: datetime) -> bool:
    if lease.expires_at > now:
        return False
    pump = tables.pumps.get(lease.pump_id)
    # A pump that lives and has not renewed is likely held up by a lock on this one row.
    spared = (
        pump is not None
        and pump.is_live(now=now)
        and now < lease.expires_at + pump.info.lease_duration
    )
    return not spared


def _release(tables: Tables, lease: LeaseRow, *, now: datetime) -> JobState:
    record = Record(OutcomeKind.RELEASED, lease.acquired_at, now)
    ending = Ending(JobState.SCHEDULED, due_at=now)
    return end_lease(tables, lease, ending, record, now=now)


def _put_back(tables: Tables, job: JobRow, *, now: datetime) -> None:
    """Schedule a job again that lost its lease row. No claimed run ends here: none is named."""
    tables.append(
        OutcomeRow(
            job_id=job.id,
            run=None,
            attempt=job.spent + 1,
            kind=OutcomeKind.RELEASED,
            state=JobState.SCHEDULED,
            cause=None,
            finished_at=now,
            next_due_at=now,
        )
    )
    tables.move(job, JobState.SCHEDULED, at=now)
    job.due_at = now


def _late(tables: Tables, *, limit: int, now: datetime) -> list[JobRow]:
    late = sorted(
        (job.deadline, job.id)
        for job in tables.free_jobs(JobState.SCHEDULED)
        if job.deadline is not None and job.deadline <= now
    )
    return [tables.jobs[job_id] for _, job_id in late[:limit]]


def _has_live_child(tables: Tables, job: JobRow) -> bool:
    return any(tables.state_of(child) in LIVE for child in tables.children.get(job.id, ()))


def _forget_pumps(tables: Tables, *, before: datetime) -> None:
    owners = {lease.pump_id for lease in tables.leases.values()}
    for pump_id, pump in tuple(tables.pumps.items()):
        if pump.seen_at < before and pump_id not in owners:
            del tables.pumps[pump_id]
