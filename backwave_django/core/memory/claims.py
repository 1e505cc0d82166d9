"""Claim: which due jobs may start, in which order, and when to look again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backwave_django.core.contract import ClaimAnswer
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.limits import CODE, UNLIMITED
from backwave_django.core.memory.rows import LeaseRow, LimitRow
from backwave_django.core.states import JobState

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.core.limits import Cap
    from backwave_django.core.memory.rows import JobRow
    from backwave_django.core.memory.tables import Tables


@dataclass(slots=True)
class _Room:
    """How many more jobs of each limited queue and limit key may be leased."""

    tables: Tables
    now: datetime
    by_queue: Counter[str]
    by_key: Counter[str | None]
    caps: dict[str, Cap] = field(default_factory=dict)

    def take(self, job: JobRow) -> bool:
        queue, key = job.new.queue, job.new.limit_key
        of_queue, cap = self._cap_of_queue(queue), self._cap(key)
        if of_queue.number is not None and self.by_queue[queue] >= of_queue.number:
            return False
        if cap.number is not None and self.by_key[key] >= cap.number:
            return False
        if self.next_token(queue, key) > self.now:
            return False
        self.by_queue[queue] += 1
        self.by_key[key] += 1
        self._spend(queue, key)
        return True

    def next_token(self, queue: str, key: str | None) -> datetime:
        """Return when the rates of a queue and a key let another job start."""
        at, rate = self.now, self._cap_of_queue(queue).rate
        if rate is not None:
            full_at = self.tables.queue(queue).rate_full_at
            at = max(at, rate.next_token(full_at, now=self.now))
        rate, own = self._cap(key).rate, self.tables.limits.get(key or "")
        if rate is not None and own is not None:
            at = max(at, rate.next_token(own.rate_full_at, now=self.now))
        return at

    def _cap_of_queue(self, queue: str) -> Cap:
        row = self.tables.queues.get(queue)
        return UNLIMITED if row is None else row.cap

    def _cap(self, key: str | None) -> Cap:
        if key is None:
            return UNLIMITED
        if key not in self.caps:
            self.caps[key] = self.tables.cap_of(key)
        return self.caps[key]

    def _spend(self, queue: str, key: str | None) -> None:
        """Take a token from each bucket that concerns a job."""
        rate = self._cap_of_queue(queue).rate
        if rate is not None:
            row = self.tables.queue(queue)
            row.rate_full_at = rate.taken(row.rate_full_at, 1, now=self.now)
        rate = self._cap(key).rate
        if key is not None and rate is not None:
            own = self.tables.limits.get(key, LimitRow(None, CODE))
            full_at = rate.taken(own.rate_full_at, 1, now=self.now)
            self.tables.limits[key] = own._replace(rate_full_at=full_at)


def claim(tables: Tables, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
    """Lease due jobs; see the contract."""
    served = _served(tables, request, now=now)
    leases = tables.leases.values()
    room = _Room(
        tables,
        now,
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
        next_due=_next_due(room, request, served),
        clock=tables.clock(),
        key_cursor=cursor,
    )


def _served(tables: Tables, request: ClaimRequest, *, now: datetime) -> dict[str, int]:
    """Return the queues that may be claimed from, each with its place in the order."""
    places: dict[str, int] = {}
    for name in request.queues:
        row = tables.queues.get(name)
        if row is None or not (row.is_paused(now=now) or row.opens_at(now=now)):
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


def _next_due(room: _Room, request: ClaimRequest, served: dict[str, int]) -> datetime | None:
    """Return when a poll may find something. What is due and still there was withheld."""
    tables, now = room.tables, room.now
    lanes: dict[tuple[str, int, str | None], datetime] = {}
    closed: set[str] = set()
    for job in tables.by_state[JobState.SCHEDULED].values():
        queue, key = job.new.queue, job.new.limit_key
        if queue in served:
            lane = (queue, job.new.priority, key)
            lanes[lane] = min(lanes.get(lane, job.due_at), job.due_at)
        elif queue in request.queues:
            closed.add(queue)
    instants = [
        due_at if due_at > now else room.next_token(queue, key)
        for (queue, _, key), due_at in lanes.items()
    ]
    # A closed queue that holds anything is looked at when it opens.
    for row in (tables.queues[name] for name in closed):
        opens_at = None if row.is_paused(now=now) else row.opens_at(now=now)
        instants += [] if opens_at is None else [opens_at]
    return min(instants, default=None)
