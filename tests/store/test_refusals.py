"""Values that the database refuses: isolated row by row, and nothing else is lost."""

import json

import pytest
from django.db import transaction

from backwave_django.core.outcomes import Failure, Verdict
from backwave_django.core.states import JobState
from backwave_django.models import Job, Lease, Outcome
from backwave_django.store import PumpStore, default_store
from tests.builders import MINUTE, T0, claim_request, failed, new_job, succeeded

HALF = "\ud800"


@pytest.mark.parametrize("places", [(0,), (3,), (0, 7), tuple(range(8))])
def test_each_refused_output_dead_letters_its_own_job(
    store: PumpStore, places: tuple[int, ...]
) -> None:
    store.enqueue([new_job(number) for number in range(1, 9)])
    jobs = store.claim(claim_request(), now=T0).jobs
    outcomes = [
        succeeded(job, output=f'"{HALF}"' if place in places else "1")
        for place, job in enumerate(jobs)
    ]
    rows = store.report(outcomes, now=T0).rows
    assert [row.verdict for row in rows] == [Verdict.APPLIED] * 8
    assert [row.state for row in rows] == [
        JobState.DEAD_LETTERED if place in places else JobState.SUCCEEDED for place in range(8)
    ]
    assert Lease.objects.count() == 0
    refused = Job.objects.filter(state="dead_lettered").values_list("cause", "spent", "output")
    assert set(refused) == {("output", 1, None)}


def test_refused_detail_of_a_failure_is_cleaned(store: PumpStore) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    spoilt = failed(
        job,
        due_at=T0 + MINUTE,
        failure=Failure("shop.Odd", f"half {HALF} of it", f"line{HALF}", "f00d"),
        tags=json.dumps({"a": 1}),
        log=HALF,
    )
    (row,) = store.report([spoilt], now=T0).rows
    assert row.state is JobState.SCHEDULED
    line = Outcome.objects.get()
    assert (line.kind, line.error_class, line.message, line.traceback, line.log) == (
        "failed",
        "shop.Odd",
        "half ? of it",
        "line?",
        None,
    )


@pytest.mark.vendor("postgresql")
def test_tags_with_an_escaped_nul_are_refused_alone(store: PumpStore) -> None:
    store.enqueue([new_job(1), new_job(2)])
    one, two = store.claim(claim_request(), now=T0).jobs
    outcomes = [succeeded(one, tags='{"a": "\\u0000"}'), succeeded(two, tags='{"b": 1}')]
    rows = store.report(outcomes, now=T0).rows
    assert [row.state for row in rows] == [JobState.DEAD_LETTERED, JobState.SUCCEEDED]
    assert Outcome.objects.get(kind="output_refused").message


@pytest.mark.django_db(transaction=True)
def test_isolation_works_inside_a_transaction_of_the_caller() -> None:
    store = default_store()
    store.enqueue([new_job(1), new_job(2)])
    one, two = store.claim(claim_request(), now=T0).jobs
    with transaction.atomic():
        rows = store.report([succeeded(one, output=HALF), succeeded(two)], now=T0).rows
    assert [row.state for row in rows] == [JobState.DEAD_LETTERED, JobState.SUCCEEDED]
    assert Job.objects.filter(state="succeeded").count() == 1


@pytest.mark.django_db(transaction=True)
def test_turn_inside_a_transaction_of_the_caller_isolates_too() -> None:
    store = default_store()
    store.enqueue([new_job(number) for number in range(1, 7)])
    jobs = store.claim(claim_request(limit=2), now=T0).jobs
    outcomes = [succeeded(jobs[0], output=HALF), succeeded(jobs[1])]
    with transaction.atomic():
        reported, claimed = store.turn(outcomes, claim_request(limit=2), now=T0)
    assert [row.state for row in reported.rows] == [JobState.DEAD_LETTERED, JobState.SUCCEEDED]
    assert len(claimed.jobs) == 2
    assert Job.objects.filter(state="leased").count() == 2
