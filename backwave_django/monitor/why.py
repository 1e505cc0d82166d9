"""Why a job does not run: every condition in its way, in the order a claim would meet them.

The first reason that blocks is the answer; the rest is there so that nobody fixes one thing and
waits for the next. A job that nothing blocks gets one reason, which says what happens to it now.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from backwave_django.conf import get_config
from backwave_django.core.states import TERMINAL, Cause, JobState
from backwave_django.jobs.ports import Reason
from backwave_django.models import Dependency, Job, Lease, Outcome, Queue
from backwave_django.monitor.causes import ending
from backwave_django.monitor.clock import moment, span
from backwave_django.monitor.limits import (
    cap_of,
    limits_of_key,
    next_token,
    opens_at,
    origin_text,
    queue_rate_text,
    rate_text,
    token_of,
    window_text,
)
from backwave_django.monitor.pumps import PumpView, pump_of, pump_views
from backwave_django.monitor.queues import is_paused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

#: Jobs that are named as holders of a limit.
MOST_HOLDERS = 5
#: Parents that are named before the rest is summed up.
MOST_PARENTS = 20
#: Why a job rests until its due time, by how its last attempt ended.
_RESTS = {
    "failed": "failed",
    "timed_out": "failed",
    "lapsed": "failed",
    "snoozed": "snoozed",
    "unroutable": "unroutable",
}


def why(job: Job, *, clock: datetime) -> tuple[Reason, ...]:
    """Return the reasons, the decisive one first. ``clock`` is the database's time."""
    state = JobState(job.state)
    if state in TERMINAL:
        return tuple(_ended(job))
    if state is JobState.AWAITING:
        return tuple(_awaiting(job))
    if state is JobState.LEASED:
        return tuple(_leased(job, clock))
    found = tuple(_scheduled(job, clock))
    return found or (_claimable(job),)


def explain(job_id: UUID, *, clock: datetime) -> tuple[Reason, ...]:
    """Return the reasons for the job with this id; nothing when it is gone."""
    jobs = Job.objects.using(get_config().database).defer("payload", "output")
    job = jobs.filter(pk=job_id).first()
    return () if job is None else why(job, clock=clock)


def _ended(job: Job) -> Iterator[Reason]:
    yield Reason("ended", ending(job, _last_outcome(job)), blocks=False)
    if job.cause == Cause.SUPERSEDED and job.unique_key is not None:
        same = Job.objects.using(get_config().database).filter(unique_key=job.unique_key)
        # Ids grow with time: the next one under the key is the one that took its place.
        winner = same.filter(pk__gt=job.pk).order_by("pk").values_list("pk", flat=True).first()
        if winner is not None:
            text = _("It is a duplicate of job %(job)s, which replaced it under the key %(key)s.")
            words = {"job": str(winner), "key": job.unique_key}
            yield Reason("duplicate", text % words, blocks=False)


def _scheduled(job: Job, clock: datetime) -> Iterator[Reason]:
    if job.deadline is not None and job.deadline <= clock:
        text = _("Its deadline passed at %(time)s. The next sweep ends it.")
        yield Reason("deadline", text % {"time": moment(job.deadline, now=clock)})
    if job.due_at > clock:
        yield Reason("not_due", _not_due(job, clock))
    alias = get_config().database
    queue = Queue.objects.using(alias).filter(pk=job.queue).first()
    if queue is not None:
        yield from _queue_reasons(queue, clock)
    if job.limit_key is not None:
        yield from _limit_reasons(job.limit_key, clock)
    yield from _pump_reasons(job, pump_views(clock=clock, gone=False))


