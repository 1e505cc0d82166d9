"""Rates: so many starts in a period, whoever claims and however often."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from backwave_django import models
from backwave_django.core.contract import Store
from backwave_django.core.jobs import NewJob
from backwave_django.core.limits import Cap
from backwave_django.core.memory import Snapshot
from backwave_django.core.rates import Rate
from tests.builders import ACTOR, HOUR, MINUTE, SECOND, T0, claim_request, failed, new_job, released
from tests.conformance.facts import numbers
from tests.conformance.subjects import held_row

Observe = Callable[[], Snapshot]

TEN = Rate.parse("10/second")
TWO = Rate.parse("2/minute")
TENTH = timedelta(milliseconds=100)


def jobs(first: int, last: int, **options: object) -> list[NewJob]:
    return [new_job(number, **options) for number in range(first, last + 1)]


def rate_queue(store: Store, rate: Rate | None = TWO) -> None:
    store.set_queue_rate("default", rate, actor=ACTOR, now=T0)


def test_bucket_lets_as_many_start_as_it_holds_and_says_when_the_next_may(store: Store) -> None:
    rate_queue(store)
    store.enqueue(jobs(1, 5))
    answers = [store.claim(claim_request(), now=T0) for _ in range(2)]
    assert [numbers(answer.jobs) for answer in answers] == [(1, 2), ()]
    assert [(answer.short, answer.next_due) for answer in answers] == [(True, T0 + MINUTE / 2)] * 2


def test_tokens_come_one_by_one(store: Store) -> None:
    rate_queue(store, TEN)
    store.enqueue(jobs(1, 30))
    taken = [
        len(store.claim(claim_request(limit=50), now=T0 + step * TENTH / 2).jobs)
        for step in range(6)
    ]
    assert taken == [10, 0, 1, 0, 1, 0]


def test_bucket_never_holds_more_than_its_number(store: Store) -> None:
    rate_queue(store)
    store.enqueue(jobs(1, 9))
    store.claim(claim_request(limit=1), now=T0)
    assert len(store.claim(claim_request(), now=T0 + HOUR).jobs) == 2


def test_clock_that_goes_back_adds_no_tokens(store: Store) -> None:
    rate_queue(store)
    store.enqueue(jobs(1, 9, due_at=T0 - 2 * HOUR))
    assert len(store.claim(claim_request(), now=T0).jobs) == 2
    for now in (T0 - HOUR, T0 - SECOND, T0):
        assert store.claim(claim_request(), now=now).jobs == ()


def test_clock_that_was_set_back_holds_work_up_no_longer_than_an_empty_bucket(store: Store) -> None:
    rate_queue(store)
    store.enqueue(jobs(1, 9, due_at=T0 - 2 * HOUR))
    store.claim(claim_request(), now=T0)
    answer = store.claim(claim_request(), now=T0 - HOUR)
    assert answer.next_due == T0 - HOUR + MINUTE / 2 + SECOND


def test_retry_is_a_start_and_a_released_job_has_taken_its_token(store: Store) -> None:
    rate_queue(store)
    store.enqueue(jobs(1, 2))
    first, second = store.claim(claim_request(), now=T0).jobs
    store.report([failed(first, due_at=T0), released(second)], now=T0)
    assert store.claim(claim_request(), now=T0).jobs == ()
    assert len(store.claim(claim_request(), now=T0 + MINUTE / 2).jobs) == 1


def test_rate_and_cap_hold_together(store: Store) -> None:
    rate_queue(store)
    store.set_queue_limit("default", 1, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 5))
    answer = store.claim(claim_request(), now=T0)
    # There is a token left: only the slot is missing, and nobody knows when that is free.
    assert (numbers(answer.jobs), answer.next_due) == ((1,), T0)


def test_work_that_may_start_is_looked_for_now_whatever_a_rate_withholds(store: Store) -> None:
    rate_queue(store)
    store.enqueue([*jobs(1, 5), *jobs(6, 7, queue="mail")])
    answer = store.claim(claim_request("default", "mail", limit=3), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((1, 2, 6), T0)


def test_later_due_time_of_other_work_goes_before_a_later_token(store: Store) -> None:
    rate_queue(store)
    store.enqueue([*jobs(1, 5), new_job(6, queue="mail", due_at=T0 + SECOND)])
    answer = store.claim(claim_request("default", "mail"), now=T0)
    assert answer.next_due == T0 + SECOND


def test_key_has_a_bucket_of_its_own_across_queues(store: Store) -> None:
    store.set_rate("gateway", TWO, actor=ACTOR, now=T0)
    store.enqueue(
        [
            *jobs(1, 2, limit_key="gateway"),
            *jobs(3, 4, limit_key="gateway", queue="b"),
            *jobs(5, 6, limit_key="other"),
        ]
    )
    answer = store.claim(claim_request("b", "default"), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((3, 4, 5, 6), T0 + MINUTE / 2)


def test_start_takes_a_token_of_its_queue_and_of_its_key(store: Store) -> None:
    rate_queue(store, Rate.parse("3/minute"))
    store.set_rate("a", TWO, actor=ACTOR, now=T0)
    store.enqueue([*jobs(1, 4, limit_key="a"), *jobs(5, 8, limit_key="b")])
    answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((1, 2, 5), T0 + MINUTE / 3)


def test_operator_chooses_number_and_rate_apart(store: Store, observe: Observe) -> None:
    store.declare_limits({"a": Cap(5, TEN)})
    store.set_rate("a", TWO, actor=ACTOR, now=T0)
    store.declare_limits({"a": Cap(9, TEN)})
    assert observe().limits["a"][:3] == (5, "operator", TWO)
    store.set_limit("a", None, actor=ACTOR, now=T0)
    assert observe().limits["a"][:3] == (None, "operator", TWO)
    store.set_rate("a", None, actor=ACTOR, now=T0)
    assert observe().limits == {}
    views = [(action.action, action.before, action.after) for action in observe().actions]
    assert views == [
        ("set_rate", {"rate": "10/second"}, {"rate": "2/minute"}),
        ("set_limit", {"limit": 5}, {"limit": None}),
        ("set_rate", {"rate": "2/minute"}, {"rate": None}),
    ]


def test_declared_rate_holds_without_a_cap_and_follows_the_code(
    store: Store, observe: Observe
) -> None:
    store.declare_limits({"a": Cap(None, TWO)})
    store.enqueue(jobs(1, 9, limit_key="a"))
    assert len(store.claim(claim_request(), now=T0).jobs) == 2
    store.declare_limits({"a": Cap(None, TEN)})
    assert observe().limits["a"][:3] == (None, "code", TEN)
    # Its bucket stays as empty as it was.
    assert store.claim(claim_request(), now=T0).jobs == ()


def test_lifted_rate_lets_all_through(store: Store, observe: Observe) -> None:
    rate_queue(store)
    store.enqueue(jobs(1, 5))
    store.claim(claim_request(), now=T0)
    rate_queue(store, None)
    assert len(store.claim(claim_request(), now=T0).jobs) == 3
    assert [action.after for action in observe().actions] == [{"rate": "2/minute"}, {"rate": None}]


def test_slower_rate_holds_from_the_next_claim_on(store: Store) -> None:
    rate_queue(store, TEN)
    store.enqueue(jobs(1, 30))
    store.claim(claim_request(limit=8), now=T0)
    rate_queue(store, Rate.parse("3/hour"))
    # What the bucket lacks is a part of one of the new tokens.
    taken = [len(store.claim(claim_request(), now=T0 + n * MINUTE).jobs) for n in range(3)]
    assert taken == [2, 1, 0]


@pytest.mark.on_databases
@pytest.mark.vendor("postgresql")
def test_bucket_that_another_transaction_holds_withholds_its_queue_alone(store: Store) -> None:
    rate_queue(store)
    store.enqueue([*jobs(1, 2), new_job(3, queue="mail")])
    with held_row(models.Queue, name="default"):
        answer = store.claim(claim_request("default", "mail"), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((3,), T0)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1, 2)
