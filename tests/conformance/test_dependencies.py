from collections.abc import Callable

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.errors import InvalidOption
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    HOUR,
    MINUTE,
    ONCE,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    snoozed,
    succeeded,
    uid,
)
from tests.conformance.facts import (
    Ended,
    Facts,
    column,
    edges,
    facts,
    history,
    made,
    numbers,
    states,
)
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
ON_ANY = EdgeMode.ON_ANY


def run(store: Store, *, well: bool = True) -> None:
    """Claim everything due and end it."""
    jobs = store.claim(claim_request(retry=ONCE), now=T0).jobs
    store.report([succeeded(job) if well else failed(job) for job in jobs], now=T0)


def test_job_with_a_live_parent_awaits_it(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    answer = store.enqueue([new_job(2, parents=after(1))])
    assert answer == (made(2, JobState.AWAITING),)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1,)
    assert edges(observe(), 2) == {uid(1): False}


def test_parents_may_come_after_their_children_in_a_batch(store: Store, observe: Observe) -> None:
    answer = store.enqueue([new_job(3, parents=after(2)), new_job(2, parents=after(1)), new_job(1)])
    assert [row.state for row in answer] == ["awaiting", "awaiting", "scheduled"]
    assert edges(observe(), 3) == {uid(2): False}


def test_jobs_that_wait_for_each_other_are_refused(store: Store, observe: Observe) -> None:
    with pytest.raises(InvalidOption):
        store.enqueue([new_job(1, parents=after(2)), new_job(2, parents=after(1))])
    assert observe().jobs == {}


def test_parent_that_is_named_twice_counts_once(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.enqueue([new_job(2, parents=(*after(1, mode=ON_ANY), *after(1)))])
    assert observe().edges == {(uid(1), uid(2)): (ON_ANY, False)}
    assert column(observe(), 2, "pending_parents") == (1,)


def test_job_whose_parents_all_succeeded_is_scheduled(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    run(store)
    answer = store.enqueue([new_job(2, parents=after(1))])
    assert answer == (made(2, JobState.SCHEDULED),)
    assert edges(observe(), 2) == {uid(1): True}


def test_job_whose_parent_already_failed_is_born_cancelled(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    run(store, well=False)
    answer = store.enqueue([new_job(2, parents=after(1)), new_job(3, parents=after(2))])
    assert answer == (
        made(2, JobState.CANCELLED),
        made(3, JobState.CANCELLED),
    )
    born = Ended(OutcomeKind.CANCELLED, JobState.CANCELLED, Cause.PARENT, None, 1)
    assert (history(observe(), 2), history(observe(), 3)) == ((born,), (born,))


def test_job_that_wants_any_end_does_not_mind_a_failed_parent(store: Store) -> None:
    store.enqueue([new_job(1)])
    run(store, well=False)
    answer = store.enqueue([new_job(2, parents=after(1, mode=ON_ANY))])
    assert answer == (made(2, JobState.SCHEDULED),)


def test_last_parent_releases_its_child_due_now(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3, parents=after(1, 2))])
    first, second = store.claim(claim_request(), now=T0).jobs
    store.report([succeeded(first)], now=T0 + MINUTE)
    assert (states(observe(), 3), column(observe(), 3, "pending_parents")) == (("awaiting",), (1,))
    store.report([succeeded(second)], now=T0 + HOUR)
    assert facts(observe(), 3) == Facts(JobState.SCHEDULED, 0, 0, T0 + HOUR)
    assert edges(observe(), 3) == {uid(1): True, uid(2): True}


def test_released_child_keeps_a_due_time_in_the_future(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1), due_at=T0 + HOUR)])
    run(store)
    assert facts(observe(), 2) == Facts(JobState.SCHEDULED, 0, 0, T0 + HOUR)


def test_parents_that_end_in_one_report_release_their_child_once(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3, parents=after(1, 2))])
    run(store)
    assert facts(observe(), 3) == Facts(JobState.SCHEDULED, 0, 0, T0)


