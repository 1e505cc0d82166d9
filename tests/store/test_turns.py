"""The merged turn, floors, and what a claim may pass over for a moment."""

from collections.abc import Mapping
from typing import Any

import pytest

from backwave_django.core.contract import ClaimAnswer
from backwave_django.core.errors import StoreUnavailable, TurnFailed
from backwave_django.core.outcomes import Verdict
from backwave_django.core.states import JobState
from backwave_django.models import Job, Lease, Outcome, SettleQueue
from backwave_django.store import PumpStore, default_store
from backwave_django.store import claims as claims_module
from backwave_django.store.names import Statement
from tests.builders import (
    MINUTE,
    SECOND,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    succeeded,
    uid,
)


def numbers(answer: ClaimAnswer) -> list[int]:
    return [job.job_id.int for job in answer.jobs]


def test_turn_reports_and_claims(store: PumpStore) -> None:
    store.enqueue([new_job(number) for number in range(1, 8)])
    claimed = store.claim(claim_request(limit=3), now=T0)
    seen = []
    while claimed.jobs:
        seen += numbers(claimed)
        outcomes = [succeeded(job, output="1") for job in claimed.jobs]
        reported, claimed = store.turn(outcomes, claim_request(limit=3), now=T0)
        assert {row.verdict for row in reported.rows} == {Verdict.APPLIED}
    assert seen == list(range(1, 8))
    assert (claimed.short, claimed.next_due) == (True, None)
    assert (Job.objects.filter(state="succeeded").count(), Lease.objects.count()) == (7, 0)
    assert Outcome.objects.count() == 7


def test_turn_settles_dependents(store: PumpStore) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1)), *map(new_job, range(3, 9))])
    first = store.claim(claim_request(limit=2), now=T0)
    store.turn([succeeded(job) for job in first.jobs], claim_request(limit=2), now=T0)
    assert Job.objects.get(pk=uid(2)).pending_parents == 0
    # The row that the enqueue made is the sweep's; none is left of the turn's own.
    assert SettleQueue.objects.count() == 1


def test_turn_cascades_a_failure(store: PumpStore) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1)), new_job(3, parents=after(2))])
    store.enqueue([new_job(number) for number in range(4, 9)])
    first = store.claim(claim_request(limit=2), now=T0)
    store.turn([failed(job) for job in first.jobs], claim_request(limit=2), now=T0)
    states = dict(Job.objects.values_list("id", "state"))
    assert [states[uid(n)] for n in (1, 2, 3)] == ["dead_lettered", "cancelled", "cancelled"]


def test_turn_isolates_a_refused_row(store: PumpStore, database_vendor: str) -> None:
    refused = '"\ud800"' if database_vendor == "sqlite" else '"\0"'
    store.enqueue([new_job(number) for number in range(1, 9)])
    first = store.claim(claim_request(limit=4), now=T0)
    bad, *good = first.jobs
    outcomes = [succeeded(bad, output=refused), *(succeeded(job) for job in good)]
    reported, claimed = store.turn(outcomes, claim_request(limit=4), now=T0)
    assert [row.state for row in reported.rows] == [
        JobState.DEAD_LETTERED,
        *[JobState.SUCCEEDED] * 3,
    ]
    assert numbers(claimed) == [5, 6, 7, 8]


def test_claim_that_fails_after_the_report_says_so(
    store: PumpStore, monkeypatch: pytest.MonkeyPatch, database_vendor: str
) -> None:
    def broken(*args: object, **kwargs: object) -> object:
        raise _transient(database_vendor)

    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    monkeypatch.setattr(claims_module, "survey", broken)
    if database_vendor == "sqlite":
        # One transaction: neither was done.
        with pytest.raises(StoreUnavailable):
            store.turn([succeeded(job)], claim_request(), now=T0)
        assert Job.objects.get().state == "leased"
    else:
        with pytest.raises(TurnFailed) as caught:
            store.turn([succeeded(job)], claim_request(), now=T0)
        assert caught.value.answer.rows[0].verdict is Verdict.APPLIED
        assert isinstance(caught.value.fault, StoreUnavailable)


def _transient(vendor: str) -> Exception:
    if vendor == "sqlite":
        import sqlite3  # noqa: PLC0415 - each database its own fault

        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        return error
    import psycopg  # noqa: PLC0415 - each database its own fault

    return psycopg.OperationalError("the connection is lost")


