"""Observers as their authors declare them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

import backwave_django as backwave
from backwave_django.core.observing import Ended
from backwave_django.core.states import Cause, JobState
from backwave_django.jobs.observers import MARK, Observers, observers
from backwave_django.jobs.payload import decode, encode
from backwave_django.models import Job
from backwave_django.testing import Harness

ONCE = backwave.Retry(max_attempts=1)
EVENTS: list[backwave.OutcomeEvent] = []
T0 = datetime(2040, 1, 1, tzinfo=UTC)


@backwave.job("observed.charge", aliases=("observed.pay",), retry=ONCE, tags={"team": "billing"})
def charge(order_id: int) -> int:
    """Fail for odd orders."""
    if order_id % 2:
        raise ValueError(f"no such order: {order_id}")
    return order_id


@backwave.job("observed.refund", retry=ONCE)
def refund() -> None:
    """Fail always."""
    raise ValueError("never")


@backwave.on_outcome("dead_lettered", jobs=["observed.*"])
@backwave.job("alerts.note", queue="alerts", retry=ONCE)
def note(event: backwave.OutcomeEvent, ctx: backwave.JobContext = backwave.context()) -> None:
    """Keep the event."""
    assert ctx.queue == "alerts"
    EVENTS.append(event)


@backwave.on_outcome("dead_lettered", "succeeded", jobs=charge)
@backwave.job("observed.also", retry=ONCE)
def also(event: backwave.OutcomeEvent) -> None:
    """Observe one type, under a name that another observer's pattern takes in; fail."""
    raise ValueError(event.state)


@pytest.fixture
def harness(db):
    EVENTS.clear()
    with Harness() as opened:
        yield opened


def jobs_of(wire_name):
    return Job.objects.filter(wire_name=wire_name)


def test_a_dead_letter_runs_its_observers_once_each(harness):
    handle = charge.options(tags={"order": 7}).enqueue(7)
    harness.run_until_idle()
    (event,) = EVENTS
    assert (event.job_id, event.wire_name, event.queue) == (handle.id, "observed.charge", "default")
    assert (event.state, event.cause) == (JobState.DEAD_LETTERED, Cause.ATTEMPTS)
    assert (event.attempt, event.run, event.error_class) == (1, 1, "ValueError")
    assert event.message == "no such order: 7"
    assert event.tags == {"team": "billing", "order": 7}
    assert event.finished_at == harness.now
    assert jobs_of("alerts.note").get().tags == {MARK: str(handle.id)}
    assert jobs_of("observed.also").count() == 1


def test_states_and_job_types_are_chosen(harness):
    charge.enqueue(2)
    refund.enqueue()
    harness.run_until_idle()
    assert [event.wire_name for event in EVENTS] == ["observed.refund"]
    assert jobs_of("observed.also").count() == 1, "of the success"


def test_ends_of_observers_are_told_to_nobody(harness):
    charge.enqueue(7)
    harness.run_until_idle()
    assert jobs_of("observed.also").get().state == "dead_lettered"
    assert [event.wire_name for event in EVENTS] == ["observed.charge"]


def test_a_job_under_an_alias_is_of_its_type(harness):
    handle = charge.enqueue(7)
    Job.objects.filter(pk=handle.id).update(wire_name="observed.pay")
    harness.run_until_idle()
    assert [event.wire_name for event in EVENTS] == ["observed.pay"]
    assert jobs_of("observed.also").count() == 1


def test_an_observer_is_part_of_the_transaction_that_records_the_end(harness):
    handle = charge.enqueue(7)

    def take_back():
        with transaction.atomic():
            handle.cancel(actor="ada")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        take_back()
    assert handle.refresh().state == "scheduled"
    assert Job.objects.count() == 1


def test_an_observer_can_be_called_like_any_function():
    event = backwave.OutcomeEvent(
        job_id=UUID(int=1),
        wire_name="observed.charge",
        queue="default",
        state=JobState.DEAD_LETTERED,
        cause=Cause.ATTEMPTS,
        attempt=1,
        run=1,
        finished_at=T0,
    )
    with pytest.raises(ValueError, match="dead_lettered"):
        also(event)