def test_parent_that_will_be_tried_again_releases_nobody(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([failed(job, due_at=T0 + MINUTE)], now=T0)
    (job,) = store.claim(claim_request(), now=T0 + MINUTE).jobs
    store.report([snoozed(job, due_at=T0 + HOUR)], now=T0 + MINUTE)
    assert (states(observe(), 2), edges(observe(), 2)) == (("awaiting",), {uid(1): False})


def test_failed_parent_cancels_its_child_and_all_below_it(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1)), new_job(3, parents=after(2))])
    run(store, well=False)
    by_parent = (Ended(OutcomeKind.CANCELLED, JobState.CANCELLED, Cause.PARENT, None, 1),)
    assert states(observe(), 1, 2, 3) == ("dead_lettered", "cancelled", "cancelled")
    assert (history(observe(), 2), history(observe(), 3)) == (by_parent, by_parent)
    assert column(observe(), 3, "terminal_at", "pending_parents") == (T0, 0)


def test_cascade_stops_at_a_job_that_wants_any_end(store: Store, observe: Observe) -> None:
    store.enqueue(
        [
            new_job(1),
            new_job(2, parents=after(1)),
            new_job(3, parents=after(2, mode=ON_ANY)),
        ]
    )
    run(store, well=False)
    assert states(observe(), 2, 3) == (JobState.CANCELLED, JobState.SCHEDULED)


def test_one_failed_parent_cancels_though_another_still_runs(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3, parents=after(1, 2))])
    first, second = store.claim(claim_request(), now=T0).jobs
    store.report([failed(first)], now=T0)
    assert (states(observe(), 3), column(observe(), 3, "pending_parents")) == (("cancelled",), (1,))
    before = history(observe(), 3)
    store.report([succeeded(second)], now=T0)
    assert (states(observe(), 3), column(observe(), 3, "pending_parents")) == (("cancelled",), (0,))
    assert (history(observe(), 3), edges(observe(), 3)) == (before, {uid(1): True, uid(2): True})


def test_parent_that_ends_twice_counts_once(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3, parents=(*after(1, mode=ON_ANY), *after(2)))])
    first, _second = store.claim(claim_request(), now=T0).jobs
    store.report([failed(first)], now=T0)
    store.requeue([uid(1)], actor=ACTOR, now=T0)
    (again,) = store.claim(claim_request(), now=T0).jobs
    store.report([succeeded(again)], now=T0)
    assert (states(observe(), 3), column(observe(), 3, "pending_parents")) == (("awaiting",), (1,))


@pytest.mark.row_locks
def test_child_that_another_transaction_holds_is_left_to_the_sweep(subject: Subject) -> None:
    store = subject.store
    store.enqueue([new_job(1), new_job(2, parents=after(1)), new_job(3, parents=after(1))])
    (job,) = store.claim(claim_request(), now=T0).jobs
    with subject.hold_job(uid(2)):
        store.report([succeeded(job)], now=T0)
        assert states(subject.observe(), 1, 2, 3) == ("succeeded", "awaiting", "scheduled")
        assert subject.observe().unsettled == {uid(1)}
        store.settle(limit=100, now=T0)
        assert states(subject.observe(), 2) == (JobState.AWAITING,)
    store.settle(limit=100, now=T0 + MINUTE)
    assert facts(subject.observe(), 2) == Facts(JobState.SCHEDULED, 0, 0, T0 + MINUTE)
    assert subject.observe().unsettled == set()


def test_report_settles_a_thousand_children_and_the_sweep_the_rest(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1)])
    store.enqueue([new_job(number, parents=after(1)) for number in range(2, 1_204)])
    run(store)
    waiting = [job["state"] for job in observe().jobs.values()].count(JobState.AWAITING)
    assert (waiting, observe().unsettled) == (202, {uid(1)})
    while store.settle(limit=100, now=T0).full:
        assert observe().unsettled
    waiting = [job["state"] for job in observe().jobs.values()].count(JobState.AWAITING)
    assert (waiting, observe().unsettled) == (0, set())


def test_deep_cascade_is_completed_by_the_sweep(store: Store, observe: Observe) -> None:
    chain = [new_job(1), *(new_job(n, parents=after(n - 1)) for n in range(2, 1_103))]
    store.enqueue(chain)
    run(store, well=False)
    while store.settle(limit=100, now=T0).full:
        assert observe().unsettled
    waiting = [job["state"] for job in observe().jobs.values()].count(JobState.AWAITING)
    assert (waiting, observe().unsettled) == (0, set())
