import pytest

from backwave_django.core.outcomes import BODILESS, SPENDING, Outcome, OutcomeKind
from backwave_django.core.states import JobState
from tests.builders import T0, uid

UNSPENT = {"succeeded", "cancelled", "snoozed", "released", "unroutable", "undecodable", "expired"}


@pytest.mark.parametrize("kind", OutcomeKind)
def test_failures_spend_an_attempt_and_nothing_else_does(kind):
    outcome = Outcome(uid(1), uid(2), kind, JobState.SCHEDULED, T0, T0)
    assert outcome.spends is (kind not in UNSPENT)


def test_attempt_without_a_body_spends_nothing():
    assert SPENDING.isdisjoint(BODILESS)
