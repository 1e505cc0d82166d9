from backwave_django.core import commands as c
from backwave_django.core import events as e
from tests.core.drivers import (
    DRAIN,
    EXPIRE,
    SETTLE,
    T0,
    TICK,
    at,
    beaten,
    cancel,
    claim,
    claimed,
    due,
    fault,
    heartbeat,
    held_up,
    job,
    jobs,
    quiet,
    report,
    rested,
    settled,
)


def test_a_clock_set_back_keeps_the_next_poll_as_far_away():
    driver = rested(pool_size=1)
    quiet(driver, 1)
    assert driver.step(TICK, now=at(-3600)) == ()
    assert driver.wake_at == at(-3599)
    assert driver.step(TICK, now=at(-3599)) == (claim(1),)


def test_a_clock_set_back_keeps_the_next_heartbeat_as_far_away():
    driver = rested(job(1), pool_size=1)
    quiet(driver, 18)
    driver.step(TICK, now=at(-3600))
    assert driver.step(TICK, now=at(-3598)) == (heartbeat(1),)


def test_a_clock_set_back_keeps_the_next_chores_as_far_away():
    driver = rested(job(1), pool_size=1)
    quiet(driver, 5)
    driver.step(TICK, now=at(-3600))
    assert driver.wake_at == at(-3595)
    assert driver.step(TICK, now=at(-3595)) == (SETTLE,)


def test_a_clock_set_back_keeps_a_backoff_as_long():
    driver = rested(pool_size=1)
    asked = driver.step(TICK, now=at(1))
    driver.step(fault(*asked), now=at(1))
    assert driver.step(TICK, now=at(-3600)) == ()
    assert driver.wake_at == at(-3599)
    assert driver.step(TICK, now=at(-3599)) == (heartbeat(),)


def test_a_clock_set_back_keeps_a_body_its_time():
    driver = rested(job(1), pool_size=1, timeouts={"shop.pack": at(3) - T0})
    driver.step(TICK, now=at(-100))
    assert driver.step(TICK, now=at(-98)) == ()
    assert driver.step(TICK, now=at(-97)) == (cancel(1, c.CancelReason.TIMEOUT),)
    driver.step(TICK, now=at(-200))
    quiet(driver, -196)
    assert driver.step(TICK, now=at(-195))[0] == c.ReplaceSlot(lease_id=job(1).lease_id)


def test_a_clock_set_back_keeps_a_drain_as_long():
    driver = rested(job(1), pool_size=1)
    driver.step(DRAIN, now=T0)
    driver.step(TICK, now=at(-3600))
    quiet(driver, -3575)
    assert driver.wake_at == at(-3572)
    assert driver.step(TICK, now=at(-3572)) == (cancel(1, c.CancelReason.DRAIN),)


def test_a_clock_set_back_keeps_a_busy_outcome_waiting_as_long():
    driver = held_up(*jobs(1, 2), pool_size=2)
    driver.step(claimed(job(3)), now=T0)
    assert driver.step(TICK, now=at(-50)) == ()
    assert driver.step(TICK, now=at(-49.991)) == ()
    assert driver.step(TICK, now=at(-49.99)) == (report(1),)


def test_a_clock_set_back_keeps_an_echo_as_far_away():
    driver = rested(pool_size=2)
    driver.step(e.DueHinted(queue="default", priority=0), now=T0)
    driver.step(claimed(), now=T0)
    driver.step(TICK, now=at(-50))
    assert at(-49.99) <= due(driver.wake_at) <= at(-49.98)


def test_a_clock_set_back_does_not_hurry_the_sweep():
    driver = rested(job(1), pool_size=1)
    quiet(driver, 10)
    driver.step(TICK, now=at(-3600))
    assert driver.step(TICK, now=at(-3595)) == (SETTLE,)
    quiet(driver, -3595)


def test_a_clock_set_forward_renews_before_anything_else():
    driver = rested(job(1), pool_size=2)
    assert driver.step(TICK, now=at(3600)) == (heartbeat(1),)
    assert driver.step(beaten(), now=at(3600)) == (claim(1), SETTLE)
    driver.step(claimed(), now=at(3600))
    assert EXPIRE not in driver.step(settled(), now=at(3600))
