from collections.abc import Callable

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.jobs import IfDuplicate, NewJob
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    HOUR,
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
from tests.conformance.facts import Ended, history, made, met, states

Observe = Callable[[], Snapshot]
POLICIES = tuple(IfDuplicate)
CREATED = JobState.SCHEDULED


def keyed(
    number: int, policy: IfDuplicate = IfDuplicate.ALLOW_AFTER_FAILURE, **options: object
) -> NewJob:
    return new_job(number, unique_key="receipt:42", if_duplicate=policy, **options)


def end(store: Store, *, well: bool) -> None:
    (job,) = store.claim(claim_request(retry=ONCE), now=T0).jobs
    store.report([succeeded(job) if well else failed(job)], now=T0)


@pytest.mark.parametrize("policy", POLICIES)
def test_free_key_makes_a_job(store: Store, policy: IfDuplicate) -> None:
    assert store.enqueue([keyed(1, policy)]) == (made(1, CREATED),)


@pytest.mark.parametrize("policy", set(POLICIES) - {IfDuplicate.REPLACE})
def test_live_holder_answers(store: Store, observe: Observe, policy: IfDuplicate) -> None:
    store.enqueue([keyed(1)])
    assert store.enqueue([keyed(2, policy)]) == (met(1, CREATED),)
    assert set(observe().jobs) == {uid(1)}


@pytest.mark.parametrize("policy", POLICIES)
def test_running_holder_answers(store: Store, policy: IfDuplicate) -> None:
    store.enqueue([keyed(1)])
    store.claim(claim_request(), now=T0)
    assert store.enqueue([keyed(2, policy)]) == (met(1, JobState.LEASED),)


