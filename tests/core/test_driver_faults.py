from uuid import UUID

import pytest

from backwave_django.core import commands as c
from backwave_django.core import events as e
from tests.core.drivers import (
    EXPIRE,
    IDLE,
    SETTLE,
    T0,
    TICK,
    applied,
    at,
    beaten,
    cancel,
    claim,
    claimed,
    expired,
    fault,
    heartbeat,
    held_up,
    job,
    jobs,
    quiet,
    recover,
    recovered,
    report,
    rested,
    returned,
    settled,
    swept,
)

DISPOSE = c.Dispose(pumps=(UUID(int=99),))


def outage(*running, **dials):
    """A driver whose poll at 1 s met a fault; retried from 2 s on."""
    driver = rested(*running, **dials)
    asked = driver.step(TICK, now=at(1))
    assert driver.step(fault(*asked), now=at(1)) == ()
    return driver


def test_after_a_fault_nothing_is_asked_before_the_tick():
    driver = outage(job(1), pool_size=2)
    assert driver.step(IDLE, now=at(1.5)) == ()
    assert driver.step(e.DueHinted(queue="default", priority=0), now=at(1.5)) == ()
    assert driver.wake_at == at(2)


def test_after_a_fault_come_heartbeat_then_recovery_then_the_rest():
    driver = outage(*jobs(1, 2), pool_size=3)
    driver.step(returned(2), now=at(1))
    assert driver.step(TICK, now=at(2)) == (heartbeat(1, 2),)
    assert driver.step(beaten(), now=at(2)) == (recover(1, 2),)
    assert driver.step(recovered(), now=at(2)) == (report(2), claim(2))


def test_retries_back_off_up_to_ten_seconds():
    driver = outage(pool_size=2)
    waits = []
    for _ in range(5):
        woken = driver.wake_at
        asked = driver.step(TICK, now=woken)
        assert asked == (heartbeat(),)
        driver.step(fault(*asked), now=woken)
        waits.append((driver.wake_at - woken).total_seconds())
    assert waits == [2, 4, 8, 10, 10]


def test_an_answer_restores_the_first_backoff():
    driver = outage(pool_size=2)
    asked = driver.step(TICK, now=at(2))
    driver.step(fault(*asked), now=at(2))
    driver.step(TICK, now=at(4))
    asked = driver.step(beaten(), now=at(4))
    driver.step(fault(*asked), now=at(4))
    assert driver.wake_at == at(5)


def test_report_and_claim_fault_together():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    asked = driver.step(IDLE, now=T0)
    assert asked == (report(1), claim(1))
    assert driver.step(fault(*asked), now=T0) == ()
    assert driver.wake_at == at(1)


def test_a_report_that_was_answered_stands_when_the_claim_faults():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    asked = driver.step(IDLE, now=T0)
    driver.step(applied(1), now=T0)
    driver.step(fault(asked[1]), now=T0)
    assert driver.step(TICK, now=at(1)) == (heartbeat(2),)


def test_busy_outcomes_survive_a_faulted_report():
    driver = held_up(*jobs(1, 2), pool_size=2)
    driver.step(claimed(job(3)), now=T0)
    asked = driver.step(TICK, now=at(1))
    assert asked == (report(1),)
    driver.step(fault(*asked), now=at(1))
    assert driver.step(TICK, now=at(2)) == (heartbeat(2, 3, 1),)
    driver.step(beaten(), now=at(2))
    assert driver.step(recovered(), now=at(2)) == (report(1),)


def test_a_faulted_heartbeat_is_sent_again():
    driver = rested(job(1), pool_size=1)
    asked = driver.step(TICK, now=at(20))
    assert asked == (heartbeat(1),)
    driver.step(fault(*asked), now=at(20))
    assert driver.step(TICK, now=at(21)) == (heartbeat(1),)


def test_a_faulted_recovery_is_tried_again():
    driver = outage(job(1), pool_size=2)
    driver.step(TICK, now=at(2))
    asked = driver.step(beaten(), now=at(2))
    driver.step(fault(*asked), now=at(2))
    driver.step(TICK, now=at(3))
    assert driver.step(beaten(), now=at(3)) == (recover(1),)


def test_a_faulted_chore_is_done_later():
    driver = rested(pool_size=2)
    asked = driver.step(TICK, now=at(5))
    assert asked == (claim(2), SETTLE)
    driver.step(claimed(), now=at(5))
    driver.step(fault(SETTLE), now=at(5))
    driver.step(TICK, now=at(6))
    driver.step(beaten(), now=at(6))
    assert driver.step(recovered(), now=at(6)) == (claim(2), SETTLE)


def test_an_answer_to_a_later_command_ends_the_wait_and_not_the_order():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    driver.step(IDLE, now=T0)
    driver.step(fault(report(1)), now=T0)
    assert driver.step(claimed(job(3)), now=T0) == (c.Execute(jobs=(job(3),)), heartbeat(2, 3, 1))


def test_leases_that_the_database_lists_and_the_pump_does_not_are_recovered():
    driver = rested(job(1), pool_size=2)
    driver.step(TICK, now=at(20))
    assert driver.step(beaten(unlisted=(8,)), now=at(20)) == (recover(1),)


