"""Outcomes with a value that the database refuses: isolated, and never in the way of others."""

from collections.abc import Callable

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import OutcomeKind, Verdict
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    FAILURE,
    HOUR,
    SECOND,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    snoozed,
    succeeded,
    uid,
)
from tests.conformance.facts import Ended, Facts, facts, history, states

pytestmark = [pytest.mark.on_databases, pytest.mark.vendor("postgresql")]
Observe = Callable[[], Snapshot]
NOW, LATER = T0 + SECOND, T0 + HOUR
NUL = "before\0after"


def leased(store: Store, count: int = 1) -> tuple[LeasedJob, ...]:
    store.enqueue([new_job(number) for number in range(1, count + 1)])
    return store.claim(claim_request(), now=T0).jobs


def test_success_whose_output_is_refused_is_dead_lettered(store: Store, observe: Observe) -> None:
    (job,) = leased(store)
    (row,) = store.report([succeeded(job, output=f'"{NUL}"')], now=NOW).rows
    assert (row.verdict, row.state) == (Verdict.APPLIED, JobState.DEAD_LETTERED)
    assert facts(observe(), 1) == Facts(JobState.DEAD_LETTERED, 1, 1, T0, Cause.OUTPUT)
    assert history(observe(), 1) == (
        Ended(OutcomeKind.OUTPUT_REFUSED, JobState.DEAD_LETTERED, Cause.OUTPUT, 1, 1),
    )


def test_failure_whose_detail_is_refused_keeps_its_kind_with_cleaned_detail(
    store: Store, observe: Observe
) -> None:
    (job,) = leased(store)
    store.report([failed(job, due_at=LATER, failure=FAILURE._replace(message=NUL))], now=NOW)
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 1, 1, LATER)
    assert observe().outcomes[uid(1)][0]["failure"] == FAILURE._replace(message="before\ufffdafter")


def test_refused_log_costs_only_the_log(store: Store, observe: Observe) -> None:
    (job,) = leased(store)
    store.report([snoozed(job, due_at=LATER, log=NUL)], now=NOW)
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 1, 0, LATER)


@pytest.mark.parametrize("bad", range(7))
def test_others_of_the_batch_are_applied_as_reported(
    store: Store, observe: Observe, bad: int
) -> None:
    jobs = leased(store, 7)
    outcomes = [
        succeeded(job, output=f'"{NUL}"' if number == bad else "[1]")
        for number, job in enumerate(jobs)
    ]
    rows = store.report(outcomes, now=NOW).rows
    expected = [JobState.SUCCEEDED] * 7
    expected[bad] = JobState.DEAD_LETTERED
    assert [(row.lease_id, row.state) for row in rows] == [
        (job.lease_id, state) for job, state in zip(jobs, expected, strict=True)
    ]
    assert states(observe(), *range(1, 8)) == tuple(expected)


def test_dependents_learn_what_was_applied(store: Store, observe: Observe) -> None:
    (job,) = leased(store)
    store.enqueue([new_job(2, parents=after(1))])
    store.report([succeeded(job, output=f'"{NUL}"')], now=NOW)
    assert facts(observe(), 2) == Facts(JobState.CANCELLED, 0, 0, T0, Cause.PARENT)