def test_claim_that_is_cut_short_answers_what_it_leased(
    store: PumpStore, monkeypatch: pytest.MonkeyPatch, database_vendor: str
) -> None:
    store.enqueue([new_job(number) for number in range(1, 5)])
    store.claim(claim_request(limit=1), now=T0)
    calls = []

    def broken(*args: object, **kwargs: object) -> object:
        calls.append(1)
        raise _transient(database_vendor)

    if database_vendor == "sqlite":
        return  # a survey comes first there: nothing is leased before it
    monkeypatch.setattr(claims_module, "survey", broken)
    answer = store.claim(claim_request(limit=9), now=T0)
    assert (numbers(answer), answer.short, answer.next_due) == ([2, 3, 4], False, T0)


def test_job_below_the_floor_is_found_within_a_second(store: PumpStore) -> None:
    store.enqueue([new_job(number, due_at=T0 + SECOND) for number in range(10, 40)])
    store.claim(claim_request(limit=5), now=T0 + MINUTE)
    store.claim(claim_request(limit=5), now=T0 + MINUTE)
    store.enqueue([new_job(1, due_at=T0)])
    answer = store.claim(claim_request(limit=5), now=T0 + MINUTE + SECOND)
    assert numbers(answer)[0] == 1


def test_short_claim_has_looked_below_the_floor(store: PumpStore) -> None:
    store.enqueue([new_job(number, due_at=T0 + SECOND) for number in range(10, 20)])
    store.claim(claim_request(limit=5), now=T0 + MINUTE)
    store.enqueue([new_job(1, due_at=T0)])
    answer = store.claim(claim_request(limit=9), now=T0 + MINUTE)
    assert sorted(numbers(answer)) == [1, 15, 16, 17, 18, 19]
    assert answer.short


def test_hinted_lane_is_claimed_though_no_survey_saw_it(store: PumpStore) -> None:
    store.enqueue([new_job(number) for number in range(10, 40)])
    store.claim(claim_request(limit=5), now=T0)
    default_store().enqueue([new_job(1, priority=50)])
    answer = store.claim(claim_request(limit=5, hinted=(("default", 50),)), now=T0)
    assert numbers(answer)[0] == 1


def test_lane_that_runs_dry_is_followed_by_the_next_at_once(store: PumpStore) -> None:
    store.enqueue([new_job(number, priority=9) for number in range(10, 23)])
    store.enqueue([new_job(number) for number in range(30, 50)])
    found = []
    for moment in range(7):
        answer = store.claim(claim_request(limit=5), now=T0 + moment * SECOND / 10)
        found.append(numbers(answer))
        assert answer.short == (moment == 6)
    assert [len(each) for each in found] == [5, 5, 5, 5, 5, 5, 3]
    assert [number for each in found for number in each] == [*range(10, 23), *range(30, 50)]


@pytest.mark.vendor("postgresql")
def test_hint_wakes_an_idle_pump_for_one_statement(
    store: PumpStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.claim(claim_request(), now=T0).short
    default_store().enqueue([new_job(1, priority=50), new_job(2, priority=9)])
    asked: list[Statement] = []
    fetch = store.executor.fetch

    def watched(statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        asked.append(statement)
        return fetch(statement, parameters)

    monkeypatch.setattr(store.executor, "fetch", watched)
    answer = store.claim(claim_request(hinted=(("default", 50),)), now=T0 + MINUTE)
    assert (numbers(answer), len(asked), answer.short) == ([1], 1, False)
    # The next one looks everywhere, whatever it was told meanwhile.
    answer = store.claim(claim_request(hinted=(("default", 50),)), now=T0 + MINUTE)
    assert numbers(answer) == [2]


def test_claims_of_every_size_share_one_plan(store: PumpStore, database_vendor: str) -> None:
    store.enqueue([new_job(number) for number in range(1, 101)])
    assert [
        len(store.claim(claim_request(limit=size), now=T0 + number * SECOND / 100).jobs)
        for number, size in enumerate((1, 37, 59), start=1)
    ] == [1, 37, 59]
    if database_vendor == "postgresql":
        prepared = Statement("SELECT statement FROM pg_prepared_statements")
        texts = [row[0] for row in store.executor.fetch(prepared, {})]
        assert sum("pick AS MATERIALIZED" in text and "SKIP LOCKED" in text for text in texts) == 1
