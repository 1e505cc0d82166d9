import pytest

from backwave_django.core import commands as c
from backwave_django.core.dials import StopRule
from tests.core.drivers import (
    T0,
    TICK,
    applied,
    at,
    claim,
    claimed,
    execute,
    fault,
    job,
    jobs,
    quiet,
    report,
    rested,
    returned,
)

DONE = c.Exit(abandoned=0, unrecorded=0)


def polled(*found, stop, **answer):
    """What a driver under a stop rule does about the answer to its second claim."""
    driver = rested(job(0), pool_size=3, stop=stop)
    driver.step(TICK, now=at(1))
    return driver, driver.step(claimed(*found, **answer), now=at(1))


def test_until_idle_ends_when_nothing_is_due_and_nothing_runs():
    driver, _ = polled(stop=StopRule(when_idle=True))
    driver.step(returned(0), now=at(1))
    driver.step(applied(0), now=at(1))
    assert driver.step(claimed(next_due=at(9)), now=at(1)) == (DONE,)
    assert driver.over


def test_until_idle_goes_on_while_something_runs():
    driver, done = polled(stop=StopRule(when_idle=True))
    assert done == ()
    assert driver.step(TICK, now=at(2)) == (claim(2),)


def test_until_idle_goes_on_while_due_work_is_withheld():
    driver, _ = polled(stop=StopRule(when_idle=True))
    driver.step(returned(0), now=at(1))
    driver.step(applied(0), now=at(1))
    assert driver.step(claimed(next_due=at(1)), now=at(1)) == ()
    assert driver.step(TICK, now=at(2)) == (claim(3),)


def test_once_ends_after_what_one_claim_brought():
    driver = rested(*jobs(1, 2), pool_size=3, stop=StopRule(once=True))
    assert driver.step(TICK, now=at(1)) == ()
    driver.step(returned(1), now=at(1))
    assert driver.step(returned(2), now=at(1)) == (report(1, 2),)
    assert driver.step(applied(1, 2), now=at(1)) == (DONE,)


def test_once_tries_again_when_its_claim_faulted():
    driver = rested(job(1), pool_size=3, stop=StopRule(max_jobs=9))
    asked = driver.step(TICK, now=at(1))
    driver.step(fault(*asked), now=at(1))
    quiet(driver, 2)
    assert not driver.over


def test_a_pump_that_finds_nothing_once_exits():
    assert rested(pool_size=3, stop=StopRule(once=True)).over


def test_claims_are_cut_to_the_jobs_that_are_left():
    driver = rested(*jobs(1), pool_size=5, stop=StopRule(max_jobs=3))
    assert driver.step(TICK, now=at(1)) == (claim(2),)
    assert driver.step(claimed(*jobs(2, 3), short=False), now=at(1)) == (execute(2, 3),)
    assert driver.step(TICK, now=at(2)) == ()
    for number in (1, 2):
        driver.step(returned(number), now=at(2))
    assert driver.step(returned(3), now=at(2)) == (report(1, 2, 3),)
    assert driver.step(applied(1, 2, 3), now=at(2)) == (DONE,)


def test_a_stopped_pump_still_renews_and_sweeps():
    driver = rested(*jobs(1), pool_size=3, stop=StopRule(once=True))
    assert driver.wake_at == at(5)


def test_a_rule_of_no_jobs_is_refused():
    with pytest.raises(AssertionError):
        StopRule(max_jobs=0)


def test_no_rule_means_for_ever():
    driver = rested(pool_size=3)
    quiet(driver, 1, 2, 3)
    assert not driver.over
    assert driver.step(TICK, now=T0) == ()
