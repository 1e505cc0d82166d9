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
    busy,
    claim,
    claimed,
    execute,
    fault,
    fresh,
    heartbeat,
    held_up,
    job,
    jobs,
    recovered,
    report,
    rested,
    returned,
)


def test_a_pump_renews_before_it_claims():
    driver = fresh(pool_size=3)
    assert driver.step(TICK, now=T0) == (heartbeat(),)
    assert driver.step(beaten(), now=T0) == (claim(3), SETTLE)


def test_a_claim_asks_for_the_whole_pool():
    assert rested(pool_size=3).step(TICK, now=at(1)) == (claim(3),)


def test_a_claim_asks_for_no_more_than_its_batch():
    assert rested(pool_size=3, max_claim_batch=2).step(TICK, now=at(1)) == (claim(2),)


def test_running_bodies_hold_their_slots():
    assert rested(*jobs(1, 2), pool_size=3).step(TICK, now=at(1)) == (claim(1),)


def test_a_full_pool_claims_nothing():
    driver = rested(*jobs(1, 2), pool_size=2)
    assert driver.step(TICK, now=at(1)) == ()
    assert driver.wake_at == at(5)


def test_every_claimed_job_is_executed():
    driver = rested(pool_size=3)
    driver.step(TICK, now=at(1))
    assert driver.step(claimed(*jobs(1, 2)), now=at(1)) == (execute(1, 2),)


def test_slots_of_outcomes_in_the_report_ahead_count_as_free():
    driver = rested(*jobs(1, 2, 3), pool_size=3)
    assert driver.step(returned(1), now=T0) == ()
    assert driver.step(returned(2), now=T0) == ()
    assert driver.step(IDLE, now=T0) == (report(1, 2), claim(2))


def test_buffered_outcomes_that_do_not_leave_yet_hold_their_slots():
    driver = rested(*jobs(1, 2, 3), pool_size=4, max_outcome_batch=2)
    driver.step(TICK, now=at(1))
    for number in (1, 2, 3):  # a claim is in flight: nothing can leave
        driver.step(returned(number), now=at(1))
    assert driver.step(claimed(), now=at(1)) == (report(1, 2), claim(3))


def test_outcomes_of_a_faulted_report_hold_their_slots():
    driver = rested(*jobs(1, 2), pool_size=3)
    driver.step(returned(1), now=T0)
    asked = driver.step(IDLE, now=T0)
    assert asked == (report(1), claim(2))
    assert driver.step(fault(*asked), now=T0) == ()
    assert driver.step(TICK, now=at(1)) == (heartbeat(2, 1),)
    driver.step(beaten(), now=at(1))
    assert driver.step(recovered(), now=at(1)) == (report(1), claim(2))


def test_busy_outcomes_hold_no_slots():
    driver = rested(*jobs(1, 2), pool_size=2)
    driver.step(returned(1), now=T0)
    assert driver.step(IDLE, now=T0) == (report(1), claim(1))
    driver.step(busy(1), now=T0)
    driver.step(claimed(), now=T0)
    assert driver.step(TICK, now=at(1)) == (report(1), claim(1))


def test_a_report_of_busy_outcomes_alone_asks_for_no_claim():
    driver = held_up(*jobs(1, 2), pool_size=2)
    driver.step(claimed(job(3)), now=T0)
    assert driver.step(TICK, now=at(1)) == (report(1),)


def test_more_busy_outcomes_than_slots_hold_slots():
    driver = rested(*jobs(1, 2), pool_size=2, poll_interval=at(100) - T0)
    for first in (1, 3):
        for number in (first, first + 1):
            driver.step(returned(number), now=T0)
        driver.step(IDLE, now=T0)
        driver.step(busy(first, first + 1), now=T0)
        driver.step(claimed(*jobs(first + 2, first + 3)), now=T0)
    driver.step(returned(5), now=T0)
    assert driver.step(IDLE, now=T0) == (report(5),)


def test_a_full_answer_is_followed_by_a_claim_at_once():
    driver = rested(pool_size=4, max_claim_batch=2)
    assert driver.step(TICK, now=at(1)) == (claim(2),)
    assert driver.step(claimed(*jobs(1, 2), short=False), now=at(1)) == (execute(1, 2), claim(2))


def test_a_claim_carries_the_lanes_that_hints_spoke_of():
    driver = rested(pool_size=2)
    hinted = e.DueHinted(queue="default", priority=5)
    assert driver.step(hinted, now=T0) == (claim(2, hinted=(("default", 5),)),)


def test_a_hint_about_a_queue_of_others_is_ignored():
    driver = rested(pool_size=2)
    assert driver.step(e.DueHinted(queue="mail", priority=5), now=T0) == ()


def test_a_claim_carries_the_rotation_over_keys_on():
    driver = rested(pool_size=2)
    driver.step(TICK, now=at(1))
    driver.step(claimed(cursor="customer:9"), now=at(1))
    assert driver.step(TICK, now=at(2)) == (claim(2, key_cursor="customer:9"),)


def test_weighted_groups_claim_once_per_queue_and_fall_through():
    driver = rested(queues=("a", "b"), weights={"a": 3, "b": 1}, pool_size=4)
    assert driver.step(TICK, now=at(1)) == (claim(3, "a", "b"), claim(1, "b", "a"))


def test_weighted_claims_in_flight_reserve_their_slots():
    driver = rested(queues=("a", "b"), weights={"a": 1, "b": 1}, pool_size=4)
    assert driver.step(TICK, now=at(1)) == (claim(2, "a", "b"), claim(2, "b", "a"))
    assert driver.step(claimed(*jobs(1, 2)), now=at(1)) == (execute(1, 2),)
    driver.step(returned(1), now=at(1))
    assert driver.step(claimed(*jobs(3, 4), short=False), now=at(1)) == (execute(3, 4),)


def test_an_applied_outcome_asks_for_a_poll_at_once():
    driver = rested(*jobs(1), pool_size=2)
    driver.step(TICK, now=at(1))
    driver.step(claimed(), now=at(1))
    driver.step(returned(1), now=at(20))
    # The heartbeat takes the outcome along, and no claim.
    assert driver.step(applied(1), now=at(20)) == ()
    assert driver.step(beaten(), now=at(20)) == (claim(2), EXPIRE)
