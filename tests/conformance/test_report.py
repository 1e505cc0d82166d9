from collections.abc import Callable

import pytest

from backwave_django.core.contract import History, Store, StoreSettings
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import Outcome, OutcomeKind, Reported, Verdict
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    FAILURE,
    HOUR,
    PUMP,
    SECOND,
    T0,
    after,
    cancelled,
    claim_request,
    failed,
    gave_up,
    new_job,
    output_refused,
    released,
    snoozed,
    succeeded,
    timed_out,
    uid,
    undecodable,
    unroutable,
)
from tests.conformance.conftest import MakeSubject
from tests.conformance.facts import Ended, Facts, column, facts, history, numbers
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
LATER = T0 + HOUR
NOW = T0 + SECOND

#: A reported outcome, and where the job stands after it: state, spent, due time, cause.
APPLIED: list[tuple[str, Callable[[LeasedJob], Outcome], Facts]] = [
    ("success", succeeded, Facts(JobState.SUCCEEDED, 1, 0, T0, Cause.RETURNED)),
    ("last failure", failed, Facts(JobState.DEAD_LETTERED, 1, 1, T0, Cause.ATTEMPTS)),
    ("failure", lambda job: failed(job, due_at=LATER), Facts(JobState.SCHEDULED, 1, 1, LATER)),
    ("time-out", lambda job: timed_out(job, due_at=LATER), Facts("scheduled", 1, 1, LATER)),
    ("last time-out", timed_out, Facts(JobState.DEAD_LETTERED, 1, 1, T0, Cause.TIMEOUT)),
    ("give-up", gave_up, Facts(JobState.DEAD_LETTERED, 1, 1, T0, Cause.GAVE_UP)),
    ("refused output", output_refused, Facts(JobState.DEAD_LETTERED, 1, 1, T0, Cause.OUTPUT)),
    ("body cancelled", cancelled, Facts(JobState.CANCELLED, 1, 0, T0, Cause.JOB)),
    ("snooze", lambda job: snoozed(job, due_at=LATER), Facts("scheduled", 1, 0, LATER)),
    ("release", lambda job: released(job, at=NOW), Facts(JobState.SCHEDULED, 1, 0, NOW)),
    ("undecodable", undecodable, Facts(JobState.QUARANTINED, 1, 0, T0, Cause.UNDECODABLE)),
]
by_name = pytest.mark.parametrize(
    ("make", "expected"), [row[1:] for row in APPLIED], ids=[row[0] for row in APPLIED]
)


