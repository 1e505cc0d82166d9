from datetime import timedelta

from backwave_django.core.retention import Retention
from backwave_django.core.states import TERMINAL, JobState
from tests.builders import DAY, HOUR, T0


def test_horizon_of_each_terminal_state_lies_its_age_back():
    assert Retention().horizons(now=T0) == (
        (JobState.SUCCEEDED, T0 - 7 * DAY),
        (JobState.CANCELLED, T0 - 7 * DAY),
        (JobState.EXPIRED, T0 - 7 * DAY),
        (JobState.DEAD_LETTERED, T0 - 30 * DAY),
        (JobState.QUARANTINED, T0 - 30 * DAY),
    )


def test_every_terminal_state_has_an_age():
    assert {state for state, _ in Retention().horizons(now=T0)} == TERMINAL


def test_state_that_is_kept_for_ever_has_no_horizon():
    retention = Retention(
        succeeded=None, cancelled=HOUR, expired=None, dead_lettered=None, quarantined=timedelta(0)
    )
    assert retention.horizons(now=T0) == (
        (JobState.CANCELLED, T0 - HOUR),
        (JobState.QUARANTINED, T0),
    )
