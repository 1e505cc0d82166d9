from collections.abc import Callable
from datetime import timedelta

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import OutcomeKind, Verdict
from backwave_django.core.retries import Retry, RetryTable
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    HOUR,
    MINUTE,
    ONCE,
    PUMP,
    RETRY,
    SECOND,
    T0,
    after,
    beat,
    claim_request,
    failed,
    new_job,
    pump_info,
    succeeded,
    uid,
)
from tests.conformance.facts import Ended, Facts, column, facts, history, states
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
LAPSE = T0 + MINUTE
TICK = timedelta(microseconds=1)


def test_lapsed_lease_is_ended_from_its_very_instant_on(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    assert store.expire_leases(limit=10, now=LAPSE - TICK).count == 0
    assert store.expire_leases(limit=10, now=LAPSE).count == 1
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 1, 1, LAPSE)
    assert history(observe(), 1) == (Ended(OutcomeKind.LAPSED, JobState.SCHEDULED, None, 1, 1),)
    row = observe().outcomes[uid(1)][0]
    times = (row["started_at"], row["finished_at"], row["next_due_at"], row["pump_id"])
    assert (times, observe().leases) == ((T0, LAPSE, LAPSE, PUMP), {})


def test_lease_lapses_once_though_many_sweep(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    counts = [store.expire_leases(limit=10, now=LAPSE).count for _ in range(3)]
    assert (counts, len(history(observe(), 1))) == ([1, 0, 0], 1)


def test_lapse_with_no_attempts_left_is_dead_lettered(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    store.claim(claim_request(retry=ONCE), now=T0)
    store.expire_leases(limit=10, now=LAPSE)
    assert facts(observe(), 1) == Facts(JobState.DEAD_LETTERED, 1, 1, T0, Cause.ATTEMPTS)
    assert (column(observe(), 1, "terminal_at"), states(observe(), 2)) == ((LAPSE,), ("cancelled",))


def test_lapses_are_spent_until_none_is_left(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    now = T0
    for _ in range(RETRY.max_attempts):
        assert len(store.claim(claim_request(), now=now).jobs) == 1
        store.expire_leases(limit=10, now=now + MINUTE)
        now += 2 * MINUTE
    assert (facts(observe(), 1).state, facts(observe(), 1).spent) == ("dead_lettered", 3)


def test_numbers_of_the_lease_govern_its_lapse(store: Store, observe: Observe) -> None:
    slow = Retry(max_attempts=9, initial=HOUR, multiplier=2.0, maximum=24 * HOUR, jitter=0.25)
    retries = RetryTable(own={"shop.slow": slow})
    store.enqueue([new_job(1, wire_name="shop.slow")])
    for number, now in enumerate((T0, LAPSE, T0 + 4 * HOUR)):
        store.claim(claim_request(retries=retries), now=now)
        store.expire_leases(limit=10, now=now + MINUTE)
        # The first loss waits for nothing, a later one as long as the failure before it.
        wait = slow.delay(job_id=uid(1), attempt=number) if number else timedelta(0)
        due_at = now + MINUTE + wait
        assert facts(observe(), 1) == Facts(JobState.SCHEDULED, number + 1, number + 1, due_at)


def test_first_loss_after_a_failure_waits_as_long_as_the_failure(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([failed(job, due_at=T0 + MINUTE)], now=T0)
    store.claim(claim_request(), now=T0 + HOUR)
    store.expire_leases(limit=10, now=T0 + 2 * HOUR)
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 2, 2, T0 + 2 * HOUR + MINUTE)


def test_lapse_of_a_job_whose_cancellation_was_requested_is_a_cancellation(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.cancel([uid(1)], actor=ACTOR, now=T0)
    store.expire_leases(limit=10, now=LAPSE)
    assert facts(observe(), 1) == Facts(JobState.CANCELLED, 1, 1, T0, Cause.OPERATOR)
    assert history(observe(), 1) == (
        Ended(OutcomeKind.LAPSED, JobState.CANCELLED, Cause.OPERATOR, 1, 1),
    )


def test_renewed_lease_does_not_lapse(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.heartbeat(beat(job.lease_id), now=T0 + 20 * SECOND)
    assert store.expire_leases(limit=10, now=LAPSE).count == 0
    assert states(observe(), 1) == (JobState.LEASED,)


def test_late_outcome_of_a_lapsed_lease_is_stale(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.expire_leases(limit=10, now=LAPSE)
    before = observe()
    assert store.report([succeeded(job)], now=LAPSE).rows[0].verdict is Verdict.STALE
    assert observe() == before


def test_sweep_handles_at_most_its_limit_the_longest_lapsed_first(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(number) for number in range(1, 6)])
    for second in range(5):
        store.claim(claim_request(limit=1), now=T0 + second * SECOND)
    answers = [store.expire_leases(limit=2, now=T0 + HOUR) for _ in range(3)]
    assert [(answer.count, answer.full) for answer in answers] == [
        (2, True),
        (2, True),
        (1, False),
    ]


def test_partial_sweep_takes_the_longest_lapsed(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1, priority=-1), new_job(2)])
    for second in range(2):
        store.claim(claim_request(limit=1), now=T0 + second * SECOND)
    store.expire_leases(limit=1, now=T0 + HOUR)
    assert states(observe(), 1, 2) == (JobState.LEASED, JobState.SCHEDULED)


@pytest.mark.parametrize(
    ("now", "count"),
    [
        (LAPSE, 0),
        (LAPSE + MINUTE - TICK, 0),
        (LAPSE + MINUTE, 1),
    ],
)
def test_lease_of_a_pump_that_speaks_is_spared_for_one_more_duration(
    store: Store, now: object, count: int
) -> None:
    store.register(pump_info(), now=T0)
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.heartbeat(beat(), now=LAPSE + 30 * SECOND)
    assert store.expire_leases(limit=10, now=now).count == count  # type: ignore[arg-type]  # by parameter


def test_pump_that_fell_silent_spares_nothing(store: Store) -> None:
    store.register(pump_info(), now=T0)
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    assert store.expire_leases(limit=10, now=LAPSE).count == 1


def test_pump_that_retired_spares_nothing(store: Store) -> None:
    store.register(pump_info(), now=LAPSE)
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.retire(pump_id=PUMP, problem="", now=LAPSE)
    assert store.expire_leases(limit=10, now=LAPSE).count == 1


def test_spared_leases_do_not_count_against_the_limit(store: Store) -> None:
    store.register(pump_info(), now=LAPSE)
    store.enqueue([new_job(1), new_job(2)])
    store.claim(claim_request(limit=1), now=T0)
    store.claim(claim_request(limit=1, pump_id=uid(9_003)), now=T0)
    assert store.expire_leases(limit=1, now=LAPSE).count == 1


@pytest.mark.row_locks
def test_row_of_another_transaction_is_swept_later(subject: Subject) -> None:
    subject.store.enqueue([new_job(1), new_job(2)])
    subject.store.claim(claim_request(), now=T0)
    with subject.hold_lease(uid(1)):
        assert subject.store.expire_leases(limit=10, now=LAPSE).count == 1
        assert states(subject.observe(), 1, 2) == (JobState.LEASED, JobState.SCHEDULED)
    assert subject.store.expire_leases(limit=10, now=LAPSE).count == 1


def test_leased_job_without_a_lease_row_is_put_back_unspent(subject: Subject) -> None:
    subject.store.enqueue([new_job(1), new_job(2)])
    subject.store.claim(claim_request(), now=T0)
    subject.lose_lease(uid(1))
    assert subject.store.expire_leases(limit=10, now=T0 + SECOND).count == 1
    assert facts(subject.observe(), 1) == Facts(JobState.SCHEDULED, 1, 0, T0 + SECOND)
    assert states(subject.observe(), 2) == (JobState.LEASED,)
    assert history(subject.observe(), 1) == (
        Ended(OutcomeKind.RELEASED, JobState.SCHEDULED, None, None, 1),
    )


def test_job_that_lost_its_lease_row_can_run_and_end_again(subject: Subject) -> None:
    subject.store.enqueue([new_job(1)])
    subject.store.claim(claim_request(), now=T0)
    subject.lose_lease(uid(1))
    subject.store.expire_leases(limit=10, now=T0)
    (job,) = subject.store.claim(claim_request(), now=T0).jobs
    subject.store.report([succeeded(job)], now=T0)
    assert [row.run for row in history(subject.observe(), 1)] == [None, 2]
