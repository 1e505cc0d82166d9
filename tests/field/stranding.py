"""What a pump leaves behind that is no more, and schedules made by hand."""

from datetime import timedelta
from uuid import UUID

from backwave_django import operations
from backwave_django.core.contract import Actor
from backwave_django.core.retries import Retry, RetryTable
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.core.terms import ClaimRequest
from backwave_django.jobs.ids import new_id
from backwave_django.models import Job
from backwave_django.monitor import database_clock
from backwave_django.store import default_store
from tests.field import jobs

ACTOR = Actor(name="field", reason="a field case")
AT_ONCE = Retry(max_attempts=5, initial=timedelta(0), maximum=timedelta(0), jitter=0)


def strand(queue: str = "default", *, limit: int = 1, lease_seconds: float = 0.001) -> UUID:
    """Claim due jobs for a pump that nobody has ever seen; return its id."""
    pump_id = new_id()
    request = ClaimRequest(
        pump_id=pump_id,
        queues=(queue,),
        limit=limit,
        lease_duration=timedelta(seconds=lease_seconds),
        retries=RetryTable(default=AT_ONCE),
    )
    answer = default_store().claim(request, now=database_clock())
    assert answer.jobs
    return pump_id


def every_second(name: str = "ticking") -> None:
    """Make a schedule that ticks each second."""
    job = jobs.tick.s().new_job()
    spec = ScheduleSpec(
        name=name,
        rule=Rule(every_seconds=1),
        wire_name=job.wire_name,
        queue=job.queue,
        payload=job.payload,
    )
    operations.save_schedule(spec, actor=ACTOR, now=database_clock())


def ticks(name: str = "ticking") -> int:
    """How many jobs the schedule has made."""
    return Job.objects.filter(schedule=name).count()
