"""Outcomes that are applied in the transaction of an atomic body, and how to find them again."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import timedelta

import pytest

from backwave_django.core.contract import History, Store, StoreSettings
from backwave_django.core.errors import StoreUnavailable
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.outcomes import Outcome, Reported, Verdict
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    HOUR,
    SECOND,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    succeeded,
    uid,
)
from tests.conformance.conftest import MakeSubject
from tests.conformance.facts import Ended, Facts, column, facts, history, states
from tests.conformance.subjects import Subject

NOW = T0 + SECOND
SHORT = timedelta(milliseconds=50)


class Undone(Exception):
    """The worker's reason to roll back."""


def leased(store: Store, **options: object) -> LeasedJob:
    """Job 1, and the lease on it."""
    store.enqueue([new_job(1, **options)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    return job


def apply(subject: Subject, outcome: Outcome) -> Reported:
    """Apply an outcome and commit."""
    with subject.transaction():
        return subject.store.report_inside(outcome, patience=SHORT, now=NOW)


def test_success_is_applied_like_a_report_of_one(subject: Subject) -> None:
    job = leased(subject.store)
    subject.store.enqueue([new_job(2, parents=after(1))])
    row = apply(subject, succeeded(job, output="[1]"))
    assert row == Reported(job.lease_id, Verdict.APPLIED, JobState.SUCCEEDED)
    snapshot = subject.observe()
    assert facts(snapshot, 1) == Facts(JobState.SUCCEEDED, 1, 0, T0, Cause.RETURNED)
    assert column(snapshot, 1, "output", "terminal_at") == ("[1]", NOW)
    assert history(snapshot, 1) == (Ended("succeeded", JobState.SUCCEEDED, Cause.RETURNED, 1, 1),)
    assert (snapshot.leases, states(snapshot, 2)) == ({}, (JobState.SCHEDULED,))


def test_success_beats_a_requested_cancellation(subject: Subject) -> None:
    job = leased(subject.store)
    subject.store.cancel([uid(1)], actor=ACTOR, now=T0)
    assert apply(subject, succeeded(job)).verdict is Verdict.APPLIED
    assert states(subject.observe(), 1) == (JobState.SUCCEEDED,)


def test_success_without_its_lease_is_stale(subject: Subject) -> None:
    job = leased(subject.store)
    subject.store.expire_leases(limit=10, now=T0 + HOUR)
    before = subject.observe()
    assert apply(subject, succeeded(job)) == Reported(job.lease_id, Verdict.STALE)
    assert subject.observe() == before


def test_success_of_an_earlier_run_is_stale(subject: Subject) -> None:
    stale = leased(subject.store)
    subject.store.expire_leases(limit=10, now=T0 + HOUR)
    (job,) = subject.store.claim(claim_request(), now=T0 + 2 * HOUR).jobs
    assert apply(subject, succeeded(stale)).verdict is Verdict.STALE
    assert states(subject.observe(), 1) == (JobState.LEASED,)
    assert apply(subject, succeeded(job)).verdict is Verdict.APPLIED


def held(subject: Subject, row: str) -> AbstractContextManager[None]:
    return (subject.hold_job if row == "job" else subject.hold_lease)(uid(1))


@pytest.mark.row_locks
@pytest.mark.parametrize("row", ["job", "lease"])
def test_row_that_others_hold_is_not_waited_for_too_long(subject: Subject, row: str) -> None:
    job = leased(subject.store)
    before = subject.observe()
    with held(subject, row), pytest.raises(StoreUnavailable):
        apply(subject, succeeded(job))
    assert subject.observe() == before
    assert apply(subject, succeeded(job)).verdict is Verdict.APPLIED


@pytest.mark.on_databases
def test_writes_and_success_roll_back_together(subject: Subject) -> None:
    job = leased(subject.store)
    subject.store.enqueue([new_job(2, parents=after(1))])
    before = subject.observe()
    with suppress(Undone), subject.transaction():
        subject.store.enqueue([new_job(3)])
        assert subject.store.report_inside(succeeded(job), patience=SHORT, now=NOW) == Reported(
            job.lease_id, Verdict.APPLIED, JobState.SUCCEEDED
        )
        raise Undone
    assert subject.observe() == before
    assert not subject.store.is_recorded(job_id=uid(1), run=1)


@pytest.mark.on_databases
def test_writes_and_success_are_committed_together(subject: Subject) -> None:
    job = leased(subject.store)
    with subject.transaction():
        subject.store.enqueue([new_job(3)])
        subject.store.report_inside(succeeded(job), patience=SHORT, now=NOW)
    assert states(subject.observe(), 1, 3) == (JobState.SUCCEEDED, JobState.SCHEDULED)


@pytest.mark.parametrize("kept", History)
def test_success_is_found_again(make_subject: MakeSubject, kept: History) -> None:
    store = make_subject(StoreSettings(history=kept)).store
    job = leased(store)
    assert not store.is_recorded(job_id=uid(1), run=1)
    store.report([succeeded(job)], now=NOW)
    found = [store.is_recorded(job_id=uid(1), run=run) for run in (1, 2)]
    assert found == [True, False]


@pytest.mark.parametrize("end", [failed, lambda job: failed(job, due_at=NOW)])
def test_end_that_is_no_success_is_not_found(
    store: Store, end: Callable[[LeasedJob], Outcome]
) -> None:
    store.report([end(leased(store))], now=NOW)
    assert not store.is_recorded(job_id=uid(1), run=1)


def test_success_of_an_unknown_job_is_not_found(store: Store) -> None:
    assert not store.is_recorded(job_id=uid(404), run=1)
