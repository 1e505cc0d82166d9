"""The storage contract over Django: each verb is one module's work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.jobs.ids import new_id
from backwave_django.store import (
    atomic,
    claims,
    heartbeats,
    intake,
    leases,
    limits,
    minting,
    operators,
    purging,
    registry,
    requeueing,
    schedules,
    sweeping,
    switches,
    turning,
    workflows,
)
from backwave_django.store import outcomes as reports
from backwave_django.store.faults import guarded
from backwave_django.store.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.core.contract import (
        ActionAnswer,
        Actor,
        ClaimAnswer,
        ClaimRequest,
        ReportAnswer,
        ScheduleAnswer,
        StoreSettings,
        SweepAnswer,
        WorkflowAnswer,
    )
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
    from backwave_django.store.executor import Executor


class DatabaseStore:
    """The contract (``core.contract.Store``) on one executor. Used by one thread at a time.

    ``exact`` forbids passing over a due job even for a moment. ``fixed_clock`` replaces the
    database's clock and ``ids`` makes lease ids where the database does not: both for tests.
    Every exception of a database comes out as ``StoreUnavailable`` or ``StoreBroken``.
    """

    def __init__(
        self,
        executor: Executor,
        settings: StoreSettings,
        *,
        exact: bool = False,
        hints: bool = True,
        fixed_clock: Callable[[], datetime] | None = None,
        ids: Callable[[], UUID] = new_id,
    ) -> None:
        self.executor = executor
        self._room = Room(
            executor=executor,
            settings=settings,
            new_id=ids,
            fixed_clock=fixed_clock,
            exact=exact,
            hints=hints,
        )

    def close(self) -> None:
        """Close the connection for good."""
        self.executor.close()

    def drop(self) -> None:
        """Forget a connection that may be broken; the next call opens a new one."""
        self.executor.drop()

    @guarded
    def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """See ``Store.enqueue``."""
        return intake.enqueue(self._room, jobs) if jobs else ()

    @guarded
    def start_workflow(self, workflow: NewWorkflow, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """See ``Store.start_workflow``."""
        return workflows.start_workflow(self._room, workflow, jobs)

    @guarded
    def claim(self, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
        """See ``Store.claim``."""
        return claims.claim(self._room, request, now=now)

    @guarded
    def report(self, outcomes: Sequence[Outcome], *, now: datetime) -> ReportAnswer:
        """See ``Store.report``."""
        return reports.report(self._room, outcomes, now=now)

    @guarded
    def report_inside(
        self, outcome: Outcome, *, patience: timedelta | None, now: datetime
    ) -> Reported:
        """See ``Store.report_inside``."""
        return atomic.report_inside(self._room, outcome, patience=patience, now=now)

    @guarded
    def is_recorded(self, *, job_id: UUID, run: int) -> bool:
        """See ``Store.is_recorded``."""
        return atomic.is_recorded(self._room, job_id=job_id, run=run)

    @guarded
    def turn(
        self, outcomes: Sequence[Outcome], request: ClaimRequest, *, now: datetime
    ) -> tuple[ReportAnswer, ClaimAnswer]:
        """See ``Store.turn``."""
        return turning.turn(self._room, outcomes, request, now=now)

    @guarded
    def register(self, pump: PumpInfo, *, now: datetime) -> datetime:
        """See ``Store.register``."""
        return registry.register(self._room, pump, now=now)

    @guarded
    def retire(self, *, pump_id: UUID, problem: str, now: datetime) -> None:
        """See ``Store.retire``."""
        registry.retire(self._room, pump_id=pump_id, problem=problem, now=now)

    @guarded
    def heartbeat(self, beat: Beat, *, now: datetime) -> BeatAnswer:
        """See ``Store.heartbeat``."""
        return heartbeats.heartbeat(self._room, beat, now=now)

    @guarded
    def recover(self, *, pump_id: UUID, held: Sequence[UUID], now: datetime) -> SweepAnswer:
        """See ``Store.recover``."""
        return leases.recover(self._room, pump_id=pump_id, held=held, now=now)

    @guarded
    def dispose(self, *, pumps: Sequence[UUID], now: datetime) -> SweepAnswer:
        """See ``Store.dispose``."""
        return leases.dispose(self._room, pumps=pumps, now=now)

    @guarded
    def expire_leases(self, *, limit: int, now: datetime) -> SweepAnswer:
        """See ``Store.expire_leases``."""
        return leases.expire_leases(self._room, limit=limit, now=now)

    @guarded
    def settle(self, *, limit: int, now: datetime) -> SweepAnswer:
        """See ``Store.settle``."""
        return sweeping.settle(self._room, limit=limit, now=now)

    @guarded
    def purge(self, *, limit: int, now: datetime) -> SweepAnswer:
        """See ``Store.purge``."""
        return purging.purge(self._room, limit=limit, now=now)

    @guarded
    def cancel(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """See ``Store.cancel``."""
        return operators.cancel(self._room, job_ids, actor=actor, now=now)

    @guarded
    def requeue(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """See ``Store.requeue``."""
        return requeueing.requeue(self._room, job_ids, actor=actor, now=now)

    @guarded
    def run_now(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """See ``Store.run_now``."""
        return operators.run_now(self._room, job_ids, actor=actor, now=now)

    @guarded
    def cancel_workflow(self, workflow_id: UUID, *, actor: Actor, now: datetime) -> WorkflowAnswer:
        """See ``Store.cancel_workflow``."""
        return workflows.cancel_workflow(self._room, workflow_id, actor=actor, now=now)

    @guarded
    def retry_workflow(
        self, workflow_id: UUID, *, scope: RetryScope, actor: Actor, now: datetime
    ) -> WorkflowAnswer:
        """See ``Store.retry_workflow``."""
        return workflows.retry_workflow(self._room, workflow_id, scope=scope, actor=actor, now=now)

    @guarded
    def restart_workflow(
        self, workflow_id: UUID, *, new_id: Callable[[], UUID], actor: Actor, now: datetime
    ) -> WorkflowAnswer:
        """See ``Store.restart_workflow``."""
        return workflows.restart_workflow(
            self._room, workflow_id, new_id=new_id, actor=actor, now=now
        )

    @guarded
    def pause(self, queue: str, *, until: datetime | None, actor: Actor, now: datetime) -> None:
        """See ``Store.pause``."""
        switches.pause(self._room, queue, until=until, actor=actor, now=now)

    @guarded
    def resume(self, queue: str, *, actor: Actor, now: datetime) -> None:
        """See ``Store.resume``."""
        switches.resume(self._room, queue, actor=actor, now=now)

    @guarded
    def set_queue_limit(
        self, queue: str, limit: int | None, *, actor: Actor, now: datetime
    ) -> None:
        """See ``Store.set_queue_limit``."""
        limits.set_queue_limit(self._room, queue, limit, actor=actor, now=now)

    @guarded
    def set_queue_rate(self, queue: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_queue_rate``."""
        limits.set_queue_rate(self._room, queue, rate, actor=actor, now=now)

    @guarded
    def set_window(self, queue: str, window: str | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_window``."""
        limits.set_window(self._room, queue, window, actor=actor, now=now)

    @guarded
    def set_limit(self, key: str, limit: int | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_limit``."""
        limits.set_limit(self._room, key, limit, actor=actor, now=now)

    @guarded
    def set_rate(self, key: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_rate``."""
        limits.set_rate(self._room, key, rate, actor=actor, now=now)

    @guarded
    def declare_limits(self, declared: Mapping[str, Cap]) -> None:
        """See ``Store.declare_limits``."""
        limits.declare_limits(self._room, declared)

    @guarded
    def declare_queues(self, defaults: Mapping[str, QueueDefaults]) -> None:
        """See ``Store.declare_queues``."""
        limits.declare_queues(self._room, defaults)

    @guarded
    def request_drain(self, pump_id: UUID, *, actor: Actor, now: datetime) -> bool:
        """See ``Store.request_drain``."""
        return switches.request_drain(self._room, pump_id, actor=actor, now=now)

    @guarded
    def load_schedules(self, *, after: str, limit: int) -> SchedulesAnswer:
        """See ``Store.load_schedules``."""
        return minting.load_schedules(self._room, after=after, limit=limit)

    @guarded
    def mint(self, decisions: Sequence[Decision], *, now: datetime) -> MintAnswer:
        """See ``Store.mint``."""
        return minting.mint(self._room, decisions, now=now)

    @guarded
    def declare_schedules(
        self,
        specs: Sequence[ScheduleSpec],
        *,
        owner: str,
        release: int | None,
        mode: DeclareMode,
        now: datetime,
    ) -> tuple[DeclareRow, ...]:
        """See ``Store.declare_schedules``."""
        return schedules.declare_schedules(
            self._room, specs, owner=owner, release=release, mode=mode, now=now
        )

    @guarded
    def save_schedule(self, spec: ScheduleSpec, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.save_schedule``."""
        return self._schedules(actor, now).save(spec)

    @guarded
    def delete_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.delete_schedule``."""
        return self._schedules(actor, now).delete(name)

    @guarded
    def trigger_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.trigger_schedule``."""
        return self._schedules(actor, now).trigger(name)

    @guarded
    def pause_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.pause_schedule``."""
        return self._schedules(actor, now).pause(name)

    @guarded
    def resume_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.resume_schedule``."""
        return self._schedules(actor, now).resume(name)

    def _schedules(self, actor: Actor, now: datetime) -> schedules.ScheduleDesk:
        return schedules.ScheduleDesk(self._room, actor=actor, now=now)
