"""The storage contract: what every store does, clause by clause.

The conformance suite holds each store to these docstrings, and the memory store is the
reference. Common to all clauses:

- Every method is atomic: it applies whole, or raises and leaves no trace. A raised
  ``StoreUnavailable`` may also mean that only the answer was lost.
- ``now`` decides; a store never reads a clock to decide anything. The one exception is a job
  enqueued without a due time, which takes the database's clock, because nodes' clocks differ.
- Answers to a pump carry the database's clock as ``clock``.
- All is keyed by lease id, never by job id: a lease row is the fence.
- No method waits for a row that another transaction holds, operator actions excepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from backwave_django.core.retention import Retention
from backwave_django.core.retries import RetryTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import Enqueued, LeasedJob, NewJob
    from backwave_django.core.leases import Beat, BeatAnswer, PumpInfo
    from backwave_django.core.outcomes import Outcome, Reported
    from backwave_django.core.schedule_answers import (
        DeclareMode,
        DeclareRow,
        MintAnswer,
        SchedulesAnswer,
    )
    from backwave_django.core.schedules import Decision, ScheduleSpec
    from backwave_django.core.states import JobState
    from backwave_django.core.workflows import NewWorkflow, RetryScope


class History(StrEnum):
    """How much of each attempt is kept."""

    OFF = "off"
    OUTCOMES = "outcomes"
    DETAIL = "detail"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The numbers a store needs from the settings."""

    unroutable_grace: timedelta = timedelta(minutes=5)
    retention: Retention = field(default_factory=Retention)
    history: History = History.DETAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """Lease at most ``limit`` due jobs of ``queues``, in that order, for ``pump_id``.

    ``hinted`` names (queue, priority) lanes that a wake-up hint spoke of; ``key_cursor`` is where
    the rotation over limit keys goes on. Both only steer where a store looks first.
    """

    pump_id: UUID
    queues: tuple[str, ...]
    limit: int
    lease_duration: timedelta
    retries: RetryTable = field(default_factory=RetryTable)
    hinted: tuple[tuple[str, int], ...] = ()
    key_cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimAnswer:
    """The leased jobs in claim order.

    ``short`` says that the store looked everywhere and found less than it was asked for.
    ``next_due`` is advice: ``now`` when due work was withheld (a cap, a lock, the batch size, an
    unsettled deadline), else the earliest future due time in served, unpaused queues, else none.
    """

    jobs: tuple[LeasedJob, ...]
    short: bool
    next_due: datetime | None
    clock: datetime
    key_cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAnswer:
    """One row per reported outcome, in order."""

    rows: tuple[Reported, ...]
    clock: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAnswer:
    """How many rows a maintenance command handled; ``full`` asks for another turn."""

    count: int
    full: bool
    clock: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asked for an operator action, and from where.

    ``source`` is ``admin``, ``command``, ``api`` or ``code``; ``user_id`` is the primary key of
    a user as text, when there is one.
    """

    name: str
    source: str = "code"
    user_id: str | None = None
    reason: str = ""


class ActionResult(StrEnum):
    """What came of an operator action on one job."""

    DONE = "done"
    #: The job runs: its body was asked to stop and decides itself when it does.
    REQUESTED = "requested"
    #: The job is in a state that the action does not apply to.
    REFUSED = "refused"
    #: A live job holds the same unique key.
    CONFLICT = "conflict"
    #: The job is not in the database.
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionAnswer:
    """The result for one job, with the state it is in now and a sentence for a person."""

    job_id: UUID
    result: ActionResult
    state: JobState | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAnswer:
    """The result of an operator action on one schedule, with a sentence for a person."""

    name: str
    result: ActionResult
    detail: str = ""
    job_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAnswer:
    """The result of an operator action on one workflow, with a sentence for a person.

    ``jobs`` are those that it moved; ``restarted_as`` is the workflow that a restart made.
    """

    workflow_id: UUID
    result: ActionResult
    detail: str = ""
    jobs: tuple[UUID, ...] = ()
    restarted_as: UUID | None = None


class Store(Protocol):
    """Every promise of the system that a database has to keep."""

    def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Insert ``jobs`` in the caller's transaction, in a constant number of round trips.

        Parents must exist, else ``UnknownParent`` and nothing is inserted. A job with a live
        parent is ``awaiting``; with an ``on_success`` parent that already failed, ``cancelled``
        (cause ``parent``); else ``scheduled``. A unique key with a holder answers that job with
        ``created`` false: never an integrity error, never a poisoned transaction.
        """

    def start_workflow(
        self, workflow: NewWorkflow, jobs: Sequence[NewJob]
    ) -> tuple[Enqueued, ...]:
        """Enqueue ``jobs`` and, if any of them was created, the workflow that they belong to.

        All or nothing, in the caller's transaction. A step whose unique key has a holder stands
        for that job, which does not become a member.
        """

    def claim(self, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
        """Lease due jobs, each to one caller ever: ``run`` grows by one, a lease row appears.

        Order: queues as listed, priority (high first), due time, id. Paused queues yield nothing
        until their ``paused_until``. Rows past their deadline are passed over. Rows that another
        transaction holds are passed over and count as withheld.
        """

    def report(self, outcomes: Sequence[Outcome], *, now: datetime) -> ReportAnswer:
        """Apply each outcome whose lease still exists; one transaction, constant round trips.

        ``applied``: the job takes the outcome's state (``cancelled`` with cause ``operator``
        instead of anything but success when cancellation was requested; ``quarantined`` instead
        of ``scheduled`` when a hand-back's grace is over: for ``arguments`` at once, else when no
        live pump that serves the queue lists the wire name and version), one outcome row is
        appended, the lease is deleted and dependents are settled. ``stale``: the lease is gone
        and nothing of the row is applied. ``busy``: another transaction holds the lease or the
        job; nothing is applied and the outcome may be offered again.

        A row that the database refuses as data is isolated: a success becomes
        ``dead_lettered`` (cause ``output``), anything else keeps its kind with cleaned detail.
        """

    def turn(
        self, outcomes: Sequence[Outcome], request: ClaimRequest, *, now: datetime
    ) -> tuple[ReportAnswer, ClaimAnswer]:
        """Report, then claim, in as few round trips as the store can.

        The same as the two calls in that order; if the claim fails after the report was
        applied, raises ``TurnFailed`` which carries the report's answer.
        """

    def register(self, pump: PumpInfo, *, now: datetime) -> datetime:
        """Write the pump's registry row anew; return the database's clock.

        A drain that was requested of a pump that is already there stays requested.
        """

    def retire(self, *, pump_id: UUID, problem: str, now: datetime) -> None:
        """Note that the pump stopped (``problem`` empty) or halted. Its leases stay."""

    def heartbeat(self, beat: Beat, *, now: datetime) -> BeatAnswer:
        """Renew the listed leases to ``now + lease_duration`` and exchange news.

        A lease that is gone, or owned by another pump, is ``lost``; one whose row is held by
        another transaction is ``busy``. Updates the registry row, and stores the progress of
        attempts whose leases it renewed.
        """

    def recover(self, *, pump_id: UUID, held: Sequence[UUID], now: datetime) -> SweepAnswer:
        """Release, unspent and due now, this pump's leases that are not among ``held``."""

    def dispose(self, *, pumps: Sequence[UUID], now: datetime) -> SweepAnswer:
        """End the leases of pumps that are known dead, at once, spending like a lapse."""

    def expire_leases(self, *, limit: int, now: datetime) -> SweepAnswer:
        """End each lapsed lease exactly once, spending; also put back leaseless leased jobs.

        A lapse with attempts left schedules the job at its backoff instant, else dead-letters it
        (cause ``attempts``); a requested cancellation wins (``cancelled``, cause ``operator``). A
        lease whose pump's registry row was seen within its lease duration is spared for up to
        one further duration. A ``leased`` job without a lease row is re-scheduled, unspent.
        """

    def settle(self, *, limit: int, now: datetime) -> SweepAnswer:
        """Drain the settle queue, and end scheduled jobs whose deadline has passed.

        Such a job becomes ``expired`` if it never ran, else ``dead_lettered``; cause
        ``deadline`` for both; an outcome row with no run is appended and dependents settle.
        """

    def purge(self, *, limit: int, now: datetime) -> SweepAnswer:
        """Delete terminal jobs past their retention with all that hangs on them.

        Never a job with a non-terminal dependent, nor one of a workflow that still lives.
        """

    def cancel(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """Cancel waiting jobs; ask running ones to stop. Audited. Waits for row locks."""

    def requeue(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """Bring terminal jobs other than successes back: ``spent`` 0, due now. Audited."""

    def run_now(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """Make scheduled jobs due now. Audited."""

    def cancel_workflow(self, workflow_id: UUID, *, actor: Actor, now: datetime) -> WorkflowAnswer:
        """Cancel every member that waits, and ask those that run to stop. Audited."""

    def retry_workflow(
        self, workflow_id: UUID, *, scope: RetryScope, actor: Actor, now: datetime
    ) -> WorkflowAnswer:
        """Bring the failed members back in place, all together or none; see ``RetryScope``.

        Edges between them wait again; those to members that stay as they are stay settled.
        ``refused`` when there is nothing to bring back, ``conflict`` when a live job holds the
        unique key of one. Audited.
        """

    def restart_workflow(
        self, workflow_id: UUID, *, new_id: Callable[[], UUID], actor: Actor, now: datetime
    ) -> WorkflowAnswer:
        """Insert a workflow that is over once more, whole and due now, under new ids. Audited.

        ``refused`` while a member lives, and when members were purged; ``conflict`` when a live
        job holds the unique key of one.
        """

    def pause(self, queue: str, *, until: datetime | None, actor: Actor, now: datetime) -> None:
        """Stop claims from ``queue`` that begin after this commits. Audited."""

    def resume(self, queue: str, *, actor: Actor, now: datetime) -> None:
        """Let ``queue`` be claimed again. Audited."""

    def set_queue_limit(
        self, queue: str, limit: int | None, *, actor: Actor, now: datetime
    ) -> None:
        """Cap the jobs of ``queue`` that are leased at once; ``None`` lifts the cap. Audited.

        Holds for claims that begin after this commits; a lowered cap evicts nothing. Raises
        ``InvalidOption`` below zero.
        """

    def set_limit(self, key: str, limit: int | None, *, actor: Actor, now: datetime) -> None:
        """Cap the jobs leased at once under the limit key; ``None`` lifts the cap. Audited.

        What an operator sets stays, whatever the code declares; lifting it forgets that choice.
        Raises ``InvalidOption`` below zero.
        """

    def declare_limits(self, limits: Sequence[tuple[str, int]]) -> None:
        """Note the caps that job types declare, except where an operator chose one.

        Pumps say this when they start. A key without a cap is not limited.
        """

    def request_drain(self, pump_id: UUID, *, actor: Actor, now: datetime) -> bool:
        """Ask a pump to drain; false when no such live pump is registered. Audited."""

    def load_schedules(self, *, after: str, limit: int) -> SchedulesAnswer:
        """Return the next ``limit`` schedules after the name ``after`` that may mint.

        Paused and retired ones are left out. Order: by code points of the name.
        """

    def mint(self, decisions: Sequence[Decision], *, now: datetime) -> MintAnswer:
        """Apply each decision whose schedule still is as it was seen; else skip it whole.

        Seen is the cursor, the next tick and the rule; a schedule that is paused, retired, gone
        or held by another transaction is ``stale``. The job of a tick is due now and knows its
        nominal time; no tick gets a second one. With ``no_overlap``, a tick is skipped and
        counted instead while any job of the schedule is not terminal. What is skipped is counted
        on the schedule with the last such tick and the reason.
        """

    def declare_schedules(
        self,
        specs: Sequence[ScheduleSpec],
        *,
        owner: str,
        release: int | None,
        mode: DeclareMode,
        now: datetime,
    ) -> tuple[DeclareRow, ...]:
        """Make the schedules that an owner's code declares; bring the rest in line with it.

        A schedule whose rule is changed, or that was retired, begins anew from now. Whether one
        is paused is never touched. Where a newer release of the owner has written, what is there
        is ``refused``. A schedule of another owner, or made by a person, is ``refused``.
        """

    def save_schedule(self, spec: ScheduleSpec, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """Make or change a schedule that belongs to the database, not to code. Audited.

        ``refused`` for one that is declared in code.
        """

    def delete_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """Delete a schedule that belongs to the database, or is retired; its jobs stay. Audited."""

    def trigger_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """Make one job of the schedule, due now, without a nominal time. Audited.

        The cursor stays. ``conflict`` with ``no_overlap`` while a job of the schedule is not
        terminal; ``refused`` for a retired schedule. Paused ones can be triggered.
        """

    def pause_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """Let the schedule mint nothing from now on. Audited."""

    def resume_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """Let a paused schedule begin anew from now: the ticks of the pause are no missed ones.

        Audited. ``refused`` for a retired one, and for one that is not paused.
        """
