"""The class that speaks the contract; each verb lives in the module that is named after it."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from backwave_django.core.contract import StoreSettings
from backwave_django.core.memory import (
    claims,
    declarations,
    intake,
    registry,
    reports,
    schedules,
    sweeps,
)
from backwave_django.core.memory.operators import Desk
from backwave_django.core.memory.reactions import react
from backwave_django.core.memory.schedules import ScheduleDesk
from backwave_django.core.memory.snapshots import snapshot
from backwave_django.core.memory.tables import Tables
from backwave_django.core.memory.workflows import WorkflowDesk, start_workflow

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
        SweepAnswer,
        WorkflowAnswer,
    )
    from backwave_django.core.jobs import Enqueued, NewJob
    from backwave_django.core.leases import Beat, BeatAnswer, PumpInfo
    from backwave_django.core.limits import Cap
    from backwave_django.core.memory.rows import Snapshot
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


P = ParamSpec("P")
R = TypeVar("R")


def reacting(
    verb: Callable[Concatenate[MemoryStore, P], R],
) -> Callable[Concatenate[MemoryStore, P], R]:
    """Let a verb that may end jobs insert the jobs of their observers as well."""

    @wraps(verb)
    def call(store: MemoryStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        answer = verb(store, *args, **kwargs)
        react(store.tables)
        return answer

    return call


class MemoryStore:
    """``Store`` over dictionaries, for one thread. The clauses are in the contract.

    ``clock`` stands for the database's clock and ``ids`` draws the ids of leases and of minted
    jobs. ``tables`` is open to tests that need a state which no verb leads to.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], UUID],
        settings: StoreSettings | None = None,
    ) -> None:
        self.tables = Tables(clock=clock, ids=ids, settings=settings or StoreSettings())

    def snapshot(self) -> Snapshot:
        """Return the whole visible state, comparable with that of another store."""
        return snapshot(self.tables)

    def hold(self, row_id: UUID) -> None:
        """Behave as if another transaction held the row of this job or lease."""
        self.tables.held.add(row_id)

    def release(self, row_id: UUID) -> None:
        """Let go of a row that ``hold`` named."""
        self.tables.held.discard(row_id)

    @reacting
    def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """See ``Store.enqueue``."""
        return intake.enqueue(self.tables, jobs)

    @reacting
    def start_workflow(self, workflow: NewWorkflow, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """See ``Store.start_workflow``."""
        return start_workflow(self.tables, workflow, jobs)

    def claim(self, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
        """See ``Store.claim``."""
        return claims.claim(self.tables, request, now=now)

    @reacting
    def report(self, outcomes: Sequence[Outcome], *, now: datetime) -> ReportAnswer:
        """See ``Store.report``."""
        return reports.report(self.tables, outcomes, now=now)

    @reacting
    def report_inside(
        self, outcome: Outcome, *, patience: timedelta | None, now: datetime
    ) -> Reported:
        """See ``Store.report_inside``. There is nobody who would let go of a row meanwhile."""
        return reports.report_inside(self.tables, outcome, patience=patience, now=now)

    def is_recorded(self, *, job_id: UUID, run: int) -> bool:
        """See ``Store.is_recorded``."""
        return reports.is_recorded(self.tables, job_id=job_id, run=run)

    def turn(
        self, outcomes: Sequence[Outcome], request: ClaimRequest, *, now: datetime
    ) -> tuple[ReportAnswer, ClaimAnswer]:
        """See ``Store.turn``. Nothing can come between the two here."""
        return self.report(outcomes, now=now), self.claim(request, now=now)

    def register(self, pump: PumpInfo, *, now: datetime) -> datetime:
        """See ``Store.register``."""
        return registry.register(self.tables, pump, now=now)

    def retire(self, *, pump_id: UUID, problem: str, now: datetime) -> None:
        """See ``Store.retire``."""
        registry.retire(self.tables, pump_id=pump_id, problem=problem, now=now)

    def heartbeat(self, beat: Beat, *, now: datetime) -> BeatAnswer:
        """See ``Store.heartbeat``."""
        return registry.heartbeat(self.tables, beat, now=now)

    @reacting
    def recover(self, *, pump_id: UUID, held: Sequence[UUID], now: datetime) -> SweepAnswer:
        """See ``Store.recover``."""
        return sweeps.recover(self.tables, pump_id=pump_id, held=held, now=now)

    @reacting
    def dispose(self, *, pumps: Sequence[UUID], now: datetime) -> SweepAnswer:
        """See ``Store.dispose``."""
        return sweeps.dispose(self.tables, pumps=pumps, now=now)

    @reacting
    def expire_leases(self, *, limit: int, now: datetime) -> SweepAnswer:
        """See ``Store.expire_leases``."""
        return sweeps.expire_leases(self.tables, limit=limit, now=now)

    @reacting
    def settle(self, *, limit: int, now: datetime) -> SweepAnswer:
        """See ``Store.settle``."""
        return sweeps.settle_queue(self.tables, limit=limit, now=now)

    def purge(self, *, limit: int, now: datetime) -> SweepAnswer:
        """See ``Store.purge``."""
        return sweeps.purge(self.tables, limit=limit, now=now)

    @reacting
    def cancel(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """See ``Store.cancel``."""
        return self._desk(actor, now).cancel(job_ids)

    def requeue(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """See ``Store.requeue``."""
        return self._desk(actor, now).requeue(job_ids)

    def run_now(
        self, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
    ) -> tuple[ActionAnswer, ...]:
        """See ``Store.run_now``."""
        return self._desk(actor, now).run_now(job_ids)

    @reacting
    def cancel_workflow(self, workflow_id: UUID, *, actor: Actor, now: datetime) -> WorkflowAnswer:
        """See ``Store.cancel_workflow``."""
        return self._workflow(workflow_id, actor, now).cancel()

    def retry_workflow(
        self, workflow_id: UUID, *, scope: RetryScope, actor: Actor, now: datetime
    ) -> WorkflowAnswer:
        """See ``Store.retry_workflow``."""
        return self._workflow(workflow_id, actor, now).retry(scope)

    @reacting
    def restart_workflow(
        self, workflow_id: UUID, *, new_id: Callable[[], UUID], actor: Actor, now: datetime
    ) -> WorkflowAnswer:
        """See ``Store.restart_workflow``."""
        return self._workflow(workflow_id, actor, now).restart(new_id)

    def pause(self, queue: str, *, until: datetime | None, actor: Actor, now: datetime) -> None:
        """See ``Store.pause``."""
        self._desk(actor, now).pause(queue, until=until)

    def resume(self, queue: str, *, actor: Actor, now: datetime) -> None:
        """See ``Store.resume``."""
        self._desk(actor, now).resume(queue)

    def set_queue_limit(
        self, queue: str, limit: int | None, *, actor: Actor, now: datetime
    ) -> None:
        """See ``Store.set_queue_limit``."""
        self._desk(actor, now).set_queue_limit(queue, limit)

    def set_limit(self, key: str, limit: int | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_limit``."""
        self._desk(actor, now).set_limit(key, limit)

    def set_queue_rate(self, queue: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_queue_rate``."""
        self._desk(actor, now).set_queue_rate(queue, rate)

    def set_rate(self, key: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_rate``."""
        self._desk(actor, now).set_rate(key, rate)

    def set_window(self, queue: str, window: str | None, *, actor: Actor, now: datetime) -> None:
        """See ``Store.set_window``."""
        self._desk(actor, now).set_window(queue, window)

    def declare_limits(self, limits: Mapping[str, Cap]) -> None:
        """See ``Store.declare_limits``."""
        declarations.declare_limits(self.tables, limits)

    def declare_queues(self, defaults: Mapping[str, QueueDefaults]) -> None:
        """See ``Store.declare_queues``."""
        declarations.declare_queues(self.tables, defaults)

    def request_drain(self, pump_id: UUID, *, actor: Actor, now: datetime) -> bool:
        """See ``Store.request_drain``."""
        return self._desk(actor, now).request_drain(pump_id)

    def load_schedules(self, *, after: str, limit: int) -> SchedulesAnswer:
        """See ``Store.load_schedules``."""
        return schedules.load_schedules(self.tables, after=after, limit=limit)

    def mint(self, decisions: Sequence[Decision], *, now: datetime) -> MintAnswer:
        """See ``Store.mint``."""
        return schedules.mint(self.tables, decisions, now=now)

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
            self.tables, specs, owner=owner, release=release, mode=mode, now=now
        )

    def save_schedule(self, spec: ScheduleSpec, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.save_schedule``."""
        return self._schedules(actor, now).save(spec)

    def delete_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.delete_schedule``."""
        return self._schedules(actor, now).delete(name)

    def trigger_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.trigger_schedule``."""
        return self._schedules(actor, now).trigger(name)

    def pause_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.pause_schedule``."""
        return self._schedules(actor, now).pause(name)

    def resume_schedule(self, name: str, *, actor: Actor, now: datetime) -> ScheduleAnswer:
        """See ``Store.resume_schedule``."""
        return self._schedules(actor, now).resume(name)

    def _schedules(self, actor: Actor, now: datetime) -> ScheduleDesk:
        return ScheduleDesk(self.tables, actor=actor, now=now)

    def _workflow(self, workflow_id: UUID, actor: Actor, now: datetime) -> WorkflowDesk:
        return WorkflowDesk(self.tables, workflow_id, actor=actor, now=now)

    def _desk(self, actor: Actor, now: datetime) -> Desk:
        return Desk(self.tables, actor=actor, now=now)
