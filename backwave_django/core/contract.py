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
- An instant counts from itself on: due, lapsed, passed and over are all "at or before ``now``".
- The end of a job, by whatever verb, inserts in the same transaction the jobs that
  ``StoreSettings.observers`` gives for it.
- A pump is live while it was seen within its lease duration and has not retired.
- A job's ``pending_parents`` is the number of its unsettled incoming edges, in every state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from backwave_django.core.terms import (
    ActionAnswer,
    ActionResult,
    Actor,
    ClaimAnswer,
    ClaimRequest,
    History,
    ReportAnswer,
    ScheduleAnswer,
    StoreSettings,
    SweepAnswer,
    WorkflowAnswer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.core.jobs import Enqueued, NewJob
    from backwave_django.core.leases import Beat, BeatAnswer, PumpInfo
    from backwave_django.core.limits import Cap
    from backwave_django.core.outcomes import Outcome, Reported
    from backwave_django.core.queues import QueueDefaults
    from backwave_django.core.rates import Rate
    from backwave_django.core.schedule_answers import (
        DeclareMode,
        DeclareRow,
        MintAnswer,
        SchedulesAnswer,
    )
    from backwave_django.core.schedules import Decision, ScheduleSpec
    from backwave_django.core.workflows import NewWorkflow, RetryScope

__all__ = [
    "ActionAnswer",
    "ActionResult",
    "Actor",
    "ClaimAnswer",
    "ClaimRequest",
    "History",
    "ReportAnswer",
    "ScheduleAnswer",
    "Store",
    "StoreSettings",
    "SweepAnswer",
    "WorkflowAnswer",
]