def _not_due(job: Job, clock: datetime) -> str:
    last = _last_outcome(job) if job.run else None
    rest = _RESTS.get(last.kind) if last is not None else None
    due = moment(job.due_at, now=clock)
    if last is not None and rest == "failed":
        text = _("Attempt %(attempt)d failed (%(error)s). The next one is due at %(time)s.")
        error = last.error_class or last.kind
        return text % {"attempt": last.attempt, "error": error, "time": due}
    if rest == "snoozed":
        return _("Its body put it off until %(time)s.") % {"time": due}
    if rest == "unroutable":
        text = _("No pump could route it so far. It is offered again at %(time)s.")
        return text % {"time": due}
    return _("It is not due before %(time)s.") % {"time": due}


def _queue_reasons(queue: Queue, clock: datetime) -> Iterator[Reason]:
    if is_paused(queue, now=clock):
        yield Reason("paused", paused_text(queue, clock=clock))
    opening = opens_at(queue, now=clock)
    if opening is not None:
        yield Reason("window", window_text(queue, opening, clock=clock))
    number = cap_of(queue).number
    if number is not None:
        holders = _holders(Lease.objects.filter(queue=queue.name), number)
        if len(holders) >= number:
            text = _("The queue's limit is full: %(count)d of %(limit)d jobs run.")
            text = _held_by(text % {"count": len(holders), "limit": number}, holders)
            yield Reason("limit", f"{text} {origin_text(queue, 'limit')}")
    token = token_of(queue, now=clock)
    if token is not None:
        what = _("The rate of the queue %(queue)s") % {"queue": queue.name}
        yield Reason("rate", queue_rate_text(queue, what, token, clock=clock))


def paused_text(queue: Queue, *, clock: datetime) -> str:
    """Return who paused the queue, since when, until when and why, in a sentence or two."""
    words = {
        "queue": queue.name,
        "who": queue.paused_by or _("somebody"),
        "since": moment(queue.paused_at, now=clock) if queue.paused_at else _("a time unknown"),
    }
    text = _("The queue %(queue)s is paused by %(who)s since %(since)s") % words
    if queue.paused_until is None:
        text = _("%(text)s, until it is resumed.") % {"text": text}
    else:
        until = moment(queue.paused_until, now=clock)
        text = _("%(text)s, until %(until)s.") % {"text": text, "until": until}
    if queue.pause_reason:
        text = _("%(text)s Reason: %(reason)s") % {"text": text, "reason": queue.pause_reason}
    return text


def _limit_reasons(key: str, clock: datetime) -> Iterator[Reason]:
    limits = limits_of_key(key)
    if limits is None:
        return
    number, rate = limits.cap
    origin = ""
    if limits.said_by != key:
        origin = _(" The pattern %(pattern)s says so.") % {"pattern": limits.said_by}
    if number is not None:
        holders = _holders(Lease.objects.filter(limit_key=key), number)
        if len(holders) >= number:
            text = _("The limit %(key)s is full: %(count)d of %(limit)d jobs run.")
            words = {"key": key, "count": len(holders), "limit": number}
            yield Reason("limit", _held_by(text % words, holders) + origin)
    token = next_token(rate, limits.full_at, now=clock)
    if token is not None:
        what = _("The rate of the limit %(key)s") % {"key": key}
        yield Reason("rate", rate_text(what, str(rate), token, clock=clock) + origin)


def _holders(leases: QuerySet[Lease], limit: int) -> list[UUID]:
    """Return the jobs that are leased, as far as ``limit``: more than that is as full as that."""
    found = leases.using(get_config().database).values_list("job_id", flat=True)
    return list(found[: limit + 1])


def _held_by(text: str, holders: Sequence[UUID]) -> str:
    if not holders:
        return text
    named = ", ".join(str(holder) for holder in sorted(holders)[:MOST_HOLDERS])
    if len(holders) > MOST_HOLDERS:
        return _("%(text)s Held by %(jobs)s and others.") % {"text": text, "jobs": named}
    return _("%(text)s Held by %(jobs)s.") % {"text": text, "jobs": named}


