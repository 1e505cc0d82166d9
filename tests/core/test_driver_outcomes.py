from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.outcomes import Verdict
from tests.core.drivers import (
    DRAIN,
    EXPIRE,
    IDLE,
    SETTLE,
    T0,
    TICK,
    answered,
    applied,
    at,
    beaten,
    busy,
    claim,
    claimed,
    due,
    expired,
    heartbeat,
    held_up,
    job,
    jobs,
    raised,
    report,
    rested,
    returned,
    settled,
    success,
)


def test_an_outcome_waits_for_company_while_others_run():
    assert rested(*jobs(1, 2), pool_size=3).step(returned(1), now=T0) == ()


def test_outcomes_flush_when_the_inbox_is_empty():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    assert driver.step(IDLE, now=T0) == (report(1), claim(1))


def test_an_empty_inbox_with_nothing_to_report_asks_for_nothing():
    assert rested(*jobs(1, 2), pool_size=2).step(IDLE, now=T0) == ()


def test_outcomes_flush_when_nothing_executes():
    driver = rested(job(1), pool_size=2)
    assert driver.step(returned(1), now=T0) == (report(1), claim(2))


def test_bodies_that_end_together_leave_together():
    ends = returned(2), returned(3)
    one_by_one, at_once = (rested(*jobs(1, 2, 3), pool_size=4) for _ in range(2))
    assert one_by_one.step(ends[0], now=at(1)) == (report(2), claim(2))
    assert at_once.step(e.AttemptsEnded(ends), now=at(1)) == (report(2, 3), claim(3))


def test_outcomes_flush_when_the_batch_is_full():
    driver = rested(*jobs(1, 2, 3), pool_size=3, max_outcome_batch=2)
    assert driver.step(returned(1), now=T0) == ()
    assert driver.step(returned(2), now=T0) == (report(1, 2), claim(2))


def test_outcomes_flush_at_the_poll_tick():
    driver = rested(*jobs(1, 2), pool_size=4)
    driver.step(returned(1), now=T0)
    assert driver.step(TICK, now=at(1)) == (report(1), claim(3))


def test_a_poll_that_a_full_pool_holds_back_flushes_nothing():
    driver = rested(*jobs(1, 2, 3), pool_size=3)
    # The claim is overdue, and yet outcomes wait for what else is in the inbox.
    assert driver.step(returned(1), now=at(1)) == ()
    assert driver.step(returned(2), now=at(1)) == ()
    assert driver.step(IDLE, now=at(1)) == (report(1, 2), claim(2))


def test_outcomes_flush_at_the_heartbeat():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=at(1))
    assert driver.step(TICK, now=at(20)) == (report(1), heartbeat(2, 1))


def test_outcomes_flush_at_a_drain():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    assert driver.step(DRAIN, now=T0)[1:] == (report(1),)


def test_what_ends_during_a_round_trip_rides_in_the_next():
    driver = rested(*jobs(1, 2, 3, 4), pool_size=5)
    driver.step(TICK, now=at(1))
    driver.step(returned(1), now=at(1))
    driver.step(returned(2), now=at(1))
    driver.step(claimed(), now=at(1))
    driver.step(returned(3), now=at(1))
    assert driver.step(IDLE, now=at(1)) == (report(1, 2, 3), claim(4))


def test_no_store_command_is_issued_while_one_is_in_flight():
    driver = rested(*jobs(1, 2), pool_size=3)
    driver.step(TICK, now=at(1))
    driver.step(returned(1), now=at(1))
    assert driver.step(IDLE, now=at(30)) == ()


def test_one_long_body_does_not_hold_up_short_ones():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    assert driver.step(IDLE, now=T0) == (report(1), claim(1))
    driver.step(applied(1), now=T0)
    driver.step(claimed(job(3)), now=T0)
    driver.step(returned(3), now=T0)
    assert driver.step(IDLE, now=T0) == (report(3), claim(1))


def test_a_stale_outcome_is_forgotten():
    driver = rested(job(1), pool_size=2)
    driver.step(returned(1), now=T0)
    driver.step(answered((1, Verdict.STALE)), now=T0)
    driver.step(claimed(), now=T0)
    assert driver.step(TICK, now=at(20)) == (heartbeat(),)


