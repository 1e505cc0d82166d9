"""The tables of the reference store, and the few ways in which rows change.

What must hold of every row is asserted here, always: no verb can get round it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backwave_django.core.contract import History
from backwave_django.core.limits import PATTERN, governing
from backwave_django.core.memory.rows import OutcomeRow, QueueRow
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import TERMINAL, JobState, is_legal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import StoreSettings
    from backwave_django.core.limits import Cap
    from backwave_django.core.memory.rows import (
        ActionRow,
        EdgeRow,
        JobRow,
        LeaseRow,
        LimitRow,
        PumpRow,
        WorkflowRow,
    )
    from backwave_django.core.schedule_rows import ScheduleRow
    from backwave_django.core.states import Cause

LIVE = frozenset(JobState) - TERMINAL


@dataclass(slots=True, kw_only=True)
class Tables:
    """Rows by id, and the indexes that keep the verbs short.

    Between calls: a job is in ``by_state`` under its state alone; a lease exists exactly while
    its job is leased; a live job with a unique key holds it in ``live_keys``; a job's
    ``pending_parents`` counts its unsettled incoming edges.
    """

    clock: Callable[[], datetime]
    ids: Callable[[], UUID]
    settings: StoreSettings
    jobs: dict[UUID, JobRow] = field(default_factory=dict)
    by_state: dict[JobState, dict[UUID, JobRow]] = field(
        default_factory=lambda: {state: {} for state in JobState}
    )
    live_keys: dict[str, UUID] = field(default_factory=dict)
    leases: dict[UUID, LeaseRow] = field(default_factory=dict)
    lease_of: dict[UUID, LeaseRow] = field(default_factory=dict)
    outcomes: dict[UUID, list[OutcomeRow]] = field(default_factory=dict)
    children: dict[UUID, dict[UUID, EdgeRow]] = field(default_factory=dict)
    parents: dict[UUID, dict[UUID, EdgeRow]] = field(default_factory=dict)
    settle_queue: dict[UUID, None] = field(default_factory=dict)
    queues: dict[str, QueueRow] = field(default_factory=dict)
    limits: dict[str, LimitRow] = field(default_factory=dict)
    pumps: dict[UUID, PumpRow] = field(default_factory=dict)
    actions: list[ActionRow] = field(default_factory=list)
    schedules: dict[str, ScheduleRow] = field(default_factory=dict)
    workflows: dict[UUID, WorkflowRow] = field(default_factory=dict)
    endings: list[OutcomeRow] = field(default_factory=list)
    held: set[UUID] = field(default_factory=set)
    held_schedules: set[str] = field(default_factory=set)

    def state_of(self, job_id: UUID) -> JobState | None:
        """Return the job's state, or ``None`` when it is gone."""
        job = self.jobs.get(job_id)
        return None if job is None else job.state

    def move(
        self, job: JobRow, state: JobState, *, at: datetime, cause: Cause | None = None
    ) -> None:
        """Bring a job into ``state``, along an edge of the transition table."""
        over = state in TERMINAL
        assert is_legal(job.state, state), f"legal-transition: {job.state} to {state}"
        assert (cause is not None) == over, f"terminal-stamped: {state} with cause {cause}"
        if job.state is None:
            self.jobs[job.id] = job
        else:
            del self.by_state[job.state][job.id]
        self.by_state[state][job.id] = job
        job.state, job.cause = state, cause
        job.terminal_at = at if over else None
        self._hold_key(job, live=not over)

    def _hold_key(self, job: JobRow, *, live: bool) -> None:
        key = job.new.unique_key
        if key is None:
            return
        holder = self.live_keys.get(key)
        if live:
            assert holder in {None, job.id}, f"unique-key-holds: {key!r} is held by {holder}"
            self.live_keys[key] = job.id
        elif holder == job.id:
            del self.live_keys[key]

    def add_lease(self, lease: LeaseRow) -> None:
        """Keep a new lease."""
        assert lease.job_id not in self.lease_of, f"no-double-lease: {lease.job_id}"
        self.leases[lease.id] = self.lease_of[lease.job_id] = lease

    def drop_lease(self, lease: LeaseRow) -> None:
        """Delete a lease: from here on everything that was produced under it is stale."""
        del self.leases[lease.id]
        del self.lease_of[lease.job_id]

    def add_edge(self, edge: EdgeRow) -> None:
        """Keep a new edge."""
        self.children.setdefault(edge.parent, {})[edge.child] = edge
        self.parents.setdefault(edge.child, {})[edge.parent] = edge

    def open_edges(self, parent_id: UUID) -> list[EdgeRow]:
        """Return the unsettled edges out of a job, by child."""
        edges = self.children.get(parent_id, {})
        return [edges[child] for child in sorted(edges) if not edges[child].settled]

    def append(self, row: OutcomeRow) -> None:
        """Add to a job's history, as far as history is kept, and note an end to react to."""
        if row.cause is not None and row.state in self.settings.observers.states:
            self.endings.append(row)
        history = self.settings.history
        rows = self.outcomes.setdefault(row.job_id, [])
        taken = {other.run for other in rows if other.run is not None}
        assert row.run not in taken, f"one-outcome-per-run: run {row.run} of {row.job_id}"
        if history is not History.OFF:
            rows.append(row if history is History.DETAIL else _without_detail(row))

    def end_waiting(
        self,
        job: JobRow,
        state: JobState,
        *,
        cause: Cause,
        at: datetime,
        kind: OutcomeKind = OutcomeKind.CANCELLED,
    ) -> None:
        """End a job that no lease is held on, and write that down."""
        self.append(
            OutcomeRow(
                job_id=job.id,
                run=None,
                attempt=job.spent + 1,
                kind=kind,
                state=state,
                cause=cause,
                finished_at=at,
            )
        )
        self.move(job, state, at=at, cause=cause)

    def free_jobs(self, *states: JobState) -> Iterator[JobRow]:
        """Go through the jobs in ``states`` that no other transaction holds."""
        for state in states:
            for job in tuple(self.by_state[state].values()):
                if not self.is_held(job.id):
                    yield job

    def is_held(self, *row_ids: UUID) -> bool:
        """Tell whether another transaction holds one of these rows."""
        return not self.held.isdisjoint(row_ids)

    def queue(self, name: str) -> QueueRow:
        """Return the switches of a queue, a fresh row when nobody touched them yet."""
        return self.queues.setdefault(name, QueueRow())

    def cap_of(self, key: str) -> Cap:
        """Return what limits a key: its own row, or a pattern."""
        row = self.limits.get(key)
        own = None if row is None else (row.cap, row.source)
        return governing(key, own=own, patterns=self.patterns())[0]

    def patterns(self) -> dict[str, Cap]:
        """Return the patterns with their numbers."""
        return {key: row.cap for key, row in self.limits.items() if row.source == PATTERN}

    def forget(self, job: JobRow) -> None:
        """Delete a job with its history and its edges."""
        assert job.state in TERMINAL, f"purge of a live job: {job.id} is {job.state}"
        del self.jobs[job.id]
        del self.by_state[job.state][job.id]
        self.outcomes.pop(job.id, None)
        for child in self.children.pop(job.id, {}):
            del self.parents[child][job.id]
        for parent in self.parents.pop(job.id, {}):
            del self.children[parent][job.id]


def _without_detail(row: OutcomeRow) -> OutcomeRow:
    """Return the row without what takes room: the traceback and the log."""
    failure = None if row.failure is None else row.failure._replace(traceback="")
    return OutcomeRow(
        job_id=row.job_id,
        run=row.run,
        attempt=row.attempt,
        kind=row.kind,
        state=row.state,
        cause=row.cause,
        finished_at=row.finished_at,
        pump_id=row.pump_id,
        started_at=row.started_at,
        failure=failure,
        next_due_at=row.next_due_at,
    )