def _pump_reasons(job: Job, pumps: Sequence[PumpView]) -> Iterator[Reason]:
    serving = [pump for pump in pumps if pump.serves(job.queue)]
    if not serving:
        if pumps:
            text = _("No live pump serves the queue %(queue)s. Start one for it: %(command)s")
        else:
            text = _("No pump is live. Start one: %(command)s")
        yield Reason("no_pump", text % {"queue": job.queue, "command": _command(job.queue)})
    elif not any(pump.knows(job.wire_name, job.payload_version) for pump in serving):
        text = ngettext(
            "The %(count)d live pump that serves the queue does not know the type %(type)s in "
            "version %(version)d. Deploy the code that declares it.",
            "None of the %(count)d live pumps that serve the queue knows the type %(type)s in "
            "version %(version)d. Deploy the code that declares it.",
            len(serving),
        )
        words = {"count": len(serving), "type": job.wire_name, "version": job.payload_version}
        yield Reason("unknown_type", text % words)


def _command(queue: str) -> str:
    groups = [group.name for group in get_config().groups.values() if queue in group.queues]
    return f"python manage.py runpumps --group {groups[0] if groups else '...'}"


def _claimable(job: Job) -> Reason:
    text = _("Nothing is in its way: a pump that serves %(queue)s claims it in its turn.")
    return Reason("claimable", text % {"queue": job.queue}, blocks=False)


def _awaiting(job: Job) -> Iterator[Reason]:
    edges = Dependency.objects.using(get_config().database).filter(child_id=job.pk, settled=False)
    parents = {edge.parent_id: edge for edge in edges[: MOST_PARENTS + 1]}
    states = Job.objects.using(get_config().database).filter(pk__in=parents)
    names = {parent.pk: parent for parent in states.only("id", "wire_name", "state")}
    for parent_id in list(parents)[:MOST_PARENTS]:
        parent = names.get(parent_id)
        words = {"parent": str(parent_id)}
        if parent is None:
            text = _("It waits for job %(parent)s, which is gone. The next sweep settles it.")
        else:
            words |= {"type": parent.wire_name, "state": parent.get_state_display()}
            text = _("It waits for %(type)s %(parent)s, which is %(state)s.")
        yield Reason("parent", text % words)
    if len(parents) > MOST_PARENTS:
        yield Reason("parent", _("It waits for more parents than are listed here."))
    if not parents:
        yield Reason("unsettled", _("All its parents have ended. The next sweep releases it."))


def _leased(job: Job, clock: datetime) -> Iterator[Reason]:
    lease = Lease.objects.using(get_config().database).filter(job_id=job.pk).first()
    if lease is None:
        yield Reason("no_lease", _("Its lease is gone. The next sweep makes it due again."))
        return
    pump = pump_of(lease.pump_id, clock=clock)
    words = {
        "pump": pump.pump if pump is not None else lease.pump_id,
        "since": moment(lease.acquired_at, now=clock),
        "end": moment(lease.expires_at, now=clock),
        "left": span(max(lease.expires_at - clock, timedelta(0))),
    }
    if lease.expires_at <= clock:
        text = _("The lease of pump %(pump)s ran out at %(end)s. The next sweep ends the attempt.")
        yield Reason("lapsed", text % words)
    elif pump is None or not pump.claims:
        text = _(
            "Pump %(pump)s is gone. Its lease ends at %(end)s, then the attempt counts as lost."
        )
        yield Reason("pump_gone", text % words)
    else:
        text = _("It runs on pump %(pump)s since %(since)s. Its lease has %(left)s left.")
        yield Reason("running", text % words, blocks=False)
    if lease.cancel_requested:
        text = _("It was asked to stop, and ends when its body notices.")
        yield Reason("cancel_requested", text, blocks=False)


def _last_outcome(job: Job) -> Outcome | None:
    outcomes = Outcome.objects.using(get_config().database).filter(job_id=job.pk)
    return outcomes.only("kind", "attempt", "error_class").order_by("-id").first()