def test_a_busy_outcome_is_offered_again_soon_and_then_more_rarely():
    driver = held_up(*jobs(1, 2), pool_size=2)
    assert driver.step(claimed(job(3)), now=T0)[1:] == ()
    assert driver.step(IDLE, now=at(0.009)) == ()
    milliseconds = []
    now = T0
    while now < at(3):
        waited, now = due(driver.wake_at) - now, due(driver.wake_at)
        milliseconds.append(round(waited.total_seconds() * 1000))
        assert driver.step(TICK, now=now) == (report(1),)
        driver.step(busy(1), now=now)
    assert milliseconds == [10, 20, 40, 80, 160, 320, 640, 1000, 1000]


def test_outcomes_that_get_busy_beside_an_old_one_are_offered_soon():
    driver = held_up(*jobs(1, 2), pool_size=2)
    driver.step(claimed(job(3)), now=T0)
    for now in (at(0.01), at(0.03), at(0.07)):
        assert driver.step(TICK, now=now) == (report(1),)
        driver.step(busy(1), now=now)
    driver.step(returned(2, now=at(0.1)), now=at(0.1))
    driver.step(IDLE, now=at(0.1))
    driver.step(busy(2), now=at(0.1))
    driver.step(claimed(), now=at(0.1))
    assert driver.wake_at == at(0.11)
    assert driver.step(TICK, now=at(0.11)) == (
        c.Report(outcomes=(success(1), success(2, now=at(0.1)))),
    )


def test_a_busy_outcome_is_renewed_like_a_running_lease():
    driver = held_up(*jobs(1, 2), pool_size=2, poll_interval=30 * (at(1) - T0))
    driver.step(claimed(), now=T0)
    assert driver.step(TICK, now=at(20)) == (report(1), heartbeat(2, 1))


def test_busy_outcomes_ride_with_those_that_flush():
    driver = held_up(*jobs(1, 2, 3), pool_size=3)
    driver.step(claimed(), now=T0)
    both = c.Report(outcomes=(success(2, now=at(1)), success(1)))
    assert driver.step(returned(2, now=at(1)), now=at(1)) == (both, claim(2))


def test_a_busy_outcome_that_is_applied_later_is_gone():
    driver = held_up(*jobs(1, 2), pool_size=2)
    driver.step(claimed(job(3)), now=T0)
    driver.step(TICK, now=at(1))
    assert driver.step(applied(1), now=at(1)) == ()
    assert driver.step(TICK, now=at(20)) == (heartbeat(2, 3),)


def test_the_end_of_a_body_that_nobody_knows_is_ignored():
    driver = rested(pool_size=2)
    assert driver.step(raised(9), now=T0) == ()
    assert driver.step(IDLE, now=T0) == ()


def test_an_outcome_is_reported_until_the_store_answers():
    driver = rested(job(1), pool_size=2)
    driver.step(returned(1), now=T0)
    driver.step(applied(), now=T0)  # an answer that does not speak of it
    assert driver.step(claimed(), now=T0) == (report(1), claim(2))


def test_maintenance_rides_behind_the_claim():
    driver = rested(pool_size=2)
    driver.step(TICK, now=at(4.5))
    driver.step(claimed(), now=at(4.5))
    assert driver.step(TICK, now=at(5.5)) == (claim(2), SETTLE)
    driver.step(claimed(), now=at(5.5))
    assert driver.step(settled(), now=at(5.5)) == ()


def test_a_full_sweep_alternates_with_claims():
    driver = rested(pool_size=2)
    driver.step(TICK, now=at(20))
    assert driver.step(beaten(), now=at(20)) == (claim(2), EXPIRE)
    driver.step(claimed(), now=at(20))
    assert driver.step(expired(500, full=True), now=at(20)) == (claim(2), SETTLE)
    driver.step(claimed(), now=at(20))
    assert driver.step(settled(), now=at(20)) == ()
    assert driver.step(IDLE, now=at(20)) == (EXPIRE,)


def test_what_waits_in_the_inbox_comes_before_the_rest_of_a_full_sweep():
    driver = rested(job(1), pool_size=1)
    driver.step(TICK, now=at(5))
    assert driver.step(settled(500, full=True), now=at(5)) == ()
    assert driver.wake_at == at(5)
    assert driver.step(DRAIN, now=at(5)) == (c.SignalStopping(), SETTLE)
