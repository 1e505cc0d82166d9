"""Patterns: an operator's numbers for every key that begins so."""

from collections.abc import Callable

import pytest

from backwave_django import models
from backwave_django.core.contract import Store
from backwave_django.core.jobs import NewJob
from backwave_django.core.limits import Cap
from backwave_django.core.memory import Snapshot
from backwave_django.core.rates import Rate
from tests.builders import ACTOR, MINUTE, T0, claim_request, new_job
from tests.conformance.facts import numbers
from tests.conformance.subjects import held_row

Observe = Callable[[], Snapshot]


def jobs(first: int, last: int, **options: object) -> list[NewJob]:
    return [new_job(number, **options) for number in range(first, last + 1)]


def cap(store: Store, key: str, limit: int | None) -> None:
    store.set_limit(key, limit, actor=ACTOR, now=T0)


def tenants(store: Store) -> None:
    store.enqueue(
        [*jobs(1, 3, limit_key="tenant:a"), *jobs(4, 6, limit_key="tenant:b"), *jobs(7, 8)]
    )


def test_each_key_that_begins_so_has_the_number_for_itself(store: Store) -> None:
    cap(store, "tenant:*", 2)
    tenants(store)
    answers = [store.claim(claim_request(), now=T0) for _ in range(2)]
    assert [numbers(answer.jobs) for answer in answers] == [(7, 8, 1, 2, 4, 5), ()]


def test_key_that_begins_otherwise_is_not_limited(store: Store) -> None:
    cap(store, "tenant:*", 1)
    store.enqueue(jobs(1, 3, limit_key="Tenant:a"))
    assert len(store.claim(claim_request(), now=T0).jobs) == 3


def test_longest_pattern_wins(store: Store) -> None:
    cap(store, "*", 3)
    cap(store, "tenant:b*", 1)
    cap(store, "tenant:*", 2)
    tenants(store)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (7, 8, 1, 2, 4)


def test_operators_own_number_for_a_key_wins_over_patterns(store: Store) -> None:
    cap(store, "tenant:*", 1)
    cap(store, "tenant:a", 3)
    tenants(store)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (7, 8, 1, 2, 3, 4)


def test_pattern_wins_over_what_code_declares_while_it_is_there(store: Store) -> None:
    store.declare_limits({"tenant:a": Cap(2)})
    cap(store, "tenant:*", 1)
    store.enqueue(jobs(1, 5, limit_key="tenant:a"))
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1,)
    cap(store, "tenant:*", None)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (2,)


def test_each_key_has_a_bucket_of_its_own(store: Store, observe: Observe) -> None:
    store.set_rate("tenant:*", Rate.parse("2/minute"), actor=ACTOR, now=T0)
    tenants(store)
    answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((7, 8, 1, 2, 4, 5), T0 + MINUTE / 2)
    rows = {key: (row.source, row.rate_full_at) for key, row in observe().limits.items()}
    assert rows == {
        "tenant:*": ("pattern", None),
        "tenant:a": ("code", T0 + MINUTE),
        "tenant:b": ("code", T0 + MINUTE),
    }


def test_lifted_pattern_is_forgotten(store: Store, observe: Observe) -> None:
    cap(store, "tenant:*", 1)
    tenants(store)
    store.claim(claim_request(), now=T0)
    cap(store, "tenant:*", None)
    assert observe().limits == {}
    assert len(store.claim(claim_request(), now=T0).jobs) == 4


def test_star_inside_of_a_key_is_a_star(store: Store) -> None:
    cap(store, "tenant:*:x", 1)
    store.enqueue(jobs(1, 2, limit_key="tenant:a:x"))
    assert len(store.claim(claim_request(), now=T0).jobs) == 2


def test_jobs_whose_key_is_written_like_a_pattern_have_its_number(store: Store) -> None:
    cap(store, "tenant:*", 1)
    store.enqueue(jobs(1, 2, limit_key="tenant:*"))
    assert len(store.claim(claim_request(), now=T0).jobs) == 1


@pytest.mark.on_databases
@pytest.mark.vendor("postgresql")
def test_key_whose_row_another_transaction_holds_is_passed_over(store: Store) -> None:
    cap(store, "tenant:*", 2)
    tenants(store)
    store.claim(claim_request(limit=3), now=T0)
    with held_row(models.Limit, key="tenant:a"):
        answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((4, 5), T0)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (2,)
