from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.outcomes import OutcomeKind
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
    claimed,
    fault,
    gave_in,
    heartbeat,
    job,
    jobs,
    lease,
    oblige,
    quiet,
    raised,
    release,
    report,
    rested,
    returned,
    settled,
    told,
)

STOPPING = c.SignalStopping()
DRAINED = c.Exit(abandoned=0, unrecorded=0)


def draining(*running, **dials):
    """A driver that was told to drain at T0; its time-out is over at 30 s."""
    driver = rested(*running, **dials)
    driver.step(DRAIN, now=T0)
    return driver


def test_an_idle_pump_exits_at_once():
    assert rested(pool_size=2).step(DRAIN, now=T0) == (STOPPING, DRAINED)


def test_running_bodies_see_that_the_pump_drains_and_go_on():
    driver = rested(*jobs(1, 2), pool_size=3)
    assert driver.step(DRAIN, now=T0) == (STOPPING,)
    assert driver.draining
    assert driver.step(TICK, now=at(1)) == ()


def test_a_second_request_changes_nothing():
    assert draining(job(1)).step(DRAIN, now=at(1)) == ()


def test_a_drain_asked_for_through_the_database_is_the_same():
    driver = rested(job(1), pool_size=1)
    driver.step(TICK, now=at(20))
    assert driver.step(beaten(drain=True), now=at(20))[0] == STOPPING


def test_the_last_outcome_is_recorded_before_the_exit():
    driver = draining(job(1), pool_size=1)
    assert driver.step(returned(1), now=at(1)) == (report(1),)
    assert driver.step(applied(1), now=at(1)) == (DRAINED,)


def test_no_exit_while_a_round_trip_is_in_flight():
    driver = rested(pool_size=2)
    driver.step(TICK, now=at(1))
    assert driver.step(DRAIN, now=at(1)) == (STOPPING,)
    assert driver.step(claimed(), now=at(1)) == (DRAINED,)


def test_jobs_of_an_overtaken_claim_go_back_unspent():
    driver = rested(pool_size=2)
    driver.step(TICK, now=at(1))
    driver.step(DRAIN, now=at(1))
    back = release(1, now=at(2), started_at=at(2))
    assert driver.step(claimed(job(1)), now=at(2)) == (c.Report(outcomes=(back,)),)
    assert driver.step(applied(1), now=at(2)) == (DRAINED,)


def test_leases_are_renewed_while_bodies_finish():
    driver = draining(job(1), pool_size=1)
    quiet(driver, 5, 10, 15)
    assert driver.step(TICK, now=at(20)) == (heartbeat(1),)


def test_bodies_are_asked_to_stop_two_seconds_before_the_time_out():
    driver = draining(*jobs(1, 2), pool_size=2)
    quiet(driver, 5, 10, 15, 20, 25)
    assert driver.wake_at == at(28)
    assert driver.step(TICK, now=at(28)) == (
        cancel(1, c.CancelReason.DRAIN),
        cancel(2, c.CancelReason.DRAIN),
    )


def test_what_is_left_at_the_time_out_is_released_in_one_transaction():
    driver = draining(*jobs(1, 2), pool_size=2)
    quiet(driver, 20, 28)
    assert driver.step(TICK, now=at(30)) == (
        c.Release(outcomes=(release(1, now=at(30)), release(2, now=at(30)))),
    )
    assert driver.step(applied(1, 2), now=at(30)) == (c.Exit(abandoned=2, unrecorded=0),)


def test_the_release_takes_buffered_and_busy_outcomes_along():
    driver = draining(*jobs(1, 2, 3), pool_size=3)
    quiet(driver, 20, 28)
    assert driver.step(returned(1), now=at(29)) == (report(1),)
    driver.step(busy(1), now=at(29.5))
    outcomes = (*report(2).outcomes, release(3, now=at(30)), *report(1).outcomes)
    assert driver.step(returned(2), now=at(30)) == (c.Release(outcomes=outcomes),)


def test_a_release_waits_for_the_round_trip_in_flight():
    driver = draining(job(1), pool_size=1)
    quiet(driver, 20, 28)
    assert driver.step(e.CancelHinted(), now=at(29)) == (heartbeat(1),)
    assert driver.step(TICK, now=at(30)) == ()
    assert driver.step(beaten(), now=at(30.5)) == (c.Release(outcomes=(release(1, now=at(30.5)),)),)


