"""The rows that the reference store keeps: the columns of the tables, less what only SQL needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from backwave_django.core.limits import Cap
from backwave_django.core.queues import in_force
from backwave_django.core.windows import Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Set
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import EdgeMode, NewJob
    from backwave_django.core.leases import PumpHealth, PumpInfo, PumpStatus
    from backwave_django.core.outcomes import Failure, OutcomeKind
    from backwave_django.core.rates import Rate
    from backwave_django.core.schedule_rows import ScheduleRow
    from backwave_django.core.states import Cause, JobState


@dataclass(slots=True, kw_only=True)
class JobRow:
    """One job. ``new`` is as it was enqueued; the rest is what has become of it."""

    new: NewJob
    created_at: datetime
    due_at: datetime
    deadline: datetime | None
    tags: str
    state: JobState | None = None
    run: int = 0
    spent: int = 0
    max_attempts: int | None = None
    output: str | None = None
    unroutable_since: datetime | None = None
    cause: Cause | None = None
    pending_parents: int = 0
    terminal_at: datetime | None = None

    @property
    def id(self) -> UUID:
        """The job's id."""
        return self.new.id


@dataclass(slots=True, kw_only=True)
class LeaseRow:
    """One lease: the fence of one attempt."""

    id: UUID
    job_id: UUID
    queue: str
    limit_key: str | None
    pump_id: UUID
    run: int
    acquired_at: datetime
    expires_at: datetime
    retry: str
    cancel_requested: bool = False
    progress: tuple[int, int | None, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """How an attempt, or a job without one (``run`` of ``None``), ended."""

    job_id: UUID
    run: int | None
    attempt: int
    kind: OutcomeKind
    state: JobState
    cause: Cause | None
    finished_at: datetime
    pump_id: UUID | None = None
    started_at: datetime | None = None
    failure: Failure | None = None
    log: str | None = None
    next_due_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class EdgeRow:
    """``child`` waits for ``parent`` until the edge is settled."""

    parent: UUID
    child: UUID
    mode: EdgeMode
    settled: bool


@dataclass(slots=True, kw_only=True)
class QueueRow:
    """The switches of one queue."""

    paused: bool = False
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    limit: int | None = None
    rate: Rate | None = None
    rate_full_at: datetime | None = None
    window: str | None = None
    limit_default: int | None = None
    rate_default: Rate | None = None
    window_default: str | None = None

    @property
    def cap(self) -> Cap:
        """What holds: an operator's numbers go first."""
        return in_force(Cap(self.limit, self.rate), Cap(self.limit_default, self.rate_default))

    def is_paused(self, *, now: datetime) -> bool:
        """Tell whether claims leave the queue alone."""
        return self.paused and not (self.paused_until is not None and self.paused_until <= now)

    def opens_at(self, *, now: datetime) -> datetime | None:
        """Return when the queue opens, if it is outside its window; an operator's goes first."""
        text = self.window or self.window_default
        return None if text is None else Window.parse(text).opens_at(now)


class LimitRow(NamedTuple):
    """The numbers of one limit key or pattern, who chose them, and its bucket of tokens."""

    limit: int | None
    source: str
    rate: Rate | None = None
    rate_full_at: datetime | None = None

    @property
    def cap(self) -> Cap:
        """The numbers alone."""
        return Cap(self.limit, self.rate)


@dataclass(slots=True, kw_only=True)
class PumpRow:
    """One pump of the registry."""

    info: PumpInfo
    status: PumpStatus
    health: PumpHealth
    problem: str
    seen_at: datetime
    drain_requested: bool = False
    stopped_at: datetime | None = None

    def is_live(self, *, now: datetime) -> bool:
        """Tell whether the pump spoke within its lease duration and has not said goodbye."""
        return self.stopped_at is None and now < self.seen_at + self.info.lease_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    """One workflow. ``size`` is how many jobs it began with."""

    name: str
    created_at: datetime
    size: int
    steps: Mapping[str, UUID]


class ActionRow(NamedTuple):
    """The audit of one operator action."""

    at: datetime
    actor_name: str
    source: str
    user_id: str | None
    action: str
    target_kind: str
    target: str
    reason: str
    before: Mapping[str, object]
    after: Mapping[str, object]
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole visible state of a store, comparable between stores.

    Rows are mappings of columns. ``leases`` is by job and holds no lease ids, which every store
    draws for itself. ``unsettled`` names the parents in the settle queue whose edges the next
    sweep can settle; entries that have nothing left to do are nobody's business. ``limits`` leaves
    out the rows that limit nothing and whose bucket nobody took from.
    """

    jobs: Mapping[UUID, Mapping[str, object]]
    leases: Mapping[UUID, Mapping[str, object]]
    outcomes: Mapping[UUID, tuple[Mapping[str, object], ...]]
    edges: Mapping[tuple[UUID, UUID], tuple[EdgeMode, bool]]
    unsettled: Set[UUID]
    queues: Mapping[str, Mapping[str, object]]
    limits: Mapping[str, LimitRow]
    pumps: Mapping[UUID, Mapping[str, object]]
    actions: tuple[ActionRow, ...]
    schedules: Mapping[str, ScheduleRow] = field(default_factory=dict)
    workflows: Mapping[UUID, WorkflowRow] = field(default_factory=dict)
