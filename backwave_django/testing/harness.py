"""Jobs over virtual time, on the test's own database connection.

The harness is a pump without threads: the same driver gives the same commands, the database store
carries them out on Django's connection, and bodies run one after the other on the calling thread.
So it works inside ``TestCase``, and a test of a job that is due in two days takes milliseconds.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from django.utils import timezone

from backwave_django.conf import get_config
from backwave_django.jobs import ports
from backwave_django.jobs.ids import new_id
from backwave_django.monitor.horizon import next_instant, queues_in_use, waiting
from backwave_django.monitor.why import explain
from backwave_django.store.adapter import DatabaseStore
from backwave_django.store.executors import DjangoExecutor, observed
from backwave_django.testing.clock import VirtualClock
from backwave_django.testing.inline import InlineAttempts
from backwave_django.testing.turns import Round, Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from uuid import UUID

    from backwave_django.core.contract import ActionAnswer, Actor, WorkflowAnswer
    from backwave_django.core.jobs import Enqueued, LeasedJob, NewJob
    from backwave_django.core.limits import Cap
    from backwave_django.core.workflows import NewWorkflow, RetryScope


class Harness:
    """Runs jobs over virtual time. Use it as a context manager, one at a time.

    While it is open, whatever is enqueued in this process takes the harness's clock, whichever
    code enqueues it. Time-outs do not apply: a body runs until it returns.
    """

    def __init__(self, *, now: datetime | None = None) -> None:
        if now is not None and now.tzinfo is None:
            raise ValueError(f"now={now!r}: give an aware datetime, timezone.make_aware(...)")
        config = get_config()
        self._using = config.database
        self._clock = VirtualClock(now or timezone.now())
        self._store = DatabaseStore(
            DjangoExecutor(self._using),
            observed(config.store_settings),
            exact=True,
            hints=False,
            fixed_clock=self._clock.now,
        )
        self._attempts = InlineAttempts(clock=self._clock, store=self._store)
        self._wired: ports.Ports | None = None

    def __enter__(self) -> Self:
        self._wired = ports.wired()
        config = get_config()
        if config.limits or config.windows:
            self._store.declare_queues(config.declared_queues)
        ports.wire(
            replace(
                self._wired,
                intake=_Intake(self._store, self._wired.intake),
                desk=_Desk(self._store, self._wired.desk, self._clock),
                flows=_Flows(self._store, self._wired.flows, self._clock),
                now=self._clock.now,
            )
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ports.wire(self._wired)
        self._wired = None

    @property
    def now(self) -> datetime:
        """The virtual instant, in UTC."""
        return self._clock.now()

    def run_until_idle(self) -> int:
        """Run all that is due at this instant; return the number of attempts.

        Raises ``RuntimeError`` when jobs enqueue each other without end.
        """
        self._check_open()
        return self._round(self._attempts.run)

    def advance(self, delta: timedelta | None = None, **spans: float) -> int:
        """Move time forward and run all that comes due on the way, in order.

        Give a ``timedelta``, or its keywords: ``advance(days=3)``. Stops at every due time,
        deadline, schedule tick and lapse of a lease in between, and where jobs wait for it at the
        opening of a queue and the next token of a rate. Returns the number of attempts.
        """
        step = delta if delta is not None else timedelta(**spans)
        if step < timedelta(0):
            raise ValueError(f"advance({step}): time only moves forward")
        target = self.now + step
        done = self.run_until_idle()
        while True:
            instant = next_instant(after=self.now, using=self._using)
            if instant is None or instant > target:
                break
            self._clock.move_to(instant)
            done += self.run_until_idle()
        self._clock.move_to(target)
        return done + self.run_until_idle()

    def enqueued(self, job: Any = None) -> list[ports.JobRecord]:
        """Return the jobs that are scheduled or awaiting, soonest first; of one type if given."""
        self._check_open()
        wire_name = None if job is None else _wire_name(job)
        return waiting(wire_name, using=self._using)

    def fail_next(self, job: Any, error: BaseException | None = None) -> None:
        """Let the next attempt of ``job`` (a job type or wire name) raise ``error`` at once."""
        self._check_open()
        self._attempts.fail_next(_wire_name(job), error or RuntimeError("planned by the test"))

    def crash_pump(self) -> int:
        """Let a pump claim what is due and die with it; return how many jobs it took along.

        Their leases lapse after the group's ``LEASE_DURATION``: ``advance`` past it, and they
        run again with one attempt spent.
        """
        self._check_open()
        return self._round(_die)

    def _round(self, run: Run) -> int:
        queues = queues_in_use(using=self._using)
        return Round(store=self._store, clock=self._clock, queues=queues, run=run).run()

    def _check_open(self) -> None:
        if self._wired is None:
            raise RuntimeError("the harness is not open: write `with Harness() as harness:`")


def _die(_job: LeasedJob) -> None:
    """Stand for a pump that is gone before the body could do anything."""


def _wire_name(job: Any) -> str:
    """Return the wire name of a job type, or the one that was given as text."""
    return job if isinstance(job, str) else str(job.wire_name)


class _Intake:
    """Jobs are inserted with the harness's clock."""

    def __init__(self, store: DatabaseStore, wired: ports.Intake) -> None:
        self._store = store
        self._wired = wired

    def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        return self._store.enqueue(jobs)

    def start_workflow(self, workflow: NewWorkflow, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        return self._store.start_workflow(workflow, jobs)

    def declare_limits(self, limits: Mapping[str, Cap]) -> None:
        self._wired.declare_limits(limits)


class _Desk:
    """Handles act at the harness's instant."""

    def __init__(self, store: DatabaseStore, wired: ports.Desk, clock: VirtualClock) -> None:
        self._store = store
        self._wired = wired
        self._clock = clock

    def read(self, job_id: UUID) -> ports.JobRecord | None:
        return self._wired.read(job_id)

    def explain(self, job_id: UUID) -> tuple[ports.Reason, ...]:
        return explain(job_id, clock=self._clock.now())

    def cancel(self, job_id: UUID, *, actor: Actor) -> ActionAnswer:
        return self._store.cancel([job_id], actor=actor, now=self._clock.now())[0]


class _Flows:
    """Workflows, likewise."""

    def __init__(self, store: DatabaseStore, wired: ports.Flows, clock: VirtualClock) -> None:
        self._store = store
        self._wired = wired
        self._clock = clock

    def read(self, workflow_id: UUID) -> ports.WorkflowRecord | None:
        return self._wired.read(workflow_id)

    def cancel(self, workflow_id: UUID, *, actor: Actor) -> WorkflowAnswer:
        return self._store.cancel_workflow(workflow_id, actor=actor, now=self._clock.now())

    def retry(self, workflow_id: UUID, *, scope: RetryScope, actor: Actor) -> WorkflowAnswer:
        return self._store.retry_workflow(
            workflow_id, scope=scope, actor=actor, now=self._clock.now()
        )

    def restart(self, workflow_id: UUID, *, actor: Actor) -> WorkflowAnswer:
        return self._store.restart_workflow(
            workflow_id, new_id=new_id, actor=actor, now=self._clock.now()
        )
