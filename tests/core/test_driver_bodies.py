from datetime import datetime
from typing import Any

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.driver import Driver
from backwave_django.core.outcomes import Failure, Outcome, OutcomeKind
from backwave_django.core.retries import Retry
from backwave_django.core.states import Cause, JobState
from tests.core.drivers import (
    EXPIRE,
    SETTLE,
    T0,
    TICK,
    applied,
    at,
    beaten,
    cancel,
    claim,
    claimed,
    fresh,
    gave_in,
    heartbeat,
    job,
    jobs,
    lease,
    oblige,
    quiet,
    recover,
    report,
    rested,
    returned,
    settled,
    told,
)

HURRY = {"shop.pack": at(3) - T0}


def timed_out(number: int, *, now: datetime, last: bool = False) -> Outcome:
    return Outcome(
        lease_id=lease(number),
        job_id=job(number).job_id,
        kind=OutcomeKind.TIMED_OUT,
        state=JobState.DEAD_LETTERED if last else JobState.SCHEDULED,
        cause=Cause.TIMEOUT if last else None,
        due_at=None if last else now + (at(10) - T0),
        started_at=T0,
        finished_at=now,
        failure=Failure("backwave_django.TimedOut", "ran longer than its 3 s"),
    )


def beat(driver: Driver, *, now: datetime, **news: Any) -> tuple[c.LocalCommand, ...]:
    """Let a heartbeat bring news; return what the driver does about it at once."""
    driver.step(e.CancelHinted(), now=now)
    done = driver.step(beaten(**news), now=now)
    oblige(driver, done, now=now)
    return tuple(one for one in done if isinstance(one, c.LocalCommand))


# Lost leases


def test_a_lost_lease_abandons_the_attempt():
    driver = rested(*jobs(1, 2), pool_size=2)
    assert beat(driver, now=at(0.5), lost=(1,)) == (
        cancel(1, c.CancelReason.LEASE_LOST),
        c.Abandon(lease_id=lease(1)),
    )


def test_an_abandoned_body_holds_its_slot_until_it_ends():
    driver = rested(*jobs(1, 2), pool_size=2)
    beat(driver, now=at(0.5), lost=(1,))
    assert driver.step(TICK, now=at(1)) == ()
    assert driver.step(returned(1), now=at(1)) == (claim(1),)


def test_the_late_outcome_of_a_lost_lease_is_dropped():
    driver = rested(*jobs(1, 2), pool_size=3)
    beat(driver, now=at(0.5), lost=(1,))
    assert driver.step(gave_in(1), now=at(0.7)) == (claim(2),)
    driver.step(claimed(), now=at(0.7))
    assert driver.step(e.CancelHinted(), now=at(0.8)) == (heartbeat(2),)


def test_a_buffered_outcome_of_a_lost_lease_is_dropped():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(e.CancelHinted(), now=at(0.5))
    driver.step(returned(1), now=at(0.5))
    assert driver.step(beaten(lost=(1,)), now=at(0.5)) == ()
    assert driver.step(e.InboxEmpty(), now=at(0.5)) == ()


def test_an_abandoned_lease_is_held_and_not_renewed():
    driver = rested(*jobs(1, 2), pool_size=2)
    beat(driver, now=at(0.5), lost=(1,))
    assert driver.step(TICK, now=at(20.5)) == (heartbeat(2),)
    assert driver.step(beaten(unlisted=(1,)), now=at(20.5)) == (recover(1, 2),)


def test_an_attempt_is_abandoned_once():
    driver = rested(*jobs(1), pool_size=1)
    beat(driver, now=at(0.5), lost=(1,))
    assert beat(driver, now=at(0.6), lost=(1,)) == ()


def test_a_renewed_lease_goes_on():
    assert beat(rested(job(1), pool_size=1), now=at(0.5), renewed=(1,)) == ()


# Cancellation


def test_a_cancel_hint_brings_the_heartbeat_forward():
    assert rested(job(1), pool_size=1).step(e.CancelHinted(), now=T0) == (heartbeat(1),)


def test_a_cancel_hint_during_a_heartbeat_brings_another():
    driver = rested(job(1), pool_size=1)
    driver.step(TICK, now=at(20))
    assert driver.step(e.CancelHinted(), now=at(20)) == ()
    assert driver.step(beaten(), now=at(20)) == (heartbeat(1),)
    assert driver.step(beaten(), now=at(20)) == (EXPIRE,)


def test_a_requested_cancellation_is_signalled_once():
    driver = rested(job(1), pool_size=1)
    assert beat(driver, now=at(0.5), cancelled=(1,)) == (cancel(1, c.CancelReason.OPERATOR),)
    assert beat(driver, now=at(0.6), cancelled=(1,)) == ()


def test_a_cancellation_of_what_has_ended_signals_nothing():
    driver = rested(job(1), pool_size=1)
    driver.step(e.CancelHinted(), now=at(0.5))
    driver.step(returned(1), now=at(0.5))
    assert driver.step(beaten(cancelled=(1,)), now=at(0.5)) == (report(1), claim(1))


def test_cancelled_after_an_operator_asked_is_the_operators():
    driver = rested(job(1), pool_size=1)
    beat(driver, now=at(0.5), cancelled=(1,))
    assert told(driver.step(gave_in(1), now=at(0.7))).cause is Cause.OPERATOR