class Store(Protocol):
    """Every promise of the system that a database has to keep."""

    def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Insert ``jobs`` in the caller's transaction, in a constant number of round trips.

        Parents must exist, in the store or anywhere in the batch, else ``UnknownParent``; jobs
        that wait for each other are an ``InvalidOption``. Then nothing is inserted. A job with a
        live parent is ``awaiting``; with an ``on_success`` parent that already failed,
        ``cancelled`` (cause ``parent``, with an outcome row); else ``scheduled``. Of a parent
        that is named twice the first mention counts.

        A unique key with a holder answers that job with ``created`` false: never an integrity
        error, never a poisoned transaction. A live holder answers, an earlier job of the batch
        included; ``replace`` cancels it (cause ``superseded``) if it never ran and no edge leads
        from it. Of terminal holders the newest by id answers that the policy honours: a success
        under ``allow_after_failure``, any under ``reject``. As a parent, a job that was not
        created stands for its holder.
        """

    def start_workflow(self, workflow: NewWorkflow, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Enqueue ``jobs`` and, if any of them was created, the workflow that they belong to.

        All or nothing, in the caller's transaction. A step whose unique key has a holder stands
        for that job, which does not become a member.
        """

    def claim(self, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
        """Lease due jobs, each to one caller ever: ``run`` grows by one, a lease row appears.

        Order: queues as listed, priority (high first), jobs without a limit key, then key by key
        (those after ``key_cursor`` by code points, then the rest), due time, id. Paused queues
        yield nothing until their ``paused_until``, closed ones until they open. A limited queue
        or key has at most as many leases as its cap says, lapsed ones included, and hides nothing
        else. Under a rate each lease takes a token of the bucket that the queue, or the key, has;
        ``now`` says how full it is, and one that goes back adds nothing. A key without a row of
        an operator's own has the numbers of the longest pattern that it matches. Rows past their
        deadline are passed over. Rows that another transaction holds are passed over and count
        as withheld.
        """

    def report(self, outcomes: Sequence[Outcome], *, now: datetime) -> ReportAnswer:
        """Apply each outcome whose lease still exists; one transaction, constant round trips.

        ``applied``: the job takes the outcome's state (``cancelled`` with cause ``operator``
        instead of anything but success when cancellation was requested; ``quarantined`` instead
        of ``scheduled`` when a hand-back's grace is over: for ``arguments`` at once, else when no
        live pump that serves the queue lists the wire name and version), one outcome row is
        appended, the lease is deleted and dependents are settled. The grace begins with the first
        hand-back, and anew once a body ran. ``stale``: the lease is gone, or was named before in
        this batch, and nothing of the row is applied. ``busy``: another transaction holds the
        lease or the job; nothing is applied and the outcome may be offered again.

        A row that the database refuses as data is isolated: a success becomes
        ``dead_lettered`` (cause ``output``), anything else keeps its kind with cleaned detail.
        """

    def report_inside(
        self, outcome: Outcome, *, patience: timedelta | None, now: datetime
    ) -> Reported:
        """Apply the success of an atomic body in the open transaction that holds its writes.

        Like a report of one. Only, rows that another transaction holds are waited for, no longer
        than ``patience``: ``StoreUnavailable`` then. Unless the answer is ``applied``, and
        whenever this raises, the caller has to roll that transaction back.
        """

    def is_recorded(self, *, job_id: UUID, run: int) -> bool:
        """Tell whether a run of a job has succeeded: for who lost the answer to its commit."""

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
        """Release, unspent and due now, this pump's leases that are not among ``held``.

        A requested cancellation wins (``cancelled``, cause ``operator``). Leases
        acquired after ``now`` stay: a recovery that reaches the store late, when its pump gave
        it up and claimed anew, knows nothing of them.
        """

    def dispose(self, *, pumps: Sequence[UUID], now: datetime) -> SweepAnswer:
        """End the leases of pumps that are known dead, at once, spending like a lapse."""

    def expire_leases(self, *, limit: int, now: datetime) -> SweepAnswer:
        """End each lapsed lease exactly once, spending; also put back leaseless leased jobs.

        A lapse with attempts left schedules the job at its backoff instant, else dead-letters it
        (cause ``attempts``); a requested cancellation wins (``cancelled``, cause ``operator``).
        The longest lapsed go first. A lease whose pump is live is spared for up to one further
        duration of the pump. A ``leased`` job without a lease row is re-scheduled, unspent, with
        an outcome row of no run.
        """

    def settle(self, *, limit: int, now: datetime) -> SweepAnswer:
        """Drain the settle queue, and end scheduled jobs whose deadline has passed.

        An entry stays while its parent lives. An unsettled edge of a parent that is over is
        marked and counted once; a parent that is gone has not succeeded. At most a thousand
        edges settle in one transaction, here and in every other verb that ends jobs; what
        remains, or is held by another transaction, waits in the settle queue. The earliest
        deadlines go first, at most ``limit`` entries and ``limit`` jobs.

        A job with a passed deadline becomes ``expired`` if it never ran, else
        ``dead_lettered``; cause ``deadline`` for both; an outcome row with no run is appended and
        dependents settle.
        """

    def purge(self, *, limit: int, now: datetime) -> SweepAnswer:
        """Delete terminal jobs past their retention with all that hangs on them.

        Never a job with a non-terminal dependent, nor one of a workflow that still lives. The
        oldest go first. Also old operator actions, and pumps that were not seen for long and own
        no lease; these are not counted.
        """

    def cancel(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """Cancel waiting jobs; ask running ones to stop. Audited. Waits for row locks.

        All of the named jobs first, then those that depend on them. Like the next two, it does
        each job once, answers in the order of the request, and audits also what came to nothing.
        """

    def requeue(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """Bring terminal jobs other than successes back: ``spent`` 0, due now. Audited.

        Without a deadline, and waiting again for parents that live; parents that are named come
        back before their children. ``refused`` with an ``on_success`` parent that has failed or
        is gone, which ``detail`` names; ``conflict`` when a live job holds the unique key.
        """

    def run_now(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """Make scheduled jobs due now; one that is due already keeps its place. Audited."""

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
        """Cap the jobs of ``queue`` that are leased at once. Audited.

        ``None`` forgets what operators chose, and what the settings say holds again: a cap, or
        none. Holds for claims that begin after this commits; a lowered cap evicts nothing. Raises
        ``InvalidOption`` below zero.
        """

    def set_queue_rate(self, queue: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
        """Let so many jobs of ``queue`` start in a period; ``None`` as for its cap. Audited.

        Retries are starts. Holds for claims that begin after this commits.
        """

    def set_window(self, queue: str, window: str | None, *, actor: Actor, now: datetime) -> None:
        """Serve ``queue`` at the local times of ``window`` only. Audited.

        ``None`` forgets what operators chose, and what the settings say holds again. Jobs that
        run go on. Raises ``InvalidOption`` for what is no window.
        """

    def set_limit(self, key: str, limit: int | None, *, actor: Actor, now: datetime) -> None:
        """Cap the jobs leased at once under the limit key; ``None`` lifts the cap. Audited.

        What an operator sets stays, whatever the code declares, and the key's rate stays with
        it; a key whose cap and rate are lifted is forgotten. A ``*`` at the end of ``key`` makes
        it a pattern: its numbers hold for each key that begins so and that no operator gave
        numbers of its own. Raises ``InvalidOption`` below zero.
        """

    def set_rate(self, key: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
        """Let so many jobs under the limit key start in a period; like ``set_limit``. Audited."""

    def declare_limits(self, limits: Mapping[str, Cap]) -> None:
        """Note the caps and rates that job types declare, except where an operator chose some.

        Pumps say this when they start. A key without numbers is not limited.
        """

    def declare_queues(self, defaults: Mapping[str, QueueDefaults]) -> None:
        """Note the caps, rates and windows that the settings give to queues.

        Each holds where no operator chose one, a cap beside an operator's rate too. What a queue
        had and is not given any more is forgotten; queues that are not named keep theirs. Pumps
        say this when they start. Raises ``InvalidOption`` for what is no window, and for a cap
        below zero; then nothing is noted.
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
