"""Reactions: the jobs of those who observe the ends that a verb brought about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.memory.intake import enqueue
from backwave_django.core.observing import Ended

if TYPE_CHECKING:
    from backwave_django.core.memory.rows import OutcomeRow
    from backwave_django.core.memory.tables import Tables


def react(tables: Tables) -> None:
    """Insert a job for each observer of each end since the last call."""
    rows, tables.endings = tables.endings, []
    observers = tables.settings.observers
    jobs = [job for row in rows for job in observers.jobs(_ended(tables, row))]
    if jobs:
        enqueue(tables, jobs)


def _ended(tables: Tables, row: OutcomeRow) -> Ended:
    job = tables.jobs[row.job_id]
    assert row.cause is not None, "an end has a cause"
    return Ended(
        job_id=row.job_id,
        wire_name=job.new.wire_name,
        queue=job.new.queue,
        state=row.state,
        cause=row.cause,
        attempt=row.attempt,
        run=row.run,
        finished_at=row.finished_at,
        error_class=None if row.failure is None else row.failure.error_class,
        message=None if row.failure is None else row.failure.message,
        tags=job.tags,
    )
