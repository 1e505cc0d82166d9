from collections.abc import Callable
from datetime import timedelta

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    succeeded,
    uid,
)
from tests.conformance.facts import Ended, Facts, column, edges, facts, history, states
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
TICK = timedelta(microseconds=1)


def test_passed_deadline_expires_a_job_that_never_ran(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1, deadline=T0 + HOUR)])
    store.settle(limit=10, now=T0 + HOUR - TICK)
    assert states(observe(), 1) == (JobState.SCHEDULED,)
    answer = store.settle(limit=10, now=T0 + HOUR)
    assert (answer.count, answer.full) == (1, False)
    assert facts(observe(), 1) == Facts(JobState.EXPIRED, 0, 0, T0, Cause.DEADLINE)
    assert history(observe(), 1) == (
        Ended(OutcomeKind.EXPIRED, JobState.EXPIRED, Cause.DEADLINE, None, 1),
    )
    row = observe().outcomes[uid(1)][0]
    assert (row["started_at"], row["finished_at"], row["pump_id"]) == (None, T0 + HOUR, None)
    assert column(observe(), 1, "terminal_at", "deadline") == (T0 + HOUR, T0 + HOUR)


def test_passed_deadline_dead_letters_a_job_that_ran(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1, deadline=T0 + HOUR)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([failed(job, due_at=T0 + MINUTE)], now=T0)
    store.settle(limit=10, now=T0 + HOUR)
    assert facts(observe(), 1) == Facts(JobState.DEAD_LETTERED, 1, 1, T0 + MINUTE, Cause.DEADLINE)
    assert history(observe(), 1)[1:] == (
        Ended(OutcomeKind.EXPIRED, JobState.DEAD_LETTERED, Cause.DEADLINE, None, 2),
    )


def test_deadline_leaves_a_running_and_an_awaiting_job_alone(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1, deadline=T0 + HOUR), new_job(2, parents=after(1), deadline=T0)])
    store.claim(claim_request(), now=T0)
    store.settle(limit=10, now=T0 + HOUR)
    assert states(observe(), 1, 2) == (JobState.LEASED, JobState.AWAITING)


def test_deadline_of_a_parent_settles_its_children(store: Store, observe: Observe) -> None:
    store.enqueue(
        [
            new_job(1, deadline=T0 + HOUR),
            new_job(2, parents=after(1)),
            new_job(3, parents=after(1, mode=EdgeMode.ON_ANY)),
        ]
    )
    store.settle(limit=10, now=T0 + HOUR)
    assert facts(observe(), 2).cause == Cause.PARENT
    assert facts(observe(), 3) == Facts(JobState.SCHEDULED, 0, 0, T0 + HOUR)


def test_earliest_deadlines_are_settled_first_up_to_the_limit(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(number, deadline=T0 - number * SECOND) for number in (1, 2, 3)])
    answer = store.settle(limit=2, now=T0)
    assert (answer.count, answer.full) == (2, True)
    assert states(observe(), 1, 2, 3) == ("scheduled", "expired", "expired")


@pytest.mark.row_locks
def test_deadline_of_a_row_that_another_transaction_holds_is_settled_later(
    subject: Subject,
) -> None:
    subject.store.enqueue([new_job(1, deadline=T0)])
    with subject.hold_job(uid(1)):
        assert subject.store.settle(limit=10, now=T0).count == 0
    assert subject.store.settle(limit=10, now=T0).count == 1


def test_parent_that_is_still_live_stays_in_the_queue(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    answer = store.settle(limit=10, now=T0)
    assert (answer.count, answer.full) == (0, False)
    assert (states(observe(), 2), edges(observe(), 2)) == (("awaiting",), {uid(1): False})


def test_sweep_after_an_ordinary_end_changes_nothing(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([succeeded(job)], now=T0)
    before = observe()
    store.settle(limit=10, now=T0 + HOUR)
    assert observe() == before


def test_parent_that_vanished_counts_as_one_that_did_not_succeed(subject: Subject) -> None:
    subject.store.enqueue(
        [
            new_job(1),
            new_job(2, parents=after(1)),
            new_job(3, parents=after(1, mode=EdgeMode.ON_ANY)),
        ]
    )
    subject.lose_job(uid(1))
    subject.store.settle(limit=10, now=T0 + SECOND)
    assert facts(subject.observe(), 2) == Facts(JobState.CANCELLED, 0, 0, T0, Cause.PARENT)
    assert facts(subject.observe(), 3) == Facts(JobState.SCHEDULED, 0, 0, T0 + SECOND)


def test_nothing_to_settle_is_answered_with_nothing(store: Store) -> None:
    answer = store.settle(limit=10, now=T0)
    assert (answer.count, answer.full) == (0, False)
