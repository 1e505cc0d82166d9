from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction
from django.test import TestCase

import backwave_django as backwave
from backwave_django.core.contract import Actor
from backwave_django.models import Outcome
from backwave_django.store import default_store
from backwave_django.testing import Harness

T0 = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


@backwave.job("testing.note", retry=backwave.Retry(max_attempts=2, initial=timedelta(minutes=1)))
def note(name: str) -> str:
    get_user_model().objects.create(username=name)
    return name.upper()


@backwave.job("testing.again")
def again() -> None:
    again.enqueue()


@backwave.job("testing.breaks_transaction")
def breaks_transaction() -> str:
    get_user_model().objects.create(username="twice")
    try:
        with transaction.atomic():
            get_user_model().objects.create(username="twice")
    except IntegrityError:
        return "caught"
    return "not reached"


@backwave.job("testing.leaves_broken")
def leaves_broken() -> str:
    get_user_model().objects.create(username="same")
    try:
        get_user_model().objects.create(username="same")
    except IntegrityError:
        return "swallowed"
    return "not reached"


@backwave.job(
    "testing.pay", atomic=True, retry=backwave.Retry(max_attempts=2, initial=timedelta(minutes=1))
)
def pay(name: str, ctx: backwave.JobContext = backwave.context()) -> str:
    get_user_model().objects.create(username=f"{name} {ctx.attempt}")
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return name


@pytest.fixture
def harness(db):
    with Harness(now=T0) as opened:
        yield opened


def test_a_job_due_in_two_days_runs_when_time_has_passed(harness):
    handle = note.options(delay=timedelta(days=2)).enqueue("ann")
    assert harness.run_until_idle() == 0
    assert harness.advance(days=3) == 1
    assert handle.refresh().state == "succeeded"
    assert handle.output == "ANN"
    assert Outcome.objects.get(job_id=handle.id).started_at == T0 + timedelta(days=2)
    assert harness.now == T0 + timedelta(days=3)


def test_jobs_run_in_the_order_in_which_they_come_due(harness):
    for name, hours in (("late", 5), ("early", 1), ("middle", 3)):
        note.options(delay=timedelta(hours=hours)).enqueue(name)
    harness.advance(hours=6)
    names = get_user_model().objects.order_by("pk").values_list("username", flat=True)
    assert list(names) == ["early", "middle", "late"]


def test_a_planned_failure_spends_an_attempt_and_the_retry_waits_its_time(harness):
    handle = note.enqueue("ann")
    harness.fail_next(note, ValueError("no luck"))
    assert harness.run_until_idle() == 1
    assert handle.refresh().state == "scheduled"
    assert harness.advance(seconds=30) == 0
    assert harness.advance(minutes=2) == 1
    assert handle.refresh().state == "succeeded"
    failed, succeeded = Outcome.objects.filter(job_id=handle.id).order_by("run")
    assert (failed.kind, failed.error_class, failed.message) == ("failed", "ValueError", "no luck")
    assert (succeeded.kind, succeeded.attempt) == ("succeeded", 2)


def test_a_crashed_pump_loses_its_leases_and_the_jobs_run_again(harness):
    handle = note.enqueue("ann")
    assert harness.crash_pump() == 1
    assert handle.refresh().state == "leased"
    assert harness.advance(seconds=30) == 0
    harness.advance(minutes=5)
    assert handle.refresh().state == "succeeded"
    kinds = Outcome.objects.filter(job_id=handle.id).order_by("run").values_list("kind", flat=True)
    assert list(kinds) == ["lapsed", "succeeded"]


def test_what_waits_is_listed_by_type(harness):
    note.options(delay=timedelta(hours=1), queue="elsewhere").enqueue("ann")
    assert [record.queue for record in harness.enqueued(note)] == ["elsewhere"]
    assert harness.enqueued("testing.again") == []
    assert len(harness.enqueued()) == 1
    assert harness.advance(hours=1) == 1


def test_an_expired_deadline_ends_the_job_without_a_body(harness):
    handle = note.options(deadline=T0 + timedelta(hours=1)).enqueue("ann")
    harness.fail_next(note, RuntimeError("first"))
    harness.run_until_idle()
    late = note.options(delay=timedelta(minutes=1), deadline=timedelta(minutes=1)).enqueue("bob")
    pause("default")
    harness.advance(hours=2)
    assert (late.refresh().state, late.cause) == ("expired", "deadline")
    assert (handle.refresh().state, handle.cause) == ("dead_lettered", "deadline")


def pause(queue):
    default_store().pause(queue, until=None, actor=Actor(name="test"), now=T0)


def test_a_broken_savepoint_of_a_body_does_not_break_the_test(harness):
    handle = breaks_transaction.enqueue()
    harness.run_until_idle()
    assert handle.refresh().output == "caught"


def test_a_broken_transaction_of_a_body_does_not_break_the_test(harness):
    handle = leaves_broken.enqueue()
    harness.run_until_idle()
    assert handle.refresh().state in {"succeeded", "scheduled", "dead_lettered"}
    assert not connection.needs_rollback


def test_jobs_that_enqueue_themselves_without_end_are_told_so(harness, monkeypatch):
    monkeypatch.setattr("backwave_django.testing.turns.MAX_ATTEMPTS_AT_ONCE", 50)
    again.enqueue()
    with pytest.raises(RuntimeError, match="a job enqueues itself"):
        harness.run_until_idle()


def test_a_harness_that_is_not_open_says_how_to_open_it(db):
    with pytest.raises(RuntimeError, match="with Harness"):
        Harness().run_until_idle()


def test_time_does_not_go_back(harness):
    with pytest.raises(ValueError, match="only moves forward"):
        harness.advance(days=-1)


def test_a_naive_start_is_refused():
    with pytest.raises(ValueError, match="aware"):
        Harness(now=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


class InTestCase(TestCase):
    """The harness works on the connection of Django's own test case."""

    def test_a_job_runs_inside_the_transaction_of_the_test(self):
        with Harness() as harness:
            handle = note.enqueue("ann")
            harness.run_until_idle()
            assert handle.refresh().state == "succeeded"
        assert get_user_model().objects.filter(username="ann").exists()


def test_what_an_atomic_body_writes_comes_with_its_success(harness):
    handle = pay.enqueue("ann")
    harness.run_until_idle()
    assert not get_user_model().objects.exists()
    harness.advance(minutes=2)
    assert handle.refresh().output == "ann"
    assert list(get_user_model().objects.values_list("username", flat=True)) == ["ann 2"]
    kinds = Outcome.objects.filter(job_id=handle.id).order_by("run").values_list("kind", flat=True)
    assert list(kinds) == ["failed", "succeeded"]


def test_handles_explain_themselves_by_the_harness_clock(harness):
    handle = note.options(delay=timedelta(days=2)).enqueue("ann")
    assert "in 2 days" in handle.explain()[0].text
    harness.advance(days=1)
    assert "in 1 day)" in handle.explain()[0].text
