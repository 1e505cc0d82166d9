from backwave_django.core.holdings import Attempt, Holdings
from tests.core.drivers import T0, job, lease, success


def holdings(*, pool_size=4, running=(), void=(), buffered=(), busy=()):
    held = Holdings(pool_size=pool_size)
    for number in (*running, *void):
        held.running[lease(number)] = Attempt(job(number), T0, void=number in void)
    for number in buffered:
        held.buffered[lease(number)] = success(number)
    for number in busy:
        held.busy[lease(number)] = success(number)
    return held


def leases(*numbers):
    return tuple(lease(number) for number in numbers)


def test_an_empty_pool_is_free():
    assert holdings(pool_size=4).free() == 4


def test_bodies_outcomes_and_reservations_hold_slots():
    assert holdings(pool_size=9, running=(1,), void=(2,), buffered=(3,)).free(reserved=2) == 4


def test_outcomes_that_leave_hold_none():
    assert holdings(pool_size=4, buffered=(1, 2, 3)).free(leaving=2) == 3


def test_busy_outcomes_hold_slots_past_the_size_of_the_pool():
    assert holdings(pool_size=2, busy=(1, 2)).free() == 2
    assert holdings(pool_size=2, busy=(1, 2, 3)).free() == 1


def test_less_than_nothing_is_never_free():
    assert holdings(pool_size=1, running=(1,), buffered=(2, 3)).free() == 0


def test_leases_worth_renewing_are_those_whose_end_counts():
    held = holdings(running=(1,), void=(2,), buffered=(3,), busy=(4,))
    assert held.leases() == leases(1, 3, 4)


def test_held_leases_include_void_ones_and_name_none_twice():
    held = holdings(running=(1,), void=(2,), buffered=(2, 3), busy=(4,))
    assert held.held() == leases(1, 2, 3, 4)


def test_a_batch_holds_the_oldest_outcomes():
    assert holdings(buffered=(3, 1, 2)).batch(2) == (success(3), success(1))


def test_empty_means_that_nothing_counts_any_more():
    assert holdings(void=(1,)).empty()
    assert not holdings(running=(1,)).empty()
    assert not holdings(buffered=(1,)).empty()
    assert not holdings(busy=(1,)).empty()
