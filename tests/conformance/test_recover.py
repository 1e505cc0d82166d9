from collections.abc import Callable

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    HOUR,
    ONCE,
    OTHER_PUMP,
    PUMP,
    SECOND,
    T0,
    after,
    claim_request,
    new_job,
    uid,
)
from tests.conformance.facts import Ended, Facts, facts, history, states
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
NOW = T0 + SECOND


def test_recover_releases_what_the_pump_does_not_hold(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3)])
    _, second, _ = store.claim(claim_request(), now=T0).jobs
    answer = store.recover(pump_id=PUMP, held=[second.lease_id], now=NOW)
    assert (answer.count, answer.full) == (2, False)
    assert [facts(observe(), number) for number in (1, 2, 3)] == [
        Facts(JobState.SCHEDULED, 1, 0, NOW),
        Facts(JobState.LEASED, 1, 0, T0),
        Facts(JobState.SCHEDULED, 1, 0, NOW),
    ]
    assert set(observe().leases) == {uid(2)}


def test_recovered_attempt_is_written_down_as_released(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.recover(pump_id=PUMP, held=[], now=NOW)
    assert history(observe(), 1) == (Ended(OutcomeKind.RELEASED, JobState.SCHEDULED, None, 1, 1),)
    row = observe().outcomes[uid(1)][0]
    times = (row["started_at"], row["finished_at"], row["next_due_at"], row["pump_id"])
    assert times == (T0, NOW, NOW, PUMP)


def test_recover_leaves_the_leases_of_other_pumps(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(pump_id=OTHER_PUMP), now=T0)
    assert store.recover(pump_id=PUMP, held=[], now=NOW).count == 0
    assert states(observe(), 1) == (JobState.LEASED,)


def test_recovered_job_whose_cancellation_was_requested_is_cancelled(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    store.claim(claim_request(), now=T0)
    store.cancel([uid(1)], actor=ACTOR, now=T0)
    store.recover(pump_id=PUMP, held=[], now=NOW)
    assert facts(observe(), 1) == Facts(JobState.CANCELLED, 1, 0, T0, Cause.OPERATOR)
    assert facts(observe(), 2).cause == Cause.PARENT


@pytest.mark.row_locks
def test_recover_passes_over_a_row_of_another_transaction(subject: Subject) -> None:
    subject.store.enqueue([new_job(1), new_job(2)])
    subject.store.claim(claim_request(), now=T0)
    with subject.hold_lease(uid(1)):
        assert subject.store.recover(pump_id=PUMP, held=[], now=NOW).count == 1
    assert states(subject.observe(), 1, 2) == (JobState.LEASED, JobState.SCHEDULED)
    assert subject.store.recover(pump_id=PUMP, held=[], now=NOW).count == 1


def test_dispose_ends_the_leases_of_dead_pumps_at_once_and_spends(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3)])
    for pump in (PUMP, OTHER_PUMP, uid(9_003)):
        store.claim(claim_request(pump_id=pump, limit=1), now=T0)
    answer = store.dispose(pumps=[PUMP, OTHER_PUMP, uid(404)], now=NOW)
    assert (answer.count, answer.full) == (2, False)
    assert [facts(observe(), number) for number in (1, 2, 3)] == [
        Facts(JobState.SCHEDULED, 1, 1, NOW),
        Facts(JobState.SCHEDULED, 1, 1, NOW),
        Facts(JobState.LEASED, 1, 0, T0),
    ]
    assert history(observe(), 1) == (Ended(OutcomeKind.LAPSED, JobState.SCHEDULED, None, 1, 1),)


def test_dispose_ends_the_last_attempt_for_good(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    store.claim(claim_request(retry=ONCE), now=T0)
    store.dispose(pumps=[PUMP], now=NOW)
    assert facts(observe(), 1) == Facts(JobState.DEAD_LETTERED, 1, 1, T0, Cause.ATTEMPTS)
    assert facts(observe(), 2).state == JobState.CANCELLED


def test_disposed_job_whose_cancellation_was_requested_is_cancelled_and_spent(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.cancel([uid(1)], actor=ACTOR, now=T0)
    store.dispose(pumps=[PUMP], now=NOW)
    assert facts(observe(), 1) == Facts(JobState.CANCELLED, 1, 1, T0, Cause.OPERATOR)


def test_nothing_is_disposed_of_for_no_pumps(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    assert store.dispose(pumps=[], now=T0 + HOUR).count == 0
    assert states(observe(), 1) == (JobState.LEASED,)
