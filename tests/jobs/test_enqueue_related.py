"""Unique keys, parents and limits, as callers meet them."""

import json
from datetime import timedelta

import pytest
from django.db import transaction

import backwave_django as backwave
from backwave_django.core.errors import UnknownParent
from backwave_django.core.states import Cause, JobState
from backwave_django.models import Job, Limit
from backwave_django.monitor.clock import database_clock
from backwave_django.store import default_store
from tests.builders import ACTOR, claim_request, gave_up, succeeded, uid

pytestmark = pytest.mark.django_db

QUEUE = "tests.related"


@backwave.job("tests.related.send", queue=QUEUE)
def send(order_id: int) -> None:
    """A body that never runs here."""


def customer(order_id: int) -> str | None:
    """The limit key of an order; the first order has none."""
    return f"customer:{order_id % 3}" if order_id else None


@backwave.job("tests.related.charge", queue=QUEUE, limit=backwave.Limit("related-gateway", 2))
def charge(order_id: int) -> None:
    """One whose limit key is the type's."""


@backwave.job("tests.related.pay", queue=QUEUE, limit=backwave.Limit(customer, 1))
def pay(order_id: int) -> None:
    """One whose limit keys are computed."""


def run_one(ending=succeeded):
    """Claim the oldest job and report its end, as a pump does. Return its id."""
    store = default_store()
    now = database_clock() + timedelta(seconds=1)
    (leased,) = store.claim(claim_request(QUEUE, limit=1), now=now).jobs
    store.report([ending(leased)], now=now)
    return leased.job_id


def claimed():
    now = database_clock() + timedelta(seconds=1)
    answer = default_store().claim(claim_request(QUEUE, limit=50), now=now)
    return [json.loads(job.payload)["kwargs"]["order_id"] for job in answer.jobs]


def test_a_live_holder_of_a_unique_key_answers():
    keyed = send.options(unique="related:42")
    first, second = keyed.enqueue(1), keyed.enqueue(2)
    assert (first.created, second.created) == (True, False)
    assert first == second
    assert Job.objects.get().unique_key == "related:42"


def test_a_key_is_free_again_after_a_rollback():
    def fail():
        with transaction.atomic():
            send.options(unique="related:42").enqueue(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert send.options(unique="related:42").enqueue(2).created


@pytest.mark.parametrize(
    ("policy", "ending", "created"),
    [
        ("allow_after_failure", succeeded, False),
        ("allow_after_failure", gave_up, True),
        ("reject", gave_up, False),
        ("allow", succeeded, True),
        ("replace", succeeded, True),
    ],
)
def test_a_job_that_ended_under_the_key_counts_by_policy(policy, ending, created):
    keyed = send.options(unique="related:42", if_duplicate=policy)
    first = keyed.enqueue(1)
    run_one(ending)
    again = keyed.enqueue(2)
    assert again.created is created
    assert (again == first) is not created


def test_replacing_cancels_a_holder_that_never_began():
    first = send.options(unique="related:42").enqueue(1)
    second = send.options(unique="related:42", if_duplicate="replace").enqueue(2)
    assert second.created
    assert (first.refresh().state, first.cause) == (JobState.CANCELLED, Cause.SUPERSEDED)


def test_a_key_met_at_the_commit_turns_the_handle_to_its_holder(transactional_db):
    holder = send.options(unique="related:42").enqueue(1)
    with transaction.atomic():
        handle = send.options(unique="related:42").on_commit(2)
        assert handle != holder
    assert handle == holder
    assert not handle.created


def test_a_job_waits_for_its_parents():
    parent = send.enqueue(1)
    child = send.options(after=parent).enqueue(2)
    assert child.state is JobState.AWAITING
    assert run_one() == parent.id
    assert child.refresh().state is JobState.SCHEDULED


@pytest.mark.parametrize(
    ("mode", "state", "cause"),
    [
        ("on_success", JobState.CANCELLED, Cause.PARENT),
        ("on_any", JobState.SCHEDULED, None),
    ],
)
def test_a_failed_parent_counts_by_mode(mode, state, cause):
    parent = send.enqueue(1)
    before = send.options(after=[parent], after_mode=mode).enqueue(2)
    assert run_one(gave_up) == parent.id
    later = send.options(after=[parent.id], after_mode=mode).enqueue(3)
    for child in (before, later):
        assert (child.refresh().state, child.cause) == (state, cause)


def test_a_parent_that_is_not_there_is_named_and_nothing_is_stored():
    with transaction.atomic():
        with pytest.raises(UnknownParent, match=str(uid(7))):
            send.options(after=[uid(7)]).enqueue(1)
        kept = send.enqueue(2)
    assert Job.objects.get().pk == kept.id


def test_a_declared_limit_holds_from_the_first_job_on():
    charge.enqueue_many([(n,) for n in range(5)])
    assert len(claimed()) == 2
    assert claimed() == []


def test_computed_keys_are_limited_apart_and_a_job_without_a_key_is_not():
    pay.enqueue_many([(n,) for n in (1, 2, 3, 4, 5, 6, 0, 0)])
    assert sorted(claimed()) == [0, 0, 1, 2, 3]
    assert Limit.objects.count() == 3


def test_an_operators_number_goes_before_the_declared_one():
    default_store().set_limit("related-gateway", 4, actor=ACTOR, now=database_clock())
    charge.enqueue_many([(n,) for n in range(5)])
    assert len(claimed()) == 4


def test_a_new_number_in_the_code_is_noted():
    charge.enqueue(1)
    Limit.objects.update(limit=7)
    charge.enqueue(2)
    assert list(Limit.objects.values_list("key", "limit", "source")) == [
        ("related-gateway", 2, "code")
    ]
