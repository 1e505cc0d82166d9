"""Claim: which due jobs may start, in which order, and when to look again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backwave_django.core.contract import ClaimAnswer
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.memory.rows import LeaseRow
from backwave_django.core.states import JobState

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.core.memory.rows import JobRow
    from backwave_django.core.memory.tables import Tables


@dataclass(slots=True)
class _Room:
    """How many more jobs of each limited queue and limit key may be leased."""

    tables: Tables
    by_queue: Counter[str]
    by_key: Counter[str | None]

    def take(self, job: JobRow) -> bool:
        queue, key = job.new.queue, job.new.limit_key
        row = self.tables.queues.get(queue)
        if row is not None and row.limit is not None and self.by_queue[queue] >= row.limit:
            return False
        cap = self.tables.limits.get(key) if key is not None else None
        if cap is not None and self.by_key[key] >= cap.limit:
            return False
        self.by_queue[queue] += 1
        self.by_key[key] += 1
        return True


def claim(tables: Tables, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
    """Lease due jobs; see the contract."""
    served = _served(tables, request, now=now)
    leases = tables.leases.values()
    room = _Room(
        tables,
        Counter(lease.queue for lease in leases),
        Counter(lease.limit_key for lease in leases),
    )
    jobs: list[LeasedJob] = []
    cursor = request.key_cursor
    for job in _due(tables, served, cursor, now=now):
        if len(jobs) == request.limit:
            break
        if room.take(job):
            jobs.append(_lease(tables, job, request, now=now))
            cursor = job.new.limit_key or cursor
    return ClaimAnswer(
        jobs=tuple(jobs),
        short=len(jobs) < request.limit,
        next_due=_next_due(tables, served, now=now),
        clock=tables.clock(),
        key_cursor=cursor,
    )


def _served(tables: Tables, request: ClaimRequest, *, now: datetime) -> dict[str, int]:
    """Return the queues that may be claimed from, each with its place in the order."""
    places: dict[str, int] = {}
    for name in request.queues:
        row = tables.queues.get(name)
        if row is None or not row.is_paused(now=now):
            places.setdefault(name, len(places))
    return places


def _due(tables: Tables, served: dict[str, int], cursor: str, *, now: datetime) -> list[JobRow]:
    due = [
        job
        for job in tables.free_jobs(JobState.SCHEDULED)
        if job.new.queue in served
        and job.due_at <= now
        and (job.deadline is None or job.deadline > now)
    ]

    def place(job: JobRow) -> tuple[int, int, bool, bool, str, datetime, UUID]:
        key = job.new.limit_key
        rotated = ((key or "") <= cursor, key or "")
        queue = served[job.new.queue]
        return (queue, -job.new.priority, key is not None, *rotated, job.due_at, job.id)

    return sorted(due, key=place)


def _lease(tables: Tables, job: JobRow, request: ClaimRequest, *, now: datetime) -> LeasedJob:
    policy = request.retries.of(job.new.wire_name)
    tables.move(job, JobState.LEASED, at=now)
    job.run += 1
    job.max_attempts = policy.max_attempts
    lease = LeaseRow(
        id=tables.ids(),
        job_id=job.id,
        queue=job.new.queue,
        limit_key=job.new.limit_key,
        pump_id=request.pump_id,
        run=job.run,
        acquired_at=now,
        expires_at=now + request.lease_duration,
        retry=policy.encode(),
    )
    tables.add_lease(lease)
    return _leased_job(job, lease)


def _leased_job(job: JobRow, lease: LeaseRow) -> LeasedJob:
    return LeasedJob(
        lease_id=lease.id,
        job_id=job.id,
        wire_name=job.new.wire_name,
        queue=job.new.queue,
        run=job.run,
        spent=job.spent,
        payload=job.new.payload,
        payload_version=job.new.payload_version,
        tags=job.tags,
        due_at=job.due_at,
        deadline=job.deadline,
        limit_key=job.new.limit_key,
        unroutable_since=job.unroutable_since,
        schedule=job.new.schedule,
        scheduled_for=job.new.scheduled_for,
        workflow=job.new.workflow,
        trace=job.new.trace,
        retry=lease.retry,
        expires_at=lease.expires_at,
    )


def _next_due(tables: Tables, served: dict[str, int], *, now: datetime) -> datetime | None:
    """Return when a poll may find something. What is due and still there was withheld."""
    waiting = tables.by_state[JobState.SCHEDULED].values()
    instants = [max(job.due_at, now) for job in waiting if job.new.queue in served]
    return min(instants, default=None)
