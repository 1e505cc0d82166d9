import pytest

from backwave_django.core.jobs import LeasedJob
from backwave_django.core.outcomes import BODILESS, SPENDING, Outcome, OutcomeKind
from backwave_django.core.states import JobState
from tests.builders import T0, new_job, succeeded, uid

UNSPENT = {"succeeded", "cancelled", "snoozed", "released", "unroutable", "undecodable", "expired"}


@pytest.mark.parametrize("kind", OutcomeKind)
def test_failures_spend_an_attempt_and_nothing_else_does(kind):
    outcome = Outcome(uid(1), uid(2), kind, JobState.SCHEDULED, T0, T0)
    assert outcome.spends is (kind not in UNSPENT)


def test_f157_texts_of_jobs_and_outcomes_hold_no_payload_and_no_output():
    new = new_job(1, payload='"hunter2"')
    leased = LeasedJob(
        *(uid(1), uid(2), "shop.pay", "default", 1, 0, '"hunter2"', 1, "{}", T0),
        *(None, None, None, None, None, None, None, "8;10;3;3600;0", T0),
    )
    outcome = succeeded(leased, output='"hunter2"', log="hunter2")
    for thing in (new, leased, outcome, (leased, [outcome])):
        assert "hunter2" not in repr(thing)
        assert "hunter2" not in f"{thing}"
    assert "shop.pay" in repr(leased)


def test_attempt_without_a_body_spends_nothing():
    assert SPENDING.isdisjoint(BODILESS)
