"""Rows for tests, one factory for each model.

They write what the store would have written, without it: a job is due since a minute unless told
otherwise, and a terminal one ended at ``T0`` with the usual cause of its state.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import factory
from factory.django import DjangoModelFactory

from backwave_django import models

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
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


class JobFactory(DjangoModelFactory):
    class Meta:
        model = models.Job

    id = factory.Sequence(lambda n: uuid7(n, at=T0 - timedelta(hours=1)))
    wire_name = "shop.send_receipt"
    queue = "default"
    state = "scheduled"
    due_at = T0 - MINUTE
    payload = '{"args": [42], "kwargs": {}}'
    created_at = T0 - timedelta(hours=1)
    unique_live = factory.LazyAttribute(
        lambda job: None if job.state in CAUSES else getattr(job, "unique_key", None)
    )
    cause = factory.LazyAttribute(lambda job: CAUSES.get(job.state))
    terminal_at = factory.LazyAttribute(lambda job: T0 if job.state in CAUSES else None)


class PumpFactory(DjangoModelFactory):
    class Meta:
        model = models.Pump

    id = factory.Sequence(lambda n: uuid7(n, at=T0 - timedelta(hours=2)))
    group = "default"
    node = factory.Sequence(lambda n: f"node-{n}")
    hostname = "web-1"
    pid = factory.Sequence(lambda n: 100 + n)
    boot_id = "boot"
    pid_namespace = "4026531836"
    version = "0.1.0"
    queues = factory.LazyFunction(lambda: ["default"])
    wire_names = factory.LazyFunction(lambda: {"shop.send_receipt": 1})
    pool_size = 20
    lease_seconds = 60.0
    health = "healthy"
    started_at = T0 - timedelta(hours=2)
    seen_at = T0 - SECOND


class LeaseFactory(DjangoModelFactory):
    """A lease of a ``leased`` job, held by a live pump."""

    class Meta:
        model = models.Lease

    id = factory.Sequence(uuid7)
    job = factory.SubFactory(JobFactory, state="leased", run=1)
    queue = factory.SelfAttribute("job.queue")
    pump_id = factory.LazyFunction(lambda: PumpFactory.create().pk)
    run = factory.SelfAttribute("job.run")
    acquired_at = T0 - 10 * SECOND
    expires_at = T0 + 50 * SECOND
    retry = "8;10.0;3.0;3600.0;0.1"


class OutcomeFactory(DjangoModelFactory):
    """The failure of a first attempt, which is to be tried again."""

    class Meta:
        model = models.Outcome

    job = factory.SubFactory(JobFactory, run=1, spent=1)
    run = factory.SelfAttribute("job.run")
    attempt = 1
    kind = "failed"
    state = "scheduled"
    started_at = T0 - 10 * SECOND
    finished_at = T0 - SECOND
    error_class = "TimeoutError"
    message = "the gateway did not answer"
    traceback = 'Traceback (most recent call last):\n  File "shop/jobs.py", line 3\nTimeoutError\n'


class QueueFactory(DjangoModelFactory):
    class Meta:
        model = models.Queue

    name = factory.Sequence(lambda n: f"queue-{n}")


class LimitFactory(DjangoModelFactory):
    class Meta:
        model = models.Limit

    key = factory.Sequence(lambda n: f"limit-{n}")
    limit = 5
    source = "code"


class WorkflowFactory(DjangoModelFactory):
    class Meta:
        model = models.Workflow

    id = factory.Sequence(uuid7)
    name = "checkout"
    created_at = T0


class DependencyFactory(DjangoModelFactory):
    """An edge from a due job to one that waits for it."""

    class Meta:
        model = models.Dependency

    parent = factory.SubFactory(JobFactory)
    child = factory.SubFactory(JobFactory, state="awaiting", pending_parents=1)
    mode = "on_success"


class SettleQueueFactory(DjangoModelFactory):
    class Meta:
        model = models.SettleQueue

    parent_id = factory.Sequence(uuid7)


class ScheduleFactory(DjangoModelFactory):
    class Meta:
        model = models.Schedule

    name = factory.Sequence(lambda n: f"schedule-{n}")
    cron = "0 2 * * *"
    wire_name = "shop.nightly"
    queue = "default"
    payload = '{"args": [], "kwargs": {}}'
    created_at = T0


class OperatorActionFactory(DjangoModelFactory):
    class Meta:
        model = models.OperatorAction

    at = T0
    actor_name = "ops"
    source = "admin"
    action = "cancel"
    target_kind = "job"
    target = factory.Sequence(lambda n: str(uuid7(n)))
    result = "done"