def test_a_bare_observer_is_a_job_type():
    @backwave.on_outcome("expired", jobs="nothing.here")
    @backwave.job("observing.bare")
    def bare(event: backwave.OutcomeEvent) -> None:
        """Observe nothing."""

    assert isinstance(bare, backwave.JobType)
    assert JobState.EXPIRED in observers.states


def ended(**options):
    values: dict[str, Any] = {
        "job_id": UUID(int=7),
        "wire_name": "observed.charge",
        "queue": "default",
        "state": JobState.DEAD_LETTERED,
        "cause": Cause.ATTEMPTS,
        "attempt": 1,
        "run": 1,
        "finished_at": T0,
    }
    return Ended(**(values | options))


def test_an_unknown_observer_of_another_process_is_known_by_its_mark():
    assert len(observers.jobs(ended(wire_name="observed.elsewhere"))) == 1
    marked = ended(wire_name="observed.elsewhere", tags=f'{{"{MARK}":"x"}}')
    assert observers.jobs(marked) == ()


def test_what_no_payload_may_hold_is_cleaned_and_cut():
    (job,) = observers.jobs(
        ended(wire_name="observed.refund", message="a\0b\ud800" + "x" * 5_000, error_class="E")
    )
    event = note.decode(job.payload, 1).kwargs["event"]
    assert event.message.startswith("a\N{REPLACEMENT CHARACTER}b?x")
    assert len(event.message) == 1_000


def test_nobody_observes_in_an_empty_table():
    table = Observers()
    assert table.states == frozenset()
    assert table.jobs(ended()) == ()


def test_events_come_back_as_they_went():
    event = backwave.OutcomeEvent(
        job_id=UUID(int=7),
        wire_name="observed.charge",
        queue="default",
        state=JobState.CANCELLED,
        cause=Cause.PARENT,
        attempt=3,
        run=None,
        finished_at=T0,
        error_class="builtins.ValueError",
        message="é",
        tags={"a": 1, "$b": True},
    )
    assert decode(encode(event, where="event")) == event


def test_events_of_a_newer_release_lose_what_is_unknown():
    text = encode(
        backwave.OutcomeEvent(
            job_id=UUID(int=7),
            wire_name="w",
            queue="q",
            state=JobState.EXPIRED,
            cause=Cause.DEADLINE,
            attempt=1,
            run=None,
            finished_at=T0,
        ),
        where="event",
    )
    newer = text.replace('{"job_id"', '{"mood":"good","job_id"')
    assert newer != text
    assert decode(newer) == decode(text)


@pytest.mark.parametrize("states", [(), ("failed",), ("scheduled",), (7,)])
def test_only_ends_can_be_observed(states):
    with pytest.raises(backwave.InvalidOption, match="'dead_lettered', 'quarantined', 'expired'"):
        backwave.on_outcome(*states)


@pytest.mark.parametrize("jobs", [[], [""], [7], None])
def test_patterns_are_checked(jobs):
    with pytest.raises(backwave.InvalidOption, match="write wire names or job types"):
        backwave.on_outcome("expired", jobs=jobs)


def test_an_observer_takes_one_argument():
    with pytest.raises(backwave.InvalidDeclaration, match="takes one argument, the event"):

        @backwave.on_outcome("expired")
        @backwave.job("observing.two")
        def two(event: backwave.OutcomeEvent, more: int) -> None:
            """Take too much."""


def test_the_limit_of_an_observer_has_a_plain_key():
    limit = backwave.Limit(lambda event: event.queue, 1)
    with pytest.raises(backwave.InvalidDeclaration, match="has to be a text"):

        @backwave.on_outcome("expired")
        @backwave.job("observing.limited", limit=limit)
        def limited(event: backwave.OutcomeEvent) -> None:
            """Be limited by what is not known."""
