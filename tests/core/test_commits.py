import pytest

from backwave_django.core import commits
from backwave_django.core import events as e
from backwave_django.core.outcomes import Reported, Verdict
from backwave_django.core.states import JobState
from tests.core.drivers import T0, at, committed, gave_in, job, lease, raised, returned, success

BACK = e.AttemptReleased(lease_id=lease(1), started_at=T0)


def test_success_is_applied_in_the_transaction():
    ended = returned(1, now=at(2))
    decided = commits.after_body(ended, job=job(1), counts=True, now=at(3))
    assert decided == success(1, now=at(2))


def test_success_that_counts_for_nothing_is_given_back():
    assert commits.after_body(returned(1), job=job(1), counts=False, now=T0) == BACK


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("ended", [raised(1), gave_in(1), BACK], ids=lambda one: type(one).__name__)
def test_any_other_end_is_reported_as_it_is(ended, counts):
    assert commits.after_body(ended, job=job(1), counts=counts, now=T0) is ended


def test_applied_outcome_is_committed():
    row = Reported(lease(1), Verdict.APPLIED, JobState.SUCCEEDED)
    assert commits.after_fence(success(1), row) is None


@pytest.mark.parametrize("verdict", [Verdict.STALE, Verdict.BUSY])
def test_refused_outcome_is_given_back(verdict):
    assert commits.after_fence(success(1), Reported(lease(1), verdict)) == BACK


def test_outcome_that_met_a_fault_is_given_back():
    assert commits.after_fault(success(1)) == BACK


def test_commit_without_an_answer_is_what_is_recorded_of_it():
    ends = [
        commits.after_silence(lease(1), started_at=T0, recorded=recorded)
        for recorded in (True, False)
    ]
    assert ends == [committed(1), BACK]
