from collections.abc import Callable

import pytest

from backwave_django import models
from backwave_django.core.contract import Store
from backwave_django.core.errors import InvalidOption
from backwave_django.core.jobs import NewJob
from backwave_django.core.limits import Cap
from backwave_django.core.memory import Snapshot
from backwave_django.core.memory.rows import LimitRow
from tests.builders import (
    ACTOR,
    HOUR,
    T0,
    claim_request,
    new_job,
    released,
    snoozed,
    succeeded,
)
from tests.conformance.facts import numbers
from tests.conformance.subjects import held_row

Observe = Callable[[], Snapshot]


def jobs(first: int, last: int, **options: object) -> list[NewJob]:
    return [new_job(number, **options) for number in range(first, last + 1)]


def test_queue_limit_is_never_exceeded(store: Store) -> None:
    store.set_queue_limit("default", 2, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 5))
    answers = [store.claim(claim_request(), now=T0) for _ in range(2)]
    assert [numbers(answer.jobs) for answer in answers] == [(1, 2), ()]
    assert [(answer.short, answer.next_due) for answer in answers] == [(True, T0), (True, T0)]


def test_slot_that_an_outcome_frees_is_taken_again(store: Store) -> None:
    store.set_queue_limit("default", 1, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 3))
    (job,) = store.claim(claim_request(), now=T0).jobs
    _, answer = store.turn([succeeded(job)], claim_request(), now=T0)
    assert numbers(answer.jobs) == (2,)


def test_released_job_frees_its_slot(store: Store) -> None:
    store.set_queue_limit("default", 1, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 2))
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([released(job)], now=T0)
    assert len(store.claim(claim_request(), now=T0).jobs) == 1


def test_saturated_queue_hides_no_other(store: Store) -> None:
    store.set_queue_limit("default", 1, actor=ACTOR, now=T0)
    store.enqueue([*jobs(1, 5, priority=100), new_job(6, queue="mail")])
    answer = store.claim(claim_request("default", "mail", limit=2), now=T0)
    assert (numbers(answer.jobs), answer.short) == ((1, 6), False)


def test_limit_of_zero_stops_a_queue(store: Store) -> None:
    store.set_queue_limit("default", 0, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 2))
    answer = store.claim(claim_request(), now=T0)
    assert (answer.jobs, answer.next_due) == ((), T0)


def test_lowered_limit_evicts_nothing(store: Store, observe: Observe) -> None:
    store.enqueue(jobs(1, 4))
    assert len(store.claim(claim_request(limit=3), now=T0).jobs) == 3
    store.set_queue_limit("default", 1, actor=ACTOR, now=T0)
    assert store.claim(claim_request(), now=T0).jobs == ()
    assert len(observe().leases) == 3


def test_lifted_limit_lets_all_through(store: Store) -> None:
    store.set_queue_limit("default", 1, actor=ACTOR, now=T0)
    store.set_queue_limit("default", None, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 4))
    assert len(store.claim(claim_request(), now=T0).jobs) == 4


def test_key_limit_is_never_exceeded_across_queues(store: Store) -> None:
    store.set_limit("gateway", 2, actor=ACTOR, now=T0)
    store.enqueue([*jobs(1, 2, limit_key="gateway"), *jobs(3, 4, limit_key="gateway", queue="b")])
    answers = [store.claim(claim_request("b", "default"), now=T0) for _ in range(2)]
    assert [numbers(answer.jobs) for answer in answers] == [(3, 4), ()]
    assert [answer.next_due for answer in answers] == [T0, T0]


def test_saturated_key_hides_neither_other_keys_nor_unkeyed_jobs(store: Store) -> None:
    store.set_limit("a", 1, actor=ACTOR, now=T0)
    store.enqueue(
        [*jobs(1, 30, limit_key="a", priority=9), new_job(31, limit_key="b"), new_job(32)]
    )
    assert numbers(store.claim(claim_request(limit=3), now=T0).jobs) == (1, 32, 31)


def test_key_without_a_cap_is_not_limited(store: Store) -> None:
    store.enqueue(jobs(1, 5, limit_key="free"))
    assert len(store.claim(claim_request(), now=T0).jobs) == 5