def test_cancelled_with_no_signal_is_the_jobs_own():
    outcome = told(rested(job(1), pool_size=1).step(gave_in(1), now=at(0.5)))
    assert (outcome.state, outcome.cause) == (JobState.CANCELLED, Cause.JOB)


# Time-outs


def test_wake_at_is_no_later_than_a_time_out():
    assert rested(job(1), pool_size=1, timeouts=HURRY).wake_at == at(3)


def test_other_job_types_have_no_time_out():
    driver = rested(job(1, wire_name="shop.count"), pool_size=1, timeouts=HURRY)
    assert driver.wake_at == at(5)


def test_a_time_out_signals_the_body_and_buffers_the_failure():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    assert driver.step(TICK, now=at(3)) == (cancel(1, c.CancelReason.TIMEOUT),)
    assert driver.step(e.InboxEmpty(), now=at(3)) == (
        c.Report(outcomes=(timed_out(1, now=at(3)),)),
    )


def test_a_time_out_of_the_last_attempt_is_terminal():
    once = Retry(max_attempts=1).encode()
    driver = rested(job(1, retry=once), pool_size=1, timeouts=HURRY)
    driver.step(TICK, now=at(3))
    assert driver.step(e.InboxEmpty(), now=at(3)) == (
        c.Report(outcomes=(timed_out(1, now=at(3), last=True),)),
    )


def test_cancelled_after_a_time_out_stays_the_failure():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    driver.step(TICK, now=at(3))
    assert driver.step(gave_in(1), now=at(3.5)) == (
        c.Report(outcomes=(timed_out(1, now=at(3)),)),
        claim(1),
    )


def test_the_lease_of_a_timed_out_body_is_renewed_until_its_failure_is_applied():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    driver.step(TICK, now=at(3))
    assert driver.step(e.CancelHinted(), now=at(3)) == (
        c.Report(outcomes=(timed_out(1, now=at(3)),)),
        heartbeat(1),
    )
    driver.step(applied(1), now=at(3))
    driver.step(beaten(lost=(1,)), now=at(3))
    assert driver.step(e.CancelHinted(), now=at(4)) == (heartbeat(),)


def test_a_slot_is_replaced_five_seconds_after_the_signal():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    quiet(driver, 3, 5, 7.9)
    assert driver.wake_at == at(8)
    assert driver.step(TICK, now=at(8)) == (c.ReplaceSlot(lease_id=lease(1)), claim(1))


def test_the_late_end_of_a_replaced_body_counts_for_nothing():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    quiet(driver, 3, 8)
    assert driver.step(returned(1), now=at(8.5)) == ()


def test_a_lost_lease_of_a_timed_out_body_drops_the_failure():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    driver.step(e.CancelHinted(), now=at(2.5))
    driver.step(TICK, now=at(3))
    assert driver.step(beaten(lost=(1,)), now=at(3)) == ()
    assert driver.step(e.InboxEmpty(), now=at(3)) == ()


def test_an_abandoned_body_that_times_out_is_replaced():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    beat(driver, now=at(0.5), lost=(1,))
    assert driver.step(TICK, now=at(3)) == ()
    quiet(driver, 5)
    assert driver.step(TICK, now=at(8))[0] == c.ReplaceSlot(lease_id=lease(1))


def test_an_operators_signal_is_followed_by_the_time_outs():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    beat(driver, now=at(0.5), cancelled=(1,))
    assert driver.step(TICK, now=at(3)) == (cancel(1, c.CancelReason.TIMEOUT),)


def test_more_runaway_bodies_than_slots_halt_the_pump():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    quiet(driver, 3)
    assert driver.step(TICK, now=at(8)) == (
        c.ReplaceSlot(lease_id=lease(1)),
        claim(1),
        SETTLE,
    )
    driver.step(claimed(job(2)), now=at(8))
    driver.step(settled(), now=at(8))
    quiet(driver, 11)
    assert driver.step(TICK, now=at(16)) == (
        c.ReplaceSlot(lease_id=lease(2)),
        c.Halt(reason="more bodies ignored their time-out than there are slots"),
    )


def test_runaway_bodies_that_ended_are_forgiven():
    driver = rested(job(1), pool_size=1, timeouts=HURRY)
    quiet(driver, 3)
    driver.step(TICK, now=at(8))
    driver.step(claimed(job(2)), now=at(8))
    driver.step(settled(), now=at(8))
    driver.step(returned(1), now=at(9))
    quiet(driver, 11)
    assert driver.step(TICK, now=at(16))[0] == c.ReplaceSlot(lease_id=lease(2))
    assert not driver.over


def test_a_halt_signals_the_bodies_that_run():
    driver = rested(*jobs(1, 2, 3), pool_size=3, timeouts=HURRY)
    quiet(driver, 3)
    for command in driver.step(TICK, now=at(8)):
        if isinstance(command, c.Claim):
            hurried, patient = job(4), job(5, wire_name="shop.count")
            driver.step(claimed(hurried, patient), now=at(8))
    oblige(driver, (SETTLE,), now=at(8))
    quiet(driver, 11)
    assert driver.step(TICK, now=at(16)) == (
        c.ReplaceSlot(lease_id=lease(4)),
        cancel(5, c.CancelReason.HALT),
        c.Halt(reason="more bodies ignored their time-out than there are slots"),
    )


def test_a_fresh_driver_wakes_at_once():
    assert fresh().wake_at == T0
