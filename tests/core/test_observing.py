"""Who observes an end, and which outcomes may lead to one that is observed."""

import pytest

from backwave_django.core.observing import NOBODY, Ended, may_concern
from backwave_django.core.outcomes import Outcome, OutcomeKind, Unroutable
from backwave_django.core.states import Cause, JobState
from tests.builders import T0, uid

SUCCEEDED, CANCELLED = JobState.SUCCEEDED, JobState.CANCELLED
DEAD, QUARANTINED = JobState.DEAD_LETTERED, JobState.QUARANTINED


def outcome(kind, state, **more):
    return Outcome(uid(1), uid(2), kind, state, T0, T0, **more)


RETURNED = outcome(OutcomeKind.SUCCEEDED, SUCCEEDED)
FAILED = outcome(OutcomeKind.FAILED, JobState.SCHEDULED)
HANDED_BACK = outcome(
    OutcomeKind.UNROUTABLE, JobState.SCHEDULED, unroutable=Unroutable.UNKNOWN_TYPE
)


@pytest.mark.parametrize(
    ("given", "states", "concerns"),
    [
        (RETURNED, {SUCCEEDED}, True),
        (RETURNED, {CANCELLED, DEAD}, False),
        (outcome(OutcomeKind.GAVE_UP, DEAD), {DEAD}, True),
        (FAILED, {DEAD, QUARANTINED}, False),
        (FAILED, {CANCELLED}, True),  # it may have been asked to stop
        (HANDED_BACK, {QUARANTINED}, True),  # its grace may be over
        (HANDED_BACK, {DEAD}, False),
        (FAILED, set(), False),
    ],
)
def test_an_outcome_concerns_those_who_observe_what_may_become_of_it(given, states, concerns):
    assert may_concern(given, frozenset(states)) is concerns


def test_nobody_observes_nothing():
    ended = Ended(uid(2), "shop.pack", "default", DEAD, Cause.ATTEMPTS, 3, 3, T0)
    assert (NOBODY.states, NOBODY.jobs(ended)) == (frozenset(), ())


def test_nobody_is_told_of_a_job_that_goes_on():
    ended = Ended(uid(2), "shop.pack", "default", JobState.LEASED, Cause.ATTEMPTS, 3, 3, T0)
    with pytest.raises(AssertionError, match="leased is no end"):
        NOBODY.jobs(ended)
