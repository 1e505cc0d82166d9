from datetime import datetime, timedelta
from typing import Any

import pytest

from backwave_django.core import events as e
from backwave_django.core import verdicts
from backwave_django.core.commands import CancelReason
from backwave_django.core.outcomes import Failure, Outcome, OutcomeKind, Unroutable
from backwave_django.core.states import Cause, JobState
from tests.core.drivers import OOPS, SECOND, T0, at, gave_in, job, lease, raised, release, success

NOW = at(9)
TOLD: dict[str, Any] = {"tags": '{"lot": 4}', "log": "packed"}


def judge(
    event: e.AttemptReported,
    *,
    signalled: CancelReason | None = None,
    now: datetime = NOW,
    **fields: Any,
) -> Outcome:
    return verdicts.judge(event, job=job(1, **fields), signalled=signalled, now=now)


def outcome(kind: OutcomeKind, state: JobState, **fields: Any) -> Outcome:
    values: dict[str, Any] = {
        "lease_id": lease(1),
        "job_id": job(1).job_id,
        "kind": kind,
        "state": state,
        "started_at": T0,
        "finished_at": T0,
    }
    return Outcome(**{**values, **fields})


def test_a_body_that_returned_succeeded():
    event = e.AttemptSucceeded(lease(1), T0, at(2), "41", '{"lot": 4}', "packed")
    assert judge(event) == success(1, now=at(2))._replace(
        output="41", tags='{"lot": 4}', log="packed"
    )


def test_a_failure_with_attempts_left_is_due_after_the_backoff():
    assert judge(raised(1, **TOLD), spent=1) == outcome(
        OutcomeKind.FAILED, JobState.SCHEDULED, due_at=at(29), failure=OOPS, **TOLD
    )


def test_a_failure_of_the_last_attempt_is_dead_lettered():
    assert judge(raised(1), spent=2) == outcome(
        OutcomeKind.FAILED, JobState.DEAD_LETTERED, cause=Cause.ATTEMPTS, failure=OOPS
    )


def test_a_body_may_say_when_to_try_again():
    assert judge(raised(1, retry_after=4 * SECOND)).due_at == at(13)


def test_never_in_the_past():
    assert judge(raised(1, retry_after=-4 * SECOND)).due_at == NOW


def test_saying_when_to_try_again_makes_no_attempt():
    assert judge(raised(1, retry_after=4 * SECOND), spent=2).state is JobState.DEAD_LETTERED


def test_giving_up_is_the_end_whatever_is_left():
    assert judge(raised(1, gave_up=True, **TOLD)) == outcome(
        OutcomeKind.GAVE_UP, JobState.DEAD_LETTERED, cause=Cause.GAVE_UP, failure=OOPS, **TOLD
    )


def test_an_output_that_cannot_be_kept_is_the_end():
    event = e.AttemptOutputRefused(
        lease_id=lease(1), started_at=T0, finished_at=T0, failure=OOPS, **TOLD
    )
    assert judge(event) == outcome(
        OutcomeKind.OUTPUT_REFUSED,
        JobState.DEAD_LETTERED,
        cause=Cause.OUTPUT,
        failure=OOPS,
        **TOLD,
    )


@pytest.mark.parametrize(("asked", "given"), [(0, 1), (1, 1), (90, 90)])
def test_a_snooze_lasts_a_second_at_least(asked, given):
    event = e.AttemptSnoozed(
        lease_id=lease(1), started_at=T0, finished_at=T0, delay=asked * SECOND, **TOLD
    )
    due_at = NOW + given * SECOND
    assert judge(event) == outcome(OutcomeKind.SNOOZED, JobState.SCHEDULED, due_at=due_at, **TOLD)


def test_a_worker_that_began_nothing_gives_the_job_back():
    event = e.AttemptReleased(lease_id=lease(1), started_at=T0)
    assert judge(event) == release(1, now=NOW)


@pytest.mark.parametrize("reason", [CancelReason.DRAIN, CancelReason.HALT])
def test_cancelled_after_a_shutdown_signal_is_a_release(reason):
    event = e.AttemptCancelled(lease_id=lease(1), started_at=T0, finished_at=T0, **TOLD)
    assert judge(event, signalled=reason) == release(1, now=NOW)._replace(**TOLD)


def test_cancelled_after_an_operators_signal_is_the_operators():
    assert judge(gave_in(1), signalled=CancelReason.OPERATOR) == outcome(
        OutcomeKind.CANCELLED, JobState.CANCELLED, cause=Cause.OPERATOR
    )


def test_cancelled_without_a_signal_is_the_jobs_own():
    assert judge(gave_in(1)) == outcome(OutcomeKind.CANCELLED, JobState.CANCELLED, cause=Cause.JOB)


def test_a_payload_that_is_none_is_quarantined_at_once():
    event = e.AttemptUndecodable(lease_id=lease(1), started_at=T0, failure=OOPS)
    assert judge(event) == outcome(
        OutcomeKind.UNDECODABLE,
        JobState.QUARANTINED,
        cause=Cause.UNDECODABLE,
        finished_at=NOW,
        failure=OOPS,
    )


@pytest.mark.parametrize(("handed_back_for", "rest"), [(None, 10), (3, 10), (40, 40), (300, 60)])
def test_a_job_that_nobody_knows_rests_longer_each_time(handed_back_for, rest):
    since = None if handed_back_for is None else NOW - timedelta(seconds=handed_back_for)
    event = e.AttemptUnroutable(
        lease_id=lease(1), started_at=T0, reason=Unroutable.UNKNOWN_TYPE, failure=OOPS
    )
    assert judge(event, unroutable_since=since) == outcome(
        OutcomeKind.UNROUTABLE,
        JobState.SCHEDULED,
        finished_at=NOW,
        due_at=NOW + rest * SECOND,
        failure=OOPS,
        unroutable=Unroutable.UNKNOWN_TYPE,
    )


@pytest.mark.parametrize(("spent", "due_at"), [(0, at(19)), (2, None)])
def test_a_time_out_is_a_failure_with_a_cause_of_its_own(spent, due_at):
    assert verdicts.timed_out(
        job(1, spent=spent), after=2.5 * SECOND, started_at=T0, now=NOW
    ) == outcome(
        OutcomeKind.TIMED_OUT,
        JobState.SCHEDULED if due_at else JobState.DEAD_LETTERED,
        cause=None if due_at else Cause.TIMEOUT,
        finished_at=NOW,
        due_at=due_at,
        failure=Failure("backwave_django.TimedOut", "ran longer than its 2.5 s"),
    )
