from typing import Any

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.driver import Driver
from tests.core.drivers import (
    T0,
    TICK,
    at,
    beaten,
    claim,
    claimed,
    due,
    execute,
    fault,
    heartbeat,
    jobs,
    oblige,
    quiet,
    recovered,
    report,
    rested,
    returned,
)

SECOND = at(1) - T0
HINT = e.DueHinted(queue="default", priority=0)


def polls(driver: Driver, *, until: float, **answer: Any) -> list[float]:
    """The seconds at which the driver claims, when every claim gets the same answer."""
    seen = []
    while (now := due(driver.wake_at)) < at(until):
        for command in driver.step(TICK, now=now):
            if isinstance(command, c.Claim):
                seen.append((now - T0).total_seconds())
                driver.step(claimed(**answer), now=now)
            else:
                oblige(driver, (command,), now=now)
    return seen


def calm(**dials):
    """A rested driver whose chores and heartbeats stay out of the way."""
    hour = at(3600) - T0
    dials = {"maintenance_interval": hour, "heartbeat_interval": hour, **dials}
    return rested(lease_duration=2 * hour, purge=False, **dials)


def test_without_a_ceiling_polls_come_at_the_interval():
    assert polls(calm(poll_interval=2 * SECOND), until=9) == [2, 4, 6, 8]


def test_empty_polls_double_the_delay_up_to_the_ceiling():
    assert polls(calm(max_poll_interval=8 * SECOND), until=40) == [1, 3, 7, 15, 23, 31, 39]


def test_no_delay_goes_past_the_next_due_job():
    driver = calm(max_poll_interval=60 * SECOND)
    driver.step(TICK, now=at(1))
    driver.step(claimed(next_due=at(1.25)), now=at(1))
    assert driver.wake_at == at(1.25)


def test_work_restores_the_interval():
    driver = calm(max_poll_interval=8 * SECOND, pool_size=2)
    assert polls(driver, until=7.5) == [1, 3, 7]
    driver.step(TICK, now=at(15))
    assert driver.step(claimed(*jobs(1)), now=at(15)) == (execute(1),)
    assert driver.wake_at == at(16)


def test_work_that_is_due_and_withheld_restores_the_interval():
    driver = calm(max_poll_interval=8 * SECOND)
    assert polls(driver, until=7.5) == [1, 3, 7]
    driver.step(TICK, now=at(15))
    driver.step(claimed(next_due=at(14)), now=at(15))
    assert driver.wake_at == at(16)


def test_a_hint_brings_the_next_poll_forward():
    assert calm().step(HINT, now=at(0.5))[0].request.limit == 20


def test_a_hint_does_not_restore_the_interval():
    driver = calm(max_poll_interval=60 * SECOND)
    assert polls(driver, until=8) == [1, 3, 7]
    driver.step(HINT, now=at(8))
    driver.step(claimed(), now=at(8))
    quiet(driver, 8.02)  # the echo, which doubles it once more
    assert driver.wake_at == at(8.02 + 32)


def test_a_hint_is_looked_into_once_more_after_the_window():
    driver = calm(max_poll_interval=60 * SECOND)
    driver.step(HINT, now=at(0.5))
    driver.step(claimed(), now=at(0.5))
    assert at(0.51) <= due(driver.wake_at) <= at(0.52)
    assert driver.step(TICK, now=driver.wake_at) == (claim(20, lease_duration=7200 * SECOND),)


def test_hints_within_the_window_share_one_look():
    driver = calm(pool_size=1)
    driver.step(HINT, now=at(0.5))
    driver.step(claimed(), now=at(0.5))
    echo = driver.wake_at
    driver.step(HINT, now=at(0.501))
    driver.step(claimed(), now=at(0.501))
    assert driver.wake_at == echo


def test_a_full_pool_looks_into_no_echo():
    driver = calm(pool_size=1)
    driver.step(HINT, now=at(0.5))
    driver.step(claimed(*jobs(1)), now=at(0.5))
    assert driver.step(TICK, now=at(0.6)) == ()
    assert driver.wake_at == at(3600)


def test_a_hint_during_a_claim_brings_another():
    driver = calm()
    driver.step(TICK, now=at(1))
    assert driver.step(HINT, now=at(1)) == ()
    assert driver.step(claimed(), now=at(1))[0].request.hinted == (("default", 0),)


def test_an_echo_during_a_claim_brings_another():
    driver = calm(pool_size=1)
    driver.step(HINT, now=at(0.5))
    assert driver.step(TICK, now=at(0.6)) == ()
    assert driver.step(claimed(), now=at(0.6)) == (claim(1, lease_duration=7200 * SECOND),)


def test_the_claims_of_one_weighted_poll_double_the_delay_once():
    driver = calm(queues=("a", "b"), weights={"a": 1, "b": 1}, max_poll_interval=60 * SECOND)
    driver.step(TICK, now=at(1))
    driver.step(claimed(), now=at(1))
    driver.step(claimed(), now=at(1))
    assert driver.wake_at == at(3)


def test_work_in_any_claim_of_a_poll_restores_the_interval():
    driver = calm(queues=("a", "b"), weights={"a": 1, "b": 1}, max_poll_interval=60 * SECOND)
    driver.step(TICK, now=at(1))
    driver.step(claimed(*jobs(1)), now=at(1))
    driver.step(claimed(), now=at(1))
    assert driver.wake_at == at(2)


def test_a_fault_asks_for_a_poll_as_soon_as_it_may_be():
    driver = calm(max_poll_interval=60 * SECOND)
    (asked,) = driver.step(TICK, now=at(1))
    driver.step(fault(asked), now=at(1))
    assert driver.step(TICK, now=at(2)) == (heartbeat(),)
    driver.step(beaten(), now=at(2))
    assert driver.step(recovered(), now=at(2)) == (asked,)


def test_a_report_brings_a_claim_along_between_polls():
    driver = calm(max_poll_interval=60 * SECOND, pool_size=2)
    driver.step(TICK, now=at(1))
    driver.step(claimed(*jobs(1)), now=at(1))
    assert driver.step(returned(1), now=at(1.5)) == (
        report(1),
        claim(2, lease_duration=7200 * SECOND),
    )
