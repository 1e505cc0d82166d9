"""Values of the core with everything filled in that a test does not care about.

Time begins at ``T0``, far from any real clock, so that an instant says which of the two it is.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from backwave_django.core.contract import Actor, ClaimRequest
from backwave_django.core.jobs import EdgeMode, LeasedJob, NewJob
from backwave_django.core.leases import Beat, PumpInfo
from backwave_django.core.outcomes import Failure, Outcome, OutcomeKind, Unroutable
from backwave_django.core.retries import Retry, RetryTable
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.core.states import Cause, JobState

T0 = datetime(2040, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def uid(number: int) -> UUID:
    """An id whose order is its number's."""
    return UUID(int=number)


PUMP = uid(9_001)
OTHER_PUMP = uid(9_002)
ACTOR = Actor(name="ada", source="code", reason="because")
#: Three attempts, one minute apart: no jitter, so that a test can say when.
RETRY = Retry(max_attempts=3, initial=MINUTE, multiplier=1.0, maximum=MINUTE, jitter=0.0)
ONCE = Retry(max_attempts=1)
FAILURE = Failure("builtins.ValueError", "no such order", "Traceback ...", "f00d")


def new_job(number: int, **options: Any) -> NewJob:
    """A job of queue ``default`` that is due at ``T0``."""
    values: dict[str, Any] = {
        "id": uid(number),
        "wire_name": "shop.pack",
        "queue": "default",
        "payload": '{"args":[1]}',
        "due_at": T0,
    }
    return NewJob(**(values | options))


def schedule_spec(name: str = "nightly", **options: Any) -> ScheduleSpec:
    """An hourly schedule of ``shop.pack`` in queue ``default``."""
    values: dict[str, Any] = {
        "name": name,
        "rule": Rule(cron="0 * * * *"),
        "wire_name": "shop.pack",
        "queue": "default",
        "payload": '{"args":[1]}',
    }
    return ScheduleSpec(**(values | options))


def after(*numbers: int, mode: EdgeMode = EdgeMode.ON_SUCCESS) -> tuple[tuple[UUID, EdgeMode], ...]:
    """Edges to jobs of these numbers."""
    return tuple((uid(number), mode) for number in numbers)


def claim_request(*queues: str, **options: Any) -> ClaimRequest:
    """A claim of ten jobs by ``PUMP`` for a minute, from ``default`` when no queue is named."""
    values: dict[str, Any] = {
        "pump_id": PUMP,
        "queues": queues or ("default",),
        "limit": 10,
        "lease_duration": MINUTE,
        "retries": RetryTable(default=options.pop("retry", RETRY)),
    }
    return ClaimRequest(**(values | options))


def pump_info(pump_id: UUID = PUMP, **options: Any) -> PumpInfo:
    """A pump that serves ``default`` and knows ``shop.pack``, with leases of a minute."""
    values: dict[str, Any] = {
        "id": pump_id,
        "group": "default",
        "node": "node-1",
        "hostname": "host",
        "pid": 4711,
        "boot_id": "boot",
        "pid_namespace": "ns",
        "version": "v1",
        "queues": ("default",),
        "pool_size": 8,
        "lease_duration": MINUTE,
        "wire_names": (("shop.pack", 1),),
        "started_at": T0,
    }
    return PumpInfo(**(values | options))


def beat(*leases: UUID, **options: Any) -> Beat:
    """A heartbeat of ``PUMP`` for a minute."""
    values: dict[str, Any] = {"pump_id": PUMP, "leases": leases, "lease_duration": MINUTE}
    return Beat(**(values | options))


def ended(
    job: LeasedJob,
    kind: OutcomeKind,
    *,
    at: datetime = T0,
    due_at: datetime | None = None,
    cause: Cause | None = None,
    state: JobState = JobState.DEAD_LETTERED,
    **options: Any,
) -> Outcome:
    """An outcome: to be scheduled again when ``due_at`` is given, else the end named."""
    return Outcome(
        lease_id=job.lease_id,
        job_id=job.job_id,
        kind=kind,
        state=state if due_at is None else JobState.SCHEDULED,
        started_at=at,
        finished_at=at,
        cause=cause if due_at is None else None,
        due_at=due_at,
        **options,
    )


def succeeded(job: LeasedJob, **options: Any) -> Outcome:
    """The body returned."""
    return ended(
        job, OutcomeKind.SUCCEEDED, state=JobState.SUCCEEDED, cause=Cause.RETURNED, **options
    )


def failed(job: LeasedJob, **options: Any) -> Outcome:
    """The body raised: tried again at ``due_at``, or dead-lettered."""
    options = {"failure": FAILURE} | options
    return ended(job, OutcomeKind.FAILED, cause=Cause.ATTEMPTS, **options)


def timed_out(job: LeasedJob, **options: Any) -> Outcome:
    """The body ran for too long."""
    return ended(job, OutcomeKind.TIMED_OUT, cause=Cause.TIMEOUT, failure=FAILURE, **options)


def gave_up(job: LeasedJob, **options: Any) -> Outcome:
    """The body said that it will never work."""
    return ended(job, OutcomeKind.GAVE_UP, cause=Cause.GAVE_UP, failure=FAILURE, **options)


def output_refused(job: LeasedJob, **options: Any) -> Outcome:
    """The body returned what cannot be kept."""
    return ended(job, OutcomeKind.OUTPUT_REFUSED, cause=Cause.OUTPUT, failure=FAILURE, **options)


def cancelled(job: LeasedJob, *, cause: Cause = Cause.JOB, **options: Any) -> Outcome:
    """The body stopped by itself, or because it was asked to."""
    return ended(job, OutcomeKind.CANCELLED, state=JobState.CANCELLED, cause=cause, **options)


def snoozed(job: LeasedJob, *, due_at: datetime, **options: Any) -> Outcome:
    """The body asked to run later."""
    return ended(job, OutcomeKind.SNOOZED, due_at=due_at, **options)


def released(job: LeasedJob, *, at: datetime = T0, **options: Any) -> Outcome:
    """The pump shuts down."""
    return ended(job, OutcomeKind.RELEASED, at=at, due_at=at, **options)


def unroutable(
    job: LeasedJob,
    *,
    at: datetime = T0,
    why: Unroutable = Unroutable.UNKNOWN_TYPE,
    **options: Any,
) -> Outcome:
    """The worker did not know how to begin; the job rests for ten seconds."""
    values: dict[str, Any] = {"due_at": at + 10 * SECOND, "failure": FAILURE}
    return ended(job, OutcomeKind.UNROUTABLE, at=at, unroutable=why, **(values | options))


def undecodable(job: LeasedJob, **options: Any) -> Outcome:
    """The payload is no payload."""
    return ended(
        job,
        OutcomeKind.UNDECODABLE,
        state=JobState.QUARANTINED,
        cause=Cause.UNDECODABLE,
        failure=FAILURE,
        **options,
    )