def test_a_drain_that_meets_a_dead_store_ends_a_second_late():
    driver = draining(*jobs(1, 2), pool_size=2)
    quiet(driver, 20, 28)
    asked = driver.step(TICK, now=at(30))
    assert driver.step(fault(*asked), now=at(30)) == ()
    assert driver.wake_at == at(31)
    assert driver.step(TICK, now=at(31)) == (c.Exit(abandoned=2, unrecorded=2),)


def test_a_release_is_tried_again_as_soon_as_the_store_may_be_asked():
    driver = draining(job(1), pool_size=1, poll_interval=at(0.5) - T0)
    quiet(driver, 20, 28)
    asked = driver.step(TICK, now=at(30))
    driver.step(fault(*asked), now=at(30))
    assert driver.wake_at == at(30.5)
    assert driver.step(TICK, now=at(30.5)) == asked


def test_rows_that_stay_busy_do_not_keep_the_pump():
    driver = draining(job(1), pool_size=1)
    quiet(driver, 20, 28)
    driver.step(TICK, now=at(30))
    assert driver.step(busy(1), now=at(30)) == ()
    assert driver.step(TICK, now=driver.wake_at) == (c.Exit(abandoned=1, unrecorded=1),)


def test_cancelled_during_a_drain_is_a_release():
    driver = draining(job(1), pool_size=1)
    assert driver.step(gave_in(1), now=at(1)) == (c.Report(outcomes=(release(1, now=at(1)),)),)


def test_cancelled_after_an_operator_asked_stays_cancelled_in_a_drain():
    driver = rested(job(1), pool_size=1)
    driver.step(TICK, now=at(20))
    oblige(driver, driver.step(beaten(cancelled=(1,)), now=at(20)), now=at(20))
    driver.step(DRAIN, now=at(20))
    quiet(driver, 40, 46)
    assert driver.step(TICK, now=at(48)) == ()  # no second signal
    assert told(driver.step(gave_in(1), now=at(48))).kind is OutcomeKind.CANCELLED


def test_a_failure_during_a_drain_is_a_failure():
    driver = draining(job(1), pool_size=1)
    assert told(driver.step(raised(1), now=at(1))).kind is OutcomeKind.FAILED


def test_a_worker_that_saw_the_drain_first_gives_its_job_back():
    driver = draining(job(1), pool_size=1)
    ended = e.AttemptReleased(lease_id=lease(1), started_at=T0)
    assert driver.step(ended, now=at(1)) == (c.Report(outcomes=(release(1, now=at(1)),)),)


def test_the_late_end_of_a_released_body_counts_for_nothing():
    driver = draining(*jobs(1), pool_size=1)
    quiet(driver, 20, 28)
    asked = driver.step(TICK, now=at(30))
    assert asked == (c.Release(outcomes=(release(1, now=at(30)),)),)
    assert driver.step(returned(1), now=at(30)) == ()
    assert driver.step(applied(1), now=at(30)) == (DRAINED,)


def test_an_abandoned_body_does_not_hold_up_the_exit():
    driver = rested(*jobs(1), pool_size=1)
    driver.step(TICK, now=at(20))
    driver.step(beaten(lost=(1,)), now=at(20))
    driver.step(e.Expired(answer=settled().answer), now=at(20))
    driver.step(settled(), now=at(20))
    assert driver.step(DRAIN, now=at(20)) == (STOPPING, c.Exit(abandoned=1, unrecorded=0))


def test_buffered_outcomes_flush_after_an_outage_in_a_drain():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    asked = driver.step(IDLE, now=T0)
    driver.step(fault(*asked), now=T0)
    assert driver.step(DRAIN, now=T0) == (STOPPING,)
    assert driver.step(TICK, now=at(1)) == (heartbeat(2, 1),)
    driver.step(beaten(), now=at(1))
    assert driver.step(e.Recovered(answer=settled().answer), now=at(1)) == (report(1),)


def test_drains_shorter_than_the_notice_ask_at_once():
    driver = rested(job(1), pool_size=1, shutdown_timeout=at(1) - T0)
    assert driver.step(DRAIN, now=T0) == (STOPPING, cancel(1, c.CancelReason.DRAIN))
