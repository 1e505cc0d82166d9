"""When something will happen next, and what waits for it. For tests over virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Min

from backwave_django.conf import get_config
from backwave_django.core.states import JobState
from backwave_django.jobs.registry import registry
from backwave_django.models import Job, Lease, Queue, Schedule
from backwave_django.monitor.limits import limits_of_key, next_token, opens_at, token_of
from backwave_django.monitor.records import record_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.db.models import QuerySet

    from backwave_django.jobs.ports import JobRecord


def next_instant(*, after: datetime, using: str) -> datetime | None:
    """Return the next instant past ``after`` at which something may be done.

    A due time, a deadline, a lapse, a tick, the end of a pause; where a job waits, the opening of
    its queue and the next token of a rate.
    """
    scheduled = Job.objects.using(using).filter(state=JobState.SCHEDULED)
    ticking = Schedule.objects.using(using).filter(enabled=True, retired_at__isnull=True)
    sources = (
        (scheduled, "due_at"),
        (scheduled, "deadline"),
        (Lease.objects.using(using), "expires_at"),
        (ticking, "next_at"),
        (Queue.objects.using(using).filter(paused=True), "paused_until"),
    )
    found = [
        rows.filter(**{f"{field}__gt": after}).aggregate(first=Min(field))["first"]
        for rows, field in sources
    ]
    found += _openings_and_tokens(scheduled.filter(due_at__lte=after), after=after, using=using)
    return min((instant for instant in found if instant is not None), default=None)


def _openings_and_tokens(
    due: QuerySet[Job], *, after: datetime, using: str
) -> Iterator[datetime | None]:
    for queue in Queue.objects.using(using).filter(pk__in=due.values("queue")):
        yield opens_at(queue, now=after)
        yield token_of(queue, now=after)
    keys = due.filter(limit_key__isnull=False).values_list("limit_key", flat=True).distinct()
    for limits in map(limits_of_key, filter(None, keys)):
        if limits is not None:
            yield next_token(limits.cap.rate, limits.full_at, now=after)


def queues_in_use(*, using: str) -> tuple[str, ...]:
    """Return every queue that a group serves, a job type names, or a waiting job is in."""
    config = get_config()
    served = [queue for group in config.groups.values() for queue in group.queues]
    named = sorted(registry.queues())
    waiting_in = Job.objects.using(using).filter(state=JobState.SCHEDULED)
    used = sorted(waiting_in.values_list("queue", flat=True).distinct())
    ticking = sorted(Schedule.objects.using(using).values_list("queue", flat=True).distinct())
    return tuple(dict.fromkeys([*served, *named, *used, *ticking]))


def waiting(wire_name: str | None, *, using: str) -> list[JobRecord]:
    """Return the jobs that are scheduled or awaiting, in claim order; of one type if given."""
    rows = Job.objects.using(using).filter(state__in=(JobState.SCHEDULED, JobState.AWAITING))
    if wire_name is not None:
        rows = rows.filter(wire_name=wire_name)
    return [record_of(job) for job in rows.order_by("due_at", "priority", "pk")]
