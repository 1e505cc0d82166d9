"""One job as its handle shows it: everything but the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.states import Cause, JobState
from backwave_django.jobs.ports import JobRecord
from backwave_django.models import Job

if TYPE_CHECKING:
    from uuid import UUID


def read_record(job_id: UUID, *, using: str) -> JobRecord | None:
    """Return the job as it stands on the connection ``using``, or ``None``."""
    job = Job.objects.using(using).defer("payload").filter(pk=job_id).first()
    return None if job is None else record_of(job)


def record_of(job: Job) -> JobRecord:
    """Return a row as a record."""
    return JobRecord(
        id=job.pk,
        wire_name=job.wire_name,
        queue=job.queue,
        state=JobState(job.state),
        cause=None if job.cause is None else Cause(job.cause),
        priority=-job.priority,
        run=job.run,
        spent=job.spent,
        due_at=job.due_at,
        deadline=job.deadline,
        created_at=job.created_at,
        terminal_at=job.terminal_at,
        tags=job.tags,
        output=job.output,
    )
