"""What the end of a body means for its job."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from backwave_django.core import events as e
from backwave_django.core.bounds import MAX_HAND_BACK, MIN_HAND_BACK, MIN_SNOOZE
from backwave_django.core.commands import CancelReason
from backwave_django.core.outcomes import Failure, Outcome, OutcomeKind
from backwave_django.core.retries import Retry, due_after
from backwave_django.core.states import Cause, JobState

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.core.jobs import LeasedJob

RETURNED = (OutcomeKind.SUCCEEDED, JobState.SUCCEEDED)
_Ended: TypeAlias = e.AttemptFailed | e.AttemptCancelled | e.AttemptSnoozed | e.AttemptReleased


def judge(
    event: e.AttemptReported, *, job: LeasedJob, signalled: CancelReason | None, now: datetime
) -> Outcome:
    """Return the outcome to report for a body that ended under a lease which is still held."""
    match event:
        case e.AttemptSucceeded():
            # The hot path: positional, and nothing is computed that success does not need.
            return Outcome(
                event.lease_id,
                job.job_id,
                OutcomeKind.SUCCEEDED,
                JobState.SUCCEEDED,
                event.started_at,
                event.finished_at,
                Cause.RETURNED,
                None,
                event.output,
                event.tags,
                None,
                None,
                event.log,
            )
        case e.AttemptOutputRefused():
            return _ended(event, job, OutcomeKind.OUTPUT_REFUSED, cause=Cause.OUTPUT)._replace(
                failure=event.failure
            )
        case e.AttemptUnroutable():
            return hand_back(event, job=job, now=now)
        case e.AttemptUndecodable():
            return Outcome(
                lease_id=event.lease_id,
                job_id=job.job_id,
                kind=OutcomeKind.UNDECODABLE,
                state=JobState.QUARANTINED,
                cause=Cause.UNDECODABLE,
                started_at=event.started_at,
                finished_at=now,
                failure=event.failure,
            )
        case _:
            return _other(event, job=job, signalled=signalled, now=now)


def _other(
    event: _Ended, *, job: LeasedJob, signalled: CancelReason | None, now: datetime
) -> Outcome:
    match event:
        case e.AttemptFailed():
            return failed(event, job=job, now=now)
        case e.AttemptSnoozed():
            due_at = now + max(event.delay, MIN_SNOOZE)
            return _ended(event, job, OutcomeKind.SNOOZED, due_at=due_at)
        case e.AttemptReleased():
            return released(job, started_at=event.started_at, now=now)
        case _:
            if signalled in {CancelReason.DRAIN, CancelReason.HALT}:
                return released(job, started_at=event.started_at, now=now)._replace(
                    tags=event.tags, log=event.log
                )
            cause = Cause.OPERATOR if signalled is CancelReason.OPERATOR else Cause.JOB
            return _ended(event, job, OutcomeKind.CANCELLED, cause=cause)


def failed(event: e.AttemptFailed, *, job: LeasedJob, now: datetime) -> Outcome:
    """A failure: give up, try again when the body or the policy says, or dead-letter."""
    if event.gave_up:
        outcome = _ended(event, job, OutcomeKind.GAVE_UP, cause=Cause.GAVE_UP)
        return outcome._replace(failure=event.failure)
    due_at = due_after(Retry.decode(job.retry), job_id=job.job_id, attempt=job.attempt, now=now)
    if due_at is not None and event.retry_after is not None:
        due_at = now + max(event.retry_after, timedelta(0))
    outcome = _ended(event, job, OutcomeKind.FAILED, due_at=due_at, cause=Cause.ATTEMPTS)
    return outcome._replace(failure=event.failure)


def timed_out(job: LeasedJob, *, after: timedelta, started_at: datetime, now: datetime) -> Outcome:
    """A body that ran past its time-out: a failure, whatever the body still does."""
    due_at = due_after(Retry.decode(job.retry), job_id=job.job_id, attempt=job.attempt, now=now)
    seconds = f"{after.total_seconds():g}"
    return Outcome(
        lease_id=job.lease_id,
        job_id=job.job_id,
        kind=OutcomeKind.TIMED_OUT,
        state=JobState.DEAD_LETTERED if due_at is None else JobState.SCHEDULED,
        cause=Cause.TIMEOUT if due_at is None else None,
        due_at=due_at,
        started_at=started_at,
        finished_at=now,
        failure=Failure("backwave_django.TimedOut", f"ran longer than its {seconds} s"),
    )


def released(job: LeasedJob, *, started_at: datetime, now: datetime) -> Outcome:
    """The attempt is given back: due at once, nothing spent."""
    return Outcome(
        lease_id=job.lease_id,
        job_id=job.job_id,
        kind=OutcomeKind.RELEASED,
        state=JobState.SCHEDULED,
        due_at=now,
        started_at=started_at,
        finished_at=now,
    )


def hand_back(event: e.AttemptUnroutable, *, job: LeasedJob, now: datetime) -> Outcome:
    """Not here: another pump may know how. The longer it goes on, the longer each rest."""
    unroutable_for = now - (job.unroutable_since or now)
    rest = min(max(unroutable_for, MIN_HAND_BACK), MAX_HAND_BACK)
    return Outcome(
        lease_id=event.lease_id,
        job_id=job.job_id,
        kind=OutcomeKind.UNROUTABLE,
        state=JobState.SCHEDULED,
        due_at=now + rest,
        started_at=event.started_at,
        finished_at=now,
        failure=event.failure,
        unroutable=event.reason,
    )


def _ended(
    event: e.AttemptFailed | e.AttemptCancelled | e.AttemptSnoozed | e.AttemptOutputRefused,
    job: LeasedJob,
    kind: OutcomeKind,
    *,
    due_at: datetime | None = None,
    cause: Cause | None = None,
) -> Outcome:
    """Build an outcome: scheduled when ``due_at`` is given, else the end that ``cause`` names."""
    ends = {Cause.OPERATOR: JobState.CANCELLED, Cause.JOB: JobState.CANCELLED}
    state = JobState.SCHEDULED
    if due_at is None:
        assert cause is not None, "an end needs a cause"
        state = ends.get(cause, JobState.DEAD_LETTERED)
    return Outcome(
        lease_id=event.lease_id,
        job_id=job.job_id,
        kind=kind,
        state=state,
        cause=cause if due_at is None else None,
        due_at=due_at,
        started_at=event.started_at,
        finished_at=event.finished_at,
        tags=event.tags,
        log=event.log,
    )
