"""Hints: told to this process at once, sent to others at most once in a moment."""

import logging
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from pytest_django.fixtures import DjangoCaptureOnCommitCallbacks, Settings

from backwave_django.core.bounds import HINT_WINDOW
from backwave_django.models import Lease
from backwave_django.store import default_store
from backwave_django.store.executors import DjangoExecutor
from backwave_django.store.hints import CHANNEL, Hint, Hub, decode, encode, hub
from tests.builders import ACTOR, MINUTE, PUMP, T0, after, claim_request, new_job, succeeded, uid
from tests.store.conftest import OpenStore

NOW = {"due_at": None}


@pytest.fixture
def heard() -> Iterator[list[Hint]]:
    """The hints that this process was told."""
    hints: list[Hint] = []
    unsubscribe = hub.subscribe(hints.append)
    yield hints
    unsubscribe()


@pytest.mark.django_db(transaction=True)
def test_commit_tells_each_lane_once(heard: list[Hint]) -> None:
    with transaction.atomic():
        default_store().enqueue([new_job(1, priority=5, **NOW), new_job(2, priority=5, **NOW)])
        default_store().enqueue([new_job(3, queue="mail", **NOW)])
        assert heard == []
    assert heard == [Hint("default", 5), Hint("mail", 0)]


@pytest.mark.django_db(transaction=True)
def test_savepoint_that_is_undone_takes_its_hints_along(heard: list[Hint]) -> None:
    with transaction.atomic():
        default_store().enqueue([new_job(1, **NOW)])
        with transaction.atomic():
            default_store().enqueue([new_job(2, queue="undone", **NOW)])
            transaction.set_rollback(True)
        default_store().enqueue([new_job(3, queue="mail", **NOW)])
    assert heard == [Hint("default", 0), Hint("mail", 0)]


@pytest.mark.django_db(transaction=True)
def test_many_enqueues_of_one_transaction_are_one_hint(heard: list[Hint]) -> None:
    with transaction.atomic():
        for number in range(1, 51):
            default_store().enqueue([new_job(number, **NOW)])
        assert len(connection.run_on_commit) == 1
    assert heard == [Hint("default", 0)]


@pytest.mark.django_db(transaction=True)
def test_rollback_tells_nothing(heard: list[Hint]) -> None:
    with transaction.atomic():
        default_store().enqueue([new_job(1, **NOW)])
        transaction.set_rollback(True)
    assert heard == []


@pytest.mark.django_db(transaction=True)
def test_job_that_is_due_later_tells_nothing(heard: list[Hint]) -> None:
    default_store().enqueue([new_job(1, due_at=T0)])
    assert heard == []


@pytest.mark.django_db(transaction=True)
def test_key_that_is_held_tells_nothing(heard: list[Hint]) -> None:
    default_store().enqueue([new_job(1, unique_key="k", **NOW)])
    default_store().enqueue([new_job(2, unique_key="k", **NOW)])
    assert heard == [Hint("default", 0)]


def test_asking_a_running_job_to_stop_is_told(open_store: OpenStore, heard: list[Hint]) -> None:
    default_store().enqueue([new_job(1)])
    open_store().claim(claim_request(), now=T0)
    default_store().cancel([uid(1)], actor=ACTOR, now=T0)
    assert heard == [Hint(None, cancel=True)]


def test_dependent_that_became_due_is_told(open_store: OpenStore, heard: list[Hint]) -> None:
    waiting = new_job(2, queue="mail", priority=3, parents=after(1))
    default_store().enqueue([new_job(1), waiting])
    store = open_store()
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([succeeded(job)], now=T0)
    assert heard == [Hint("mail", 3)]


def test_listener_hears_nothing_once_it_has_unsubscribed() -> None:
    told: list[Hint] = []
    own = Hub()
    own.subscribe(told.append)()
    own.tell(Hint("a"))
    assert told == []


def test_failing_listener_is_logged_and_the_next_one_told(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Hint] = []
    own = Hub()
    own.subscribe(lambda _hint: 1 / 0)
    own.subscribe(told.append)
    with caplog.at_level(logging.ERROR, "backwave.store"):
        own.tell(Hint("a"))
    assert told == [Hint("a")]
    assert "failed on Hint" in caplog.text


