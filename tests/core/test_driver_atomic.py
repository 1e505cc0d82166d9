"""Bodies whose success is committed with what they wrote: the driver only frees their slots."""

from typing import Any

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.driver import Driver
from tests.core.drivers import (
    DRAIN,
    IDLE,
    T0,
    TICK,
    applied,
    at,
    beaten,
    busy,
    cancel,
    claim,
    claimed,
    committed,
    job,
    jobs,
    lease,
    oblige,
    quiet,
    report,
    rested,
    returned,
)
from tests.core.test_driver_bodies import HURRY, timed_out
from tests.core.test_driver_drain import DRAINED, STOPPING


def test_committed_body_frees_its_slot_and_asks_for_a_poll():
    driver = rested(*jobs(1, 2), pool_size=2)
    assert driver.step(committed(1), now=T0) == (claim(1),)


def test_nothing_is_reported_of_a_committed_body():
    driver = rested(*jobs(1, 2), pool_size=3)
    driver.step(returned(2), now=T0)
    assert driver.step(committed(1), now=T0)[0] == report(2)


def timed_out_driver(**dials: Any) -> Driver:
    """One body has just been timed out, and its outcome waits."""
    driver = rested(job(1), timeouts=HURRY, **dials)
    assert driver.step(TICK, now=at(3)) == (cancel(1, c.CancelReason.TIMEOUT),)
    return driver


def test_outcome_that_was_decided_meanwhile_is_dropped():
    driver = timed_out_driver(pool_size=1)
    assert driver.step(committed(1), now=at(3)) == (claim(1),)


def test_busy_outcome_of_a_committed_body_is_not_offered_again():
    driver = timed_out_driver(pool_size=1)
    (asked,) = driver.step(IDLE, now=at(3))
    assert asked == c.Report(outcomes=(timed_out(1, now=at(3)),))
    driver.step(busy(1), now=at(3))
    driver.step(committed(1), now=at(3))
    driver.step(claimed(), now=at(3))
    quiet(driver, 3, 4)
    asked_later = driver.step(TICK, now=at(4))
    assert not any(isinstance(one, c.Report) for one in asked_later)


def test_committed_body_whose_slot_was_replaced_is_forgotten():
    driver = timed_out_driver(pool_size=1)
    driver.step(IDLE, now=at(3))
    driver.step(applied(1), now=at(3))
    done = driver.step(TICK, now=at(8))
    assert c.ReplaceSlot(lease_id=lease(1)) in done
    driver.step(committed(1), now=at(8))
    oblige(driver, done, now=at(8))
    assert driver.step(DRAIN, now=at(8)) == (STOPPING, DRAINED)


def test_last_committed_body_ends_a_drain():
    driver = rested(job(1), pool_size=1)
    assert driver.step(DRAIN, now=T0) == (STOPPING,)
    assert driver.step(committed(1), now=at(1)) == (DRAINED,)


def test_lease_that_a_heartbeat_missed_because_it_was_committed():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(e.CancelHinted(), now=at(0.5))
    assert cancel(1, c.CancelReason.LEASE_LOST) in driver.step(beaten(lost=(1,)), now=at(0.5))
    driver.step(committed(1), now=at(1))
    assert driver.step(IDLE, now=at(1)) == ()