def test_holder_that_ran_before_and_waits_again_answers_a_replacement(store: Store) -> None:
    store.enqueue([keyed(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([snoozed(job, due_at=T0)], now=T0)
    answer = store.enqueue([keyed(2, IfDuplicate.REPLACE)])
    assert answer == (met(1, JobState.SCHEDULED),)


def test_replacement_cancels_a_holder_that_never_started(store: Store, observe: Observe) -> None:
    store.enqueue([keyed(1)])
    assert store.enqueue([keyed(2, IfDuplicate.REPLACE)]) == (made(2, CREATED),)
    assert states(observe(), 1, 2) == (JobState.CANCELLED, JobState.SCHEDULED)
    assert history(observe(), 1) == (
        Ended(OutcomeKind.CANCELLED, JobState.CANCELLED, Cause.SUPERSEDED, None, 1),
    )


def test_replacement_cancels_a_holder_that_waits_for_a_parent(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(9), keyed(1, parents=after(9))])
    store.enqueue([keyed(2, IfDuplicate.REPLACE)])
    assert states(observe(), 1, 2) == (JobState.CANCELLED, JobState.SCHEDULED)


def test_holder_that_others_wait_for_answers_a_replacement(store: Store, observe: Observe) -> None:
    store.enqueue([keyed(1), new_job(3, parents=after(1))])
    answer = store.enqueue([keyed(2, IfDuplicate.REPLACE)])
    assert answer == (met(1, JobState.SCHEDULED),)
    assert states(observe(), 1, 3) == (JobState.SCHEDULED, JobState.AWAITING)


@pytest.mark.parametrize(
    ("policy", "well", "blocks"),
    [
        (IfDuplicate.ALLOW_AFTER_FAILURE, True, True),
        (IfDuplicate.ALLOW_AFTER_FAILURE, False, False),
        (IfDuplicate.REJECT, True, True),
        (IfDuplicate.REJECT, False, True),
        (IfDuplicate.ALLOW, True, False),
        (IfDuplicate.ALLOW, False, False),
        (IfDuplicate.REPLACE, True, False),
        (IfDuplicate.REPLACE, False, False),
    ],
)
def test_terminal_holder_blocks_as_the_policy_says(
    store: Store, observe: Observe, policy: IfDuplicate, *, well: bool, blocks: bool
) -> None:
    store.enqueue([keyed(1)])
    end(store, well=well)
    before = observe().jobs[uid(1)]
    ended = JobState.SUCCEEDED if well else JobState.DEAD_LETTERED
    answer = met(1, ended) if blocks else made(2, CREATED)
    assert store.enqueue([keyed(2, policy)]) == (answer,)
    assert set(observe().jobs) == {uid(1)} | (set() if blocks else {uid(2)})
    assert observe().jobs[uid(1)] == before


def test_newest_terminal_holder_answers_a_rejected_duplicate(store: Store) -> None:
    for number in (1, 2):
        store.enqueue([keyed(number, IfDuplicate.ALLOW)])
        end(store, well=number == 1)
    rejected = met(2, JobState.DEAD_LETTERED)
    assert store.enqueue([keyed(3, IfDuplicate.REJECT)]) == (rejected,)
    assert store.enqueue([keyed(4)]) == (met(1, JobState.SUCCEEDED),)


def test_cancelled_holder_counts_as_a_failure(store: Store) -> None:
    store.enqueue([keyed(1)])
    store.cancel([uid(1)], actor=ACTOR, now=T0)
    assert store.enqueue([keyed(2)]) == (made(2, CREATED),)


def test_second_job_of_a_batch_meets_the_first_under_its_key(
    store: Store, observe: Observe
) -> None:
    answer = store.enqueue([keyed(5), new_job(6), keyed(1)])
    assert answer == (
        made(5, CREATED),
        made(6, CREATED),
        met(5, CREATED),
    )
    assert set(observe().jobs) == {uid(5), uid(6)}


def test_replacement_in_one_batch_cancels_the_earlier_job(store: Store, observe: Observe) -> None:
    answer = store.enqueue([keyed(1), keyed(2, IfDuplicate.REPLACE)])
    assert answer == (
        made(1, JobState.CANCELLED),
        made(2, CREATED),
    )
    assert states(observe(), 1, 2) == (JobState.CANCELLED, JobState.SCHEDULED)


def test_different_keys_and_no_keys_live_side_by_side(store: Store, observe: Observe) -> None:
    store.enqueue([keyed(1), new_job(2, unique_key="receipt:43"), new_job(3), new_job(4)])
    assert len(observe().jobs) == 4


def test_key_is_kept_by_a_terminal_job_and_may_be_held_by_a_new_one(
    store: Store, observe: Observe
) -> None:
    store.enqueue([keyed(1)])
    end(store, well=False)
    store.enqueue([keyed(2)])
    keys = {job_id: job["unique_key"] for job_id, job in observe().jobs.items()}
    assert keys == {uid(1): "receipt:42", uid(2): "receipt:42"}


def test_deduplicated_job_adds_no_edges(store: Store, observe: Observe) -> None:
    store.enqueue([keyed(1), new_job(9)])
    store.enqueue([keyed(2, parents=after(9))])
    assert observe().edges == {}


def test_holder_stands_in_for_a_parent_of_the_batch(store: Store, observe: Observe) -> None:
    store.enqueue([keyed(1)])
    answer = store.enqueue([keyed(2), new_job(3, parents=after(2))])
    assert answer == (
        met(1, CREATED),
        made(3, JobState.AWAITING),
    )
    assert set(observe().edges) == {(uid(1), uid(3))}


def test_f133_lost_job_comes_back_beside_whoever_asked_for_its_key(
    store: Store, observe: Observe
) -> None:
    store.enqueue([keyed(1), *(new_job(number) for number in range(2, 12))])
    store.claim(claim_request(limit=11), now=T0)
    # While it is lost and nobody knows, its key is taken: it answers for the newer one.
    (answer,) = store.enqueue([keyed(99)])
    assert (answer.id, answer.created, answer.state) == (uid(1), False, JobState.LEASED)
    assert store.expire_leases(limit=100, now=T0 + HOUR).count == 11
    assert set(states(observe(), *range(1, 12))) == {JobState.SCHEDULED}
    assert len(store.claim(claim_request(limit=20), now=T0 + HOUR).jobs) == 11