def one_leased(store: Store, **options: object) -> LeasedJob:
    store.enqueue([new_job(1, **options)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    return job


@by_name
def test_outcome_moves_its_job(
    store: Store, observe: Observe, make: Callable[[LeasedJob], Outcome], expected: Facts
) -> None:
    job = one_leased(store)
    answer = store.report([make(job)], now=NOW)
    assert answer.rows == (Reported(job.lease_id, Verdict.APPLIED, expected.state),)
    assert facts(observe(), 1) == expected
    assert observe().leases == {}
    ended_at = None if expected.cause is None else NOW
    assert column(observe(), 1, "terminal_at") == (ended_at,)


@by_name
def test_requested_cancellation_wins_over_everything_but_success(
    store: Store, observe: Observe, make: Callable[[LeasedJob], Outcome], expected: Facts
) -> None:
    job = one_leased(store)
    store.cancel([uid(1)], actor=ACTOR, now=T0)
    store.report([make(job)], now=NOW)
    if expected.state == JobState.SUCCEEDED:
        assert facts(observe(), 1) == expected
    else:
        assert facts(observe(), 1) == Facts("cancelled", 1, expected.spent, T0, Cause.OPERATOR)
    row = observe().outcomes[uid(1)][-1]
    assert (row["kind"], row["state"]) == (make(job).kind, facts(observe(), 1).state)


@by_name
def test_second_report_under_a_lease_is_stale_and_changes_nothing(
    store: Store, observe: Observe, make: Callable[[LeasedJob], Outcome], expected: Facts
) -> None:
    job = one_leased(store)
    store.report([make(job)], now=NOW)
    before = observe()
    answer = store.report([make(job)], now=LATER)
    assert answer.rows == (Reported(job.lease_id, Verdict.STALE),)
    assert observe() == before


def test_outcome_of_a_lease_that_was_taken_away_is_stale(store: Store, observe: Observe) -> None:
    job = one_leased(store)
    store.dispose(pumps=[PUMP], now=NOW)
    (again,) = store.claim(claim_request(), now=LATER).jobs
    before = observe()
    assert store.report([succeeded(job)], now=LATER).rows == (
        Reported(job.lease_id, Verdict.STALE),
    )
    assert observe() == before
    assert store.report([succeeded(again)], now=LATER).rows[0].verdict is Verdict.APPLIED


@pytest.mark.row_locks
@pytest.mark.parametrize("what", ["job", "lease"])
def test_outcome_whose_row_another_transaction_holds_is_busy_and_may_be_offered_again(
    subject: Subject, what: str
) -> None:
    job = one_leased(subject.store)
    before = subject.observe()
    hold = subject.hold_job if what == "job" else subject.hold_lease
    with hold(uid(1)):
        answer = subject.store.report([succeeded(job)], now=NOW)
        assert answer.rows == (Reported(job.lease_id, Verdict.BUSY),)
        assert subject.observe() == before
    answer = subject.store.report([succeeded(job)], now=NOW)
    assert answer.rows == (Reported(job.lease_id, Verdict.APPLIED, JobState.SUCCEEDED),)


def test_each_row_of_a_batch_has_its_own_verdict(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(number) for number in (1, 2, 3)])
    first, second, third = store.claim(claim_request(), now=T0).jobs
    store.report([succeeded(second)], now=T0)
    answer = store.report([failed(third, due_at=LATER), gave_up(second), succeeded(first)], now=NOW)
    assert answer.rows == (
        Reported(third.lease_id, Verdict.APPLIED, JobState.SCHEDULED),
        Reported(second.lease_id, Verdict.STALE),
        Reported(first.lease_id, Verdict.APPLIED, JobState.SUCCEEDED),
    )
    assert numbers((first, second, third)) == (1, 2, 3)


def test_second_outcome_of_a_lease_in_one_batch_is_stale(store: Store, observe: Observe) -> None:
    job = one_leased(store)
    answer = store.report([succeeded(job), failed(job, due_at=LATER)], now=NOW)
    assert answer.rows == (
        Reported(job.lease_id, Verdict.APPLIED, JobState.SUCCEEDED),
        Reported(job.lease_id, Verdict.STALE),
    )
    assert facts(observe(), 1).state == JobState.SUCCEEDED


def test_empty_report_is_answered(store: Store) -> None:
    assert store.report([], now=T0).rows == ()


def test_history_tells_the_whole_story_of_an_attempt(store: Store, observe: Observe) -> None:
    job = one_leased(store)
    outcome = failed(job, at=NOW, due_at=LATER, log="one line")
    store.report([outcome._replace(started_at=T0)], now=NOW + SECOND)
    assert observe().outcomes[uid(1)] == (
        {
            "run": 1,
            "attempt": 1,
            "kind": OutcomeKind.FAILED,
            "state": JobState.SCHEDULED,
            "cause": None,
            "pump_id": PUMP,
            "started_at": T0,
            "finished_at": NOW,
            "failure": FAILURE,
            "log": "one line",
            "next_due_at": LATER,
        },
    )


def test_history_has_one_row_per_claimed_run(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    for make in (lambda job: failed(job, due_at=T0), released, succeeded):
        (job,) = store.claim(claim_request(), now=T0).jobs
        store.report([make(job)], now=T0)
    assert history(observe(), 1) == (
        Ended(OutcomeKind.FAILED, JobState.SCHEDULED, None, 1, 1),
        Ended(OutcomeKind.RELEASED, JobState.SCHEDULED, None, 2, 2),
        Ended(OutcomeKind.SUCCEEDED, JobState.SUCCEEDED, Cause.RETURNED, 3, 2),
    )


def test_output_is_kept_on_success(store: Store, observe: Observe) -> None:
    job = one_leased(store)
    store.report([succeeded(job, output='{"total":"12.50"}')], now=T0)
    assert column(observe(), 1, "output") == ('{"total":"12.50"}',)


def test_output_is_kept_on_nothing_else(store: Store, observe: Observe) -> None:
    job = one_leased(store)
    store.report([failed(job, output='"half"')], now=T0)
    assert column(observe(), 1, "output") == (None,)


@pytest.mark.parametrize("make", [succeeded, failed, cancelled])
def test_tags_of_every_applied_outcome_are_united(
    store: Store, observe: Observe, make: Callable[..., Outcome]
) -> None:
    job = one_leased(store, tags='{"team":"ops","round":"1"}')
    store.report([make(job, tags='{"round":"2","order":"9"}')], now=T0)
    assert column(observe(), 1, "tags") == ({"team": "ops", "round": "2", "order": "9"},)


def test_tags_come_back_with_the_next_claim(store: Store) -> None:
    job = one_leased(store)
    store.report([failed(job, due_at=T0, tags='{"seen":"1"}')], now=T0)
    (again,) = store.claim(claim_request(), now=T0).jobs
    assert again.tags.replace(" ", "") == '{"seen":"1"}'


def test_text_with_any_character_survives(store: Store, observe: Observe) -> None:
    job = one_leased(store)
    text = "naïve 'quote\" \\ back % {brace} ☃ 🦉 \n tab\t"
    store.report([failed(job, failure=FAILURE._replace(message=text), log=text)], now=T0)
    row = observe().outcomes[uid(1)][0]
    assert (row["failure"], row["log"]) == (FAILURE._replace(message=text), text)


def test_turn_reports_and_then_claims_what_that_made_free(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    (job,) = store.claim(claim_request(), now=T0).jobs
    reported, claimed = store.turn([succeeded(job)], claim_request(), now=NOW)
    assert reported.rows == (Reported(job.lease_id, Verdict.APPLIED, JobState.SUCCEEDED),)
    assert numbers(claimed.jobs) == (2,)
    assert facts(observe(), 2) == Facts(JobState.LEASED, 1, 0, NOW)


def test_turn_with_nothing_to_report_is_a_claim(store: Store) -> None:
    store.enqueue([new_job(1)])
    reported, claimed = store.turn([], claim_request(), now=T0)
    assert (reported.rows, numbers(claimed.jobs)) == ((), (1,))


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (History.OFF, ()),
        (History.OUTCOMES, ((FAILURE._replace(traceback=""), None), (None, None))),
        (History.DETAIL, ((FAILURE, "lines"), (None, "lines"))),
    ],
)
def test_history_is_kept_as_far_as_the_settings_say(
    make_subject: MakeSubject, kept: History, expected: tuple[object, ...]
) -> None:
    subject = make_subject(StoreSettings(history=kept))
    job = one_leased(subject.store)
    subject.store.report([failed(job, due_at=T0, log="lines")], now=T0)
    (job,) = subject.store.claim(claim_request(), now=T0).jobs
    subject.store.report([succeeded(job, log="lines")], now=T0)
    rows = subject.observe().outcomes.get(uid(1), ())
    assert tuple((row["failure"], row["log"]) for row in rows) == expected
    assert facts(subject.observe(), 1).state == JobState.SUCCEEDED


def test_lapse_and_hand_back_before_it_do_not_confuse_the_counters(
    store: Store, observe: Observe
) -> None:
    job = one_leased(store)
    store.report([unroutable(job)], now=T0)
    (job,) = store.claim(claim_request(), now=LATER).jobs
    store.dispose(pumps=[PUMP], now=LATER)
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 2, 1, LATER)