def test_queue_limit_and_key_limit_hold_together(store: Store) -> None:
    store.set_queue_limit("default", 3, actor=ACTOR, now=T0)
    store.set_limit("a", 1, actor=ACTOR, now=T0)
    store.enqueue([*jobs(1, 3, limit_key="a"), *jobs(4, 5, limit_key="b"), new_job(6)])
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (6, 1, 4)


def test_snoozed_job_frees_its_key(store: Store) -> None:
    store.set_limit("a", 1, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 2, limit_key="a"))
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([snoozed(job, due_at=T0.replace(year=2041))], now=T0)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (2,)


def test_declared_cap_holds(store: Store, observe: Observe) -> None:
    store.declare_limits({"a": Cap(1), "b": Cap(2)})
    store.enqueue([*jobs(1, 3, limit_key="a"), *jobs(4, 6, limit_key="b")])
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1, 4, 5)
    assert dict(observe().limits) == {"a": LimitRow(1, "code"), "b": LimitRow(2, "code")}


def test_declared_cap_replaces_an_older_declaration_and_no_choice_of_an_operator(
    store: Store, observe: Observe
) -> None:
    store.declare_limits({"a": Cap(1), "b": Cap(1)})
    store.set_limit("b", 7, actor=ACTOR, now=T0)
    store.declare_limits({"a": Cap(5), "b": Cap(5)})
    assert dict(observe().limits) == {"a": LimitRow(5, "code"), "b": LimitRow(7, "operator")}


def test_nothing_is_declared_by_an_empty_list(store: Store, observe: Observe) -> None:
    store.declare_limits({})
    assert observe().limits == {}


def test_lifted_key_limit_is_forgotten(store: Store, observe: Observe) -> None:
    store.set_limit("a", 1, actor=ACTOR, now=T0)
    store.set_limit("a", None, actor=ACTOR, now=T0)
    assert observe().limits == {}


def test_negative_limit_is_refused(store: Store, observe: Observe) -> None:
    with pytest.raises(InvalidOption):
        store.set_limit("a", -1, actor=ACTOR, now=T0)
    with pytest.raises(InvalidOption):
        store.set_queue_limit("default", -1, actor=ACTOR, now=T0)
    assert (observe().limits, observe().queues, observe().actions) == ({}, {}, ())


@pytest.mark.on_databases
@pytest.mark.vendor("postgresql")
def test_cap_that_another_transaction_holds_withholds_its_queue_alone(store: Store) -> None:
    store.set_queue_limit("default", 5, actor=ACTOR, now=T0)
    store.enqueue([*jobs(1, 2), new_job(3, queue="mail")])
    with held_row(models.Queue, name="default"):
        answer = store.claim(claim_request("default", "mail"), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((3,), T0)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1, 2)


@pytest.mark.on_databases
@pytest.mark.vendor("postgresql")
def test_cap_that_another_transaction_holds_withholds_its_key_alone(store: Store) -> None:
    store.set_limit("a", 5, actor=ACTOR, now=T0)
    store.enqueue([*jobs(1, 2, limit_key="a"), new_job(3, limit_key="b"), new_job(4)])
    with held_row(models.Limit, key="a"):
        answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((4, 3), T0)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1, 2)


def test_f136_slot_of_a_lost_job_is_free_once_its_lease_has_lapsed(store: Store) -> None:
    store.declare_limits({"lost": Cap(1), "other": Cap(1)})
    store.enqueue([new_job(1, limit_key="lost", unique_key="k")])
    store.enqueue([*jobs(2, 3, limit_key="lost"), *jobs(4, 5, limit_key="other")])
    assert numbers(store.claim(claim_request(limit=9), now=T0).jobs) == (1, 4)
    later = T0 + HOUR
    store.expire_leases(limit=9, now=later)
    jobs_again = store.claim(claim_request(limit=9), now=later).jobs
    assert sorted(job.limit_key or "" for job in jobs_again) == ["lost", "other"]
    (answer,) = store.enqueue([new_job(9, unique_key="k")])
    assert not answer.created
