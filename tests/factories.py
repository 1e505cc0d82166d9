"""Rows for tests, one factory for each model.

They write what the store would have written, without it: a job is due since a minute unless told
otherwise, and a terminal one ended at ``T0`` with the usual cause of its state.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, Sequence, SubFactory
from factory.django import DjangoModelFactory

from backwave_django import models

#: Long ago, so that what is due at ``T0`` is due by any real clock too.
T0 = datetime(2025, 6, 2, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

CAUSES = {
    "succeeded": "returned",
    "dead_lettered": "attempts",
    "quarantined": "unroutable",
    "expired": "deadline",
    "cancelled": "operator",
}


def uuid7(number: int, *, at: datetime = T0) -> UUID:
    """Return the id of the ``number``-th thing made since ``at``: ids sort in that order."""
    milliseconds = int(at.timestamp() * 1000) + number
    return UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | number)


class JobFactory(DjangoModelFactory[models.Job]):
    class Meta:
        model = models.Job

    id = Sequence(lambda n: uuid7(n, at=T0 - timedelta(hours=1)))
    wire_name = "shop.send_receipt"
    queue = "default"
    state = "scheduled"
    due_at = T0 - MINUTE
    payload = '{"args": [42], "kwargs": {}}'
    created_at = T0 - timedelta(hours=1)
    unique_live = LazyAttribute(
        lambda job: None if job.state in CAUSES else getattr(job, "unique_key", None)
    )
    cause = LazyAttribute(lambda job: CAUSES.get(job.state))
    terminal_at = LazyAttribute(lambda job: T0 if job.state in CAUSES else None)


class PumpFactory(DjangoModelFactory[models.Pump]):
    class Meta:
        model = models.Pump

    id = Sequence(lambda n: uuid7(n, at=T0 - timedelta(hours=2)))
    group = "default"
    node = Sequence(lambda n: f"node-{n}")
    hostname = "web-1"
    pid = Sequence(lambda n: 100 + n)
    boot_id = "boot"
    pid_namespace = "4026531836"
    version = "0.1.0"
    queues = LazyFunction(lambda: ["default"])
    wire_names = LazyFunction(lambda: {"shop.send_receipt": 1})
    pool_size = 20
    lease_seconds = 60.0
    health = "healthy"
    started_at = T0 - timedelta(hours=2)
    seen_at = T0 - SECOND


class LeaseFactory(DjangoModelFactory[models.Lease]):
    """A lease of a ``leased`` job, held by a live pump."""

    class Meta:
        model = models.Lease

    id = Sequence(uuid7)
    job = SubFactory(JobFactory, state="leased", run=1)
    queue = SelfAttribute("job.queue")
    pump_id = LazyFunction(lambda: PumpFactory.create().pk)
    run = SelfAttribute("job.run")
    acquired_at = T0 - 10 * SECOND
    expires_at = T0 + 50 * SECOND
    retry = "8;10.0;3.0;3600.0;0.1"


class OutcomeFactory(DjangoModelFactory[models.Outcome]):
    """The failure of a first attempt, which is to be tried again."""

    class Meta:
        model = models.Outcome

    job = SubFactory(JobFactory, run=1, spent=1)
    run = SelfAttribute("job.run")
    attempt = 1
    kind = "failed"
    state = "scheduled"
    started_at = T0 - 10 * SECOND
    finished_at = T0 - SECOND
    error_class = "TimeoutError"
    message = "the gateway did not answer"
    traceback = 'Traceback (most recent call last):\n  File "shop/jobs.py", line 3\nTimeoutError\n'


class QueueFactory(DjangoModelFactory[models.Queue]):
    class Meta:
        model = models.Queue

    name = Sequence(lambda n: f"queue-{n}")


class LimitFactory(DjangoModelFactory[models.Limit]):
    class Meta:
        model = models.Limit

    key = Sequence(lambda n: f"limit-{n}")
    limit = 5
    source = "code"


class WorkflowFactory(DjangoModelFactory[models.Workflow]):
    class Meta:
        model = models.Workflow

    id = Sequence(uuid7)
    name = "checkout"
    created_at = T0


class DependencyFactory(DjangoModelFactory[models.Dependency]):
    """An edge from a due job to one that waits for it."""

    class Meta:
        model = models.Dependency

    parent = SubFactory(JobFactory)
    child = SubFactory(JobFactory, state="awaiting", pending_parents=1)
    mode = "on_success"


class SettleQueueFactory(DjangoModelFactory[models.SettleQueue]):
    class Meta:
        model = models.SettleQueue

    parent_id = Sequence(uuid7)


class ScheduleFactory(DjangoModelFactory[models.Schedule]):
    class Meta:
        model = models.Schedule

    name = Sequence(lambda n: f"schedule-{n}")
    cron = "0 2 * * *"
    wire_name = "shop.nightly"
    queue = "default"
    payload = '{"args": [], "kwargs": {}}'
    created_at = T0


class OperatorActionFactory(DjangoModelFactory[models.OperatorAction]):
    class Meta:
        model = models.OperatorAction

    at = T0
    actor_name = "ops"
    source = "admin"
    action = "cancel"
    target_kind = "job"
    target = Sequence(lambda n: str(uuid7(n)))
    result = "done"