def test_recovered_work_is_polled_for_at_once():
    driver = rested(pool_size=2, poll_interval=15 * (at(1) - T0))
    driver.step(TICK, now=at(15))
    driver.step(claimed(), now=at(15))
    driver.step(settled(), now=at(15))
    driver.step(TICK, now=at(20))
    driver.step(beaten(unlisted=(8,)), now=at(20))
    assert driver.step(recovered(1), now=at(20)) == (claim(2), EXPIRE)


def test_lapsed_leases_are_not_swept_before_one_heartbeat_interval_of_contact():
    driver = rested(pool_size=1, poll_interval=at(1000) - T0)
    for second in (5, 10, 15):
        assert driver.step(TICK, now=at(second)) == (SETTLE,)
        driver.step(settled(), now=at(second))
    driver.step(TICK, now=at(20))
    assert driver.step(beaten(), now=at(20)) == (EXPIRE,)


def test_a_fault_starts_the_wait_for_sweeping_anew():
    driver = rested(job(1), pool_size=1)
    driver.step(TICK, now=at(20))
    driver.step(beaten(), now=at(20))
    driver.step(fault(EXPIRE), now=at(20))
    quiet(driver, 30)
    for second in (35, 40, 45):
        assert driver.step(TICK, now=at(second)) == (SETTLE,)
        driver.step(settled(), now=at(second))
    driver.step(TICK, now=at(50))
    assert driver.step(beaten(), now=at(50)) == (EXPIRE,)


def test_a_long_silence_starts_the_wait_for_sweeping_anew():
    driver = rested(pool_size=1, poll_interval=at(1000) - T0)
    assert driver.step(TICK, now=at(100)) == (heartbeat(),)
    assert driver.step(beaten(), now=at(100)) == (SETTLE,)


def test_leases_of_dead_pumps_are_ended_without_that_wait():
    driver = rested(pool_size=1)
    assert driver.step(e.DeadPumpsFound(pumps=DISPOSE.pumps), now=T0) == (DISPOSE,)


def test_disposed_work_is_polled_for_at_once():
    driver = rested(pool_size=1)
    driver.step(e.DeadPumpsFound(pumps=DISPOSE.pumps), now=T0)
    assert driver.step(e.Disposed(answer=swept(3)), now=T0) == (claim(1),)


def test_a_faulted_disposal_comes_after_heartbeat_and_recovery():
    driver = rested(pool_size=1)
    driver.step(e.DeadPumpsFound(pumps=DISPOSE.pumps), now=T0)
    driver.step(fault(DISPOSE), now=T0)
    assert driver.step(TICK, now=at(1)) == (heartbeat(),)
    assert driver.step(beaten(), now=at(1)) == (recover(),)
    assert driver.step(recovered(), now=at(1)) == (claim(1), DISPOSE)


def test_a_fatal_fault_signals_all_bodies_and_halts():
    driver = rested(*jobs(1, 2), pool_size=3)
    asked = driver.step(TICK, now=at(1))
    assert driver.step(fault(*asked, fatal=True), now=at(1)) == (
        cancel(1, c.CancelReason.HALT),
        cancel(2, c.CancelReason.HALT),
        c.Halt(reason="connection lost"),
    )
    assert driver.over
    assert driver.wake_at is None


def test_nothing_may_be_told_after_the_end():
    driver = rested(pool_size=3)
    asked = driver.step(TICK, now=at(1))
    driver.step(fault(*asked, fatal=True), now=at(1))
    with pytest.raises(AssertionError, match="after Exit or Halt"):
        driver.step(TICK, now=at(2))


def test_an_answer_that_nobody_asked_for_is_a_bug():
    with pytest.raises(AssertionError, match="none of which is in flight"):
        rested().step(claimed(), now=T0)


def test_a_fault_of_what_nobody_asked_for_is_a_bug():
    with pytest.raises(AssertionError, match="not in flight"):
        rested().step(fault(SETTLE), now=T0)


def test_purges_come_round_once_a_minute():
    driver = rested(pool_size=1, poll_interval=at(1000) - T0, maintenance_interval=at(600) - T0)
    driver.step(TICK, now=at(20))
    driver.step(beaten(), now=at(20))
    driver.step(TICK, now=at(40))
    driver.step(beaten(), now=at(40))
    assert driver.wake_at == at(60)
    driver.step(TICK, now=at(60))
    asked = driver.step(beaten(), now=at(60))
    assert asked == (c.Purge(limit=1_000),)
    assert driver.step(e.Purged(answer=swept(1_000, full=True)), now=at(60)) == ()
    assert driver.step(IDLE, now=at(60)) == asked
    assert driver.step(e.Purged(answer=swept(3)), now=at(60)) == ()


def test_swept_leases_are_polled_for_at_once():
    driver = rested(pool_size=1, poll_interval=at(1000) - T0)
    driver.step(TICK, now=at(20))
    driver.step(beaten(), now=at(20))
    assert driver.step(expired(2), now=at(20)) == (claim(1), SETTLE)