def test_one_hint_of_a_queue_goes_out_in_a_moment() -> None:
    instant = [0.0]
    own = Hub(clock=lambda: instant[0])
    assert own.may_send("default", Hint("a"))
    own.sent("default", Hint("a"))
    assert not own.may_send("default", Hint("a", 9))
    assert own.may_send("default", Hint("b"))
    assert own.may_send("other", Hint("a"))
    instant[0] = HINT_WINDOW.total_seconds()
    assert own.may_send("default", Hint("a"))


def test_cancellations_are_never_held_back() -> None:
    own = Hub(clock=lambda: 0.0)
    own.sent("default", Hint(None, cancel=True))
    assert own.may_send("default", Hint(None, cancel=True))


@pytest.mark.parametrize("hint", [Hint("a", -7), Hint(None, cancel=True), Hint("ü" * 100, 100)])
def test_payload_says_what_the_hint_said(hint: Hint) -> None:
    assert decode(encode(hint)) == hint


@pytest.mark.parametrize("payload", ["", "nonsense", "[]", "{}", '{"q": 1, "p": 1}', '{"q": "a"}'])
def test_other_payloads_name_no_queue(payload: str) -> None:
    assert decode(payload) == Hint(None)


def test_overlong_queue_is_not_named() -> None:
    assert encode(Hint("q" * 9_000)) == "{}"


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_other_processes_hear_the_first_of_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_sent", {})
    monkeypatch.setattr(hub, "_clock", lambda: 0.0)
    listener = connection.copy("default")
    try:
        with listener.cursor() as cursor:
            cursor.execute(f'LISTEN "{CHANNEL}"')
        for number in range(1, 4):
            default_store().enqueue([new_job(number, priority=number, **NOW)])
        default_store().enqueue([new_job(9, queue="mail", **NOW)])
        told = listener.connection.notifies(timeout=10, stop_after=2)
        assert [decode(each.payload) for each in told] == [Hint("default", 1), Hint("mail", 0)]
    finally:
        listener.close()


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_failure_to_send_is_logged_and_arms_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hub, "_sent", {})
    monkeypatch.setattr("backwave_django.store.hints.CHANNEL", "")  # the server refuses it
    with caplog.at_level(logging.WARNING, "backwave.store"):
        (answer,) = default_store().enqueue([new_job(1, **NOW)])
    assert answer.created
    assert "a hint was not sent" in caplog.text
    assert hub._sent == {}


@pytest.mark.django_db(transaction=True)
def test_hints_can_be_turned_off(heard: list[Hint], settings: Settings) -> None:
    settings.BACKWAVE = {**settings.BACKWAVE, "HINTS": False}
    default_store().enqueue([new_job(1, **NOW)])
    assert heard == []


@pytest.mark.django_db
def test_executor_of_django_calls_back_after_the_commit(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    called: list[int] = []
    with django_capture_on_commit_callbacks() as callbacks:
        DjangoExecutor("default").on_commit(lambda: called.append(1))
    assert (called, len(callbacks)) == ([], 1)


def test_pumps_hear_of_jobs_that_the_dead_leave_behind(
    open_store: OpenStore, heard: list[Hint]
) -> None:
    store = open_store()
    store.enqueue([new_job(1)])
    assert store.dispose(pumps=[PUMP], now=T0).count == 0
    assert heard == []
    store.claim(claim_request(), now=T0)
    assert store.dispose(pumps=[PUMP], now=T0).count == 1
    assert heard == [Hint(None)]


def test_pumps_hear_of_jobs_whose_leases_lapse_if_they_are_due(
    open_store: OpenStore, heard: list[Hint]
) -> None:
    store = open_store()
    store.enqueue([new_job(1)])
    for claimed_at in (T0, T0 + 2 * MINUTE):  # after its second loss a job waits
        assert store.claim(claim_request(), now=claimed_at).jobs
        assert store.expire_leases(limit=10, now=claimed_at + 2 * MINUTE).count == 1
        assert heard == [Hint(None)]


def test_pumps_hear_of_jobs_that_had_lost_their_leases(
    open_store: OpenStore, heard: list[Hint]
) -> None:
    store = open_store()
    store.enqueue([new_job(1)])
    assert store.claim(claim_request(), now=T0).jobs
    Lease.objects.all().delete()
    assert store.expire_leases(limit=10, now=T0).count == 1
    assert heard == [Hint(None)]
