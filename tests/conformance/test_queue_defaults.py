"""What the settings say of a queue's cap and rate: it holds where no operator says otherwise."""

from collections.abc import Callable

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.errors import InvalidOption
from backwave_django.core.jobs import NewJob
from backwave_django.core.limits import Cap
from backwave_django.core.memory import Snapshot
from backwave_django.core.queues import NO_DEFAULTS, QueueDefaults
from backwave_django.core.rates import Rate
from tests.builders import ACTOR, MINUTE, T0, claim_request, new_job, succeeded
from tests.conformance.facts import numbers

Observe = Callable[[], Snapshot]

TWO = Rate.parse("2/minute")
FOUR = Rate.parse("4/minute")


def jobs(first: int, last: int, **options: object) -> list[NewJob]:
    return [new_job(number, **options) for number in range(first, last + 1)]


def declare(store: Store, number: int | None = None, rate: Rate | None = None) -> None:
    store.declare_queues({"default": QueueDefaults(Cap(number, rate))})


def claimed(store: Store) -> tuple[int, ...]:
    return numbers(store.claim(claim_request(), now=T0).jobs)


def test_cap_of_the_settings_is_never_exceeded(store: Store) -> None:
    declare(store, 2)
    store.enqueue([*jobs(1, 5), new_job(6, limit_key="a")])
    answers = [store.claim(claim_request(), now=T0) for _ in range(2)]
    assert [numbers(answer.jobs) for answer in answers] == [(1, 2), ()]
    assert [(answer.short, answer.next_due) for answer in answers] == [(True, T0), (True, T0)]
    (job, _) = answers[0].jobs
    _, answer = store.turn([succeeded(job)], claim_request(), now=T0)
    assert numbers(answer.jobs) == (3,)


def test_rate_of_the_settings_has_a_bucket(store: Store) -> None:
    declare(store, rate=TWO)
    store.enqueue(jobs(1, 5))
    answers = [store.claim(claim_request(), now=T0) for _ in range(2)]
    assert [numbers(answer.jobs) for answer in answers] == [(1, 2), ()]
    assert [(answer.short, answer.next_due) for answer in answers] == [(True, T0 + MINUTE / 2)] * 2
    assert numbers(store.claim(claim_request(), now=T0 + MINUTE / 2).jobs) == (3,)


def test_cap_of_zero_in_the_settings_stops_a_queue_and_hides_no_other(store: Store) -> None:
    declare(store, 0)
    store.enqueue([*jobs(1, 2), new_job(3, queue="mail")])
    answer = store.claim(claim_request("default", "mail"), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((3,), T0)


def test_operators_cap_goes_before_that_of_the_settings_until_it_is_lifted(
    store: Store, observe: Observe
) -> None:
    declare(store, 2)
    store.enqueue(jobs(1, 9))
    assert claimed(store) == (1, 2)
    store.set_queue_limit("default", 3, actor=ACTOR, now=T0)
    assert claimed(store) == (3,)
    store.set_queue_limit("default", None, actor=ACTOR, now=T0)
    assert claimed(store) == ()
    declare(store, 5)
    assert claimed(store) == (4, 5)
    declare(store)
    assert claimed(store) == (6, 7, 8, 9)
    # The audit is about operators alone: what the settings say was never theirs.
    views = [(action.action, action.before, action.after) for action in observe().actions]
    assert views == [
        ("set_limit", {"limit": None}, {"limit": 3}),
        ("set_limit", {"limit": 3}, {"limit": None}),
    ]


def test_operators_number_leaves_the_rate_of_the_settings(store: Store, observe: Observe) -> None:
    declare(store, 1, TWO)
    store.set_queue_limit("default", 9, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 9))
    answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((1, 2), T0 + MINUTE / 2)
    row = observe().queues["default"]
    assert (row["limit"], row["rate"]) == (9, None)
    assert (row["limit_default"], row["rate_default"]) == (1, "2/minute")


def test_operators_rate_leaves_the_number_of_the_settings(store: Store) -> None:
    declare(store, 3, TWO)
    store.set_queue_rate("default", FOUR, actor=ACTOR, now=T0)
    store.enqueue(jobs(1, 9))
    answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((1, 2, 3), T0)


def test_rates_of_operators_and_settings_share_their_bucket(store: Store) -> None:
    declare(store, rate=TWO)
    store.enqueue(jobs(1, 9))
    assert claimed(store) == (1, 2)
    store.set_queue_rate("default", FOUR, actor=ACTOR, now=T0)
    # The minute that the slower bucket lacks is all that the faster one holds.
    assert claimed(store) == ()
    assert len(store.claim(claim_request(), now=T0 + MINUTE).jobs) == 4
    store.set_queue_rate("default", None, actor=ACTOR, now=T0 + MINUTE)
    assert store.claim(claim_request(), now=T0 + MINUTE).jobs == ()


def test_settings_change_what_they_name_and_make_no_row_for_nothing(
    store: Store, observe: Observe
) -> None:
    declare(store, 2, TWO)
    store.set_queue_limit("mail", 1, actor=ACTOR, now=T0)
    store.declare_queues({"mail": QueueDefaults(Cap(7)), "bulk": NO_DEFAULTS})
    rows = observe().queues
    noted = {name: (row["limit_default"], row["rate_default"]) for name, row in rows.items()}
    assert noted == {"default": (2, "2/minute"), "mail": (7, None)}
    store.declare_queues({"default": QueueDefaults(Cap(None, FOUR)), "mail": NO_DEFAULTS})
    rows = observe().queues
    noted = {name: (row["limit_default"], row["rate_default"]) for name, row in rows.items()}
    assert noted == {"default": (None, "4/minute"), "mail": (None, None)}
    assert rows["mail"]["limit"] == 1


@pytest.mark.parametrize("number", [-1, 2**31])
def test_cap_that_cannot_be_is_refused_and_nothing_is_noted(
    store: Store, observe: Observe, number: int
) -> None:
    with pytest.raises(InvalidOption):
        store.declare_queues({"bulk": QueueDefaults(Cap(1)), "default": QueueDefaults(Cap(number))})
    with pytest.raises(InvalidOption):
        store.set_queue_limit("default", number, actor=ACTOR, now=T0)
    with pytest.raises(InvalidOption):
        store.set_limit("a", number, actor=ACTOR, now=T0)
    assert (observe().queues, observe().limits, observe().actions) == ({}, {}, ())
