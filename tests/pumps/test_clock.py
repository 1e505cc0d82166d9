from datetime import UTC, datetime, timedelta

import time_machine

from backwave_django.pumps.clock import LONGEST_WAIT_SECONDS, SystemClock

FAR = datetime(2040, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def is_about(clock, instant):
    return abs(clock.now() - instant) < SECOND


def measured(instant=FAR):
    clock = SystemClock()
    mark = clock.mark()
    assert clock.observe(instant, sent_at=mark, received_at=mark)
    return clock


def test_the_first_answer_sets_the_clock():
    assert is_about(measured(), FAR)


def test_a_step_of_the_wall_clock_changes_nothing():
    clock = measured()
    with time_machine.travel(datetime(1999, 1, 1, tzinfo=UTC), tick=False):
        assert is_about(clock, FAR)


def test_an_answer_that_agrees_within_its_own_delay_leaves_the_clock_alone():
    clock = measured()
    before = clock.now()
    mark = clock.mark()
    # The answer took a minute; its clock was read at some point of that minute.
    answer = clock.now() - 30 * SECOND
    assert clock.observe(answer, sent_at=mark - 60, received_at=mark)
    assert clock.now() - before < SECOND


def test_small_differences_are_followed_at_once():
    clock = measured()
    mark = clock.mark()
    assert clock.observe(clock.now() + 0.5 * SECOND, sent_at=mark, received_at=mark)
    assert clock.now() - FAR > 0.4 * SECOND


def test_a_large_difference_is_measured_again_before_it_is_followed():
    clock = measured()
    mark = clock.mark()
    later = FAR + timedelta(hours=8)
    assert not clock.observe(later, sent_at=mark, received_at=mark)
    assert is_about(clock, FAR)
    clock.adopt(later, sent_at=mark, received_at=mark)
    assert is_about(clock, later)
    earlier = FAR - timedelta(hours=1)
    assert not clock.observe(earlier, sent_at=mark, received_at=mark)
    clock.adopt(earlier, sent_at=mark, received_at=mark)
    assert is_about(clock, earlier)


def test_waits_are_never_negative_and_never_long():
    clock = measured()
    assert clock.seconds_until(clock.now() - timedelta(days=1)) == 0
    assert 9 < clock.seconds_until(clock.now() + 10 * SECOND) <= 10
    assert clock.seconds_until(clock.now() + timedelta(days=999)) == LONGEST_WAIT_SECONDS
