from datetime import datetime, timedelta

from backwave_django.core.contract import ClaimAnswer
from backwave_django.core.pacing import Pacing
from tests.core.drivers import SECOND, T0, at, jobs

MILLISECOND = timedelta(milliseconds=1)


def pacing(*, ceiling: timedelta | None = 8 * SECOND) -> Pacing:
    return Pacing(interval=SECOND, ceiling=ceiling, jitter=MILLISECOND, now=T0)


def answer(found: int = 0, *, short: bool = True, next_due: datetime | None = None) -> ClaimAnswer:
    return ClaimAnswer(jobs=tuple(jobs(*range(found))), short=short, next_due=next_due, clock=T0)


def poll(
    pace: Pacing,
    *,
    now: datetime,
    found: int = 0,
    short: bool = True,
    next_due: datetime | None = None,
) -> float:
    """Make a poll of one claim for two jobs; return the seconds until the next."""
    pace.issued()
    pace.claimed(answer(found, short=short, next_due=next_due), limit=2, now=now)
    return (pace.poll_at - now).total_seconds()


def test_the_first_poll_is_due_at_once():
    assert pacing().poll_at == T0


def test_a_ceiling_below_the_interval_is_the_interval():
    pace = pacing(ceiling=SECOND / 2)
    assert [poll(pace, now=T0) for _ in range(3)] == [1, 1, 1]


def test_empty_polls_double_the_delay():
    pace = pacing()
    assert [poll(pace, now=T0) for _ in range(5)] == [1, 2, 4, 8, 8]


def test_a_full_claim_is_followed_at_once_and_restores_the_delay():
    pace = pacing()
    poll(pace, now=T0)
    assert poll(pace, now=T0, found=2, short=False) == 0
    assert poll(pace, now=T0) == 1


def test_a_claim_that_was_answered_early_is_followed_once_its_jobs_have_begun():
    pace = pacing()
    poll(pace, now=T0)
    assert poll(pace, now=T0, found=1, short=False) == 0.001
    pace.ask(now=T0)
    assert pace.poll_at == T0


def test_a_claim_that_found_nothing_and_did_not_look_everywhere_is_followed_at_once():
    assert poll(pacing(), now=T0, short=False) == 0


def test_the_next_due_time_cuts_a_delay_and_does_not_restore_it():
    pace = pacing()
    assert poll(pace, now=T0) == 1
    assert poll(pace, now=T0, next_due=at(0.5)) == 0.5
    assert poll(pace, now=T0) == 4


def test_a_next_due_time_after_the_delay_does_not_stretch_it():
    assert poll(pacing(), now=T0, next_due=at(100)) == 1


def test_asking_brings_the_poll_forward_only():
    pace = pacing()
    pace.ask(now=at(5))
    assert pace.poll_at == T0


def test_what_is_asked_during_a_poll_wants_another():
    pace = pacing()
    pace.issued()
    pace.ask(now=at(1))
    pace.claimed(answer(), limit=2, now=at(2))
    assert pace.poll_at == at(2)


def test_an_echo_comes_after_the_window_and_the_jitter():
    pace = pacing()
    pace.hinted(now=T0)
    assert pace.echo_at == T0 + 11 * MILLISECOND


def test_an_echo_asks_for_a_poll_when_there_is_room():
    pace = pacing()
    poll(pace, now=T0)
    pace.hinted(now=T0)
    poll(pace, now=T0)
    pace.echo(now=at(0.02), free=True)
    assert (pace.poll_at, pace.echo_at) == (at(0.02), None)


def test_an_echo_in_a_full_pool_is_dropped():
    pace = pacing()
    pace.hinted(now=T0)
    poll(pace, now=T0)
    pace.echo(now=at(0.02), free=False)
    assert (pace.poll_at, pace.echo_at) == (at(1), None)


def test_an_echo_that_is_not_due_stays():
    pace = pacing()
    pace.hinted(now=T0)
    pace.echo(now=T0, free=True)
    assert pace.echo_at is not None


def test_a_clock_set_back_moves_both_instants():
    pace = pacing()
    pace.hinted(now=T0)
    pace.shift(-SECOND)
    assert (pace.poll_at, pace.echo_at) == (at(-1), at(-1) + 11 * MILLISECOND)


def test_without_an_echo_only_the_poll_moves():
    pace = pacing()
    pace.shift(-SECOND)
    assert (pace.poll_at, pace.echo_at) == (at(-1), None)
