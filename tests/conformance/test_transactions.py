"""What is stored in the caller's transaction shares its fate, and never spoils it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from django.db import transaction

from backwave_django.core.contract import StoreSettings
from backwave_django.core.errors import UnknownParent
from backwave_django.core.jobs import IfDuplicate
from backwave_django.core.states import JobState
from tests.builders import ACTOR, T0, after, claim_request, new_job, succeeded, uid
from tests.conformance.facts import made, met, numbers, states
from tests.conformance.subjects import Subject, django_subject

pytestmark = pytest.mark.django_db(transaction=True)


class Undone(Exception):
    """The caller's own reason to roll back."""


@contextmanager
def rolled_back() -> Iterator[None]:
    """The caller's transaction, which comes to nothing."""
    with suppress(Undone), transaction.atomic():
        yield
        raise Undone


@pytest.fixture
def subject() -> Subject:
    return django_subject(StoreSettings())


def test_jobs_commit_with_their_callers_transaction(subject: Subject) -> None:
    with transaction.atomic():
        subject.store.enqueue([new_job(1), new_job(2, parents=after(1), unique_key="k")])
    assert states(subject.observe(), 1, 2) == (JobState.SCHEDULED, JobState.AWAITING)


def test_jobs_roll_back_with_their_callers_transaction(subject: Subject) -> None:
    with rolled_back():
        subject.store.enqueue([new_job(1), new_job(2, parents=after(1), unique_key="k")])
    snapshot = subject.observe()
    assert (snapshot.jobs, snapshot.edges, snapshot.unsettled) == ({}, {}, set())


def test_refused_batch_leaves_the_callers_transaction_usable(subject: Subject) -> None:
    with transaction.atomic():
        subject.store.enqueue([new_job(1)])
        with pytest.raises(UnknownParent):
            subject.store.enqueue([new_job(2), new_job(3, parents=after(404))])
        subject.store.enqueue([new_job(4)])
    assert set(subject.observe().jobs) == {uid(1), uid(4)}


@pytest.mark.parametrize("policy", set(IfDuplicate) - {IfDuplicate.REPLACE})
def test_duplicate_leaves_the_callers_transaction_usable(
    subject: Subject, policy: IfDuplicate
) -> None:
    subject.store.enqueue([new_job(1, unique_key="k")])
    with transaction.atomic():
        duplicate = new_job(2, unique_key="k", if_duplicate=policy)
        assert subject.store.enqueue([duplicate]) == (met(1, JobState.SCHEDULED),)
        assert subject.store.enqueue([new_job(3)]) == (made(3, JobState.SCHEDULED),)
    assert set(subject.observe().jobs) == {uid(1), uid(3)}


def test_rolled_back_replacement_leaves_the_holder_alone(subject: Subject) -> None:
    subject.store.enqueue([new_job(1, unique_key="k")])
    with rolled_back():
        replacement = new_job(2, unique_key="k", if_duplicate=IfDuplicate.REPLACE)
        assert subject.store.enqueue([replacement])[0].created
    assert states(subject.observe(), 1) == (JobState.SCHEDULED,)


def test_operator_action_and_its_audit_roll_back_together(subject: Subject) -> None:
    subject.store.enqueue([new_job(1)])
    with rolled_back():
        subject.store.cancel([uid(1)], actor=ACTOR, now=T0)
    snapshot = subject.observe()
    assert (states(snapshot, 1), snapshot.actions) == ((JobState.SCHEDULED,), ())


def test_outcome_can_commit_with_the_writes_of_its_body(subject: Subject) -> None:
    subject.store.enqueue([new_job(1), new_job(2, parents=after(1))])
    (job,) = subject.store.claim(claim_request(), now=T0).jobs
    with rolled_back():
        subject.store.report([succeeded(job)], now=T0)
    assert states(subject.observe(), 1, 2) == (JobState.LEASED, JobState.AWAITING)
    with transaction.atomic():
        subject.store.report([succeeded(job)], now=T0)
    assert states(subject.observe(), 1, 2) == (JobState.SUCCEEDED, JobState.SCHEDULED)


def test_whole_life_of_a_job_fits_into_one_transaction(subject: Subject) -> None:
    with transaction.atomic():
        subject.store.enqueue([new_job(1)])
        (job,) = subject.store.claim(claim_request(), now=T0).jobs
        subject.store.report([succeeded(job)], now=T0)
    assert (numbers((job,)), states(subject.observe(), 1)) == ((1,), (JobState.SUCCEEDED,))
