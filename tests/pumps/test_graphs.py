"""Dependencies, outputs and reactions on real pumps."""

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest

import backwave_django as backwave
from backwave_django.models import Job
from tests.pumps.running import RunningNode
from tests.pumps.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

ONCE = backwave.Retry(max_attempts=1)
#: Values that bodies return. They are not passed: what is tested is the way back.
VALUES: tuple[Any, ...] = (
    *("1", "null", '{"a": 1}', "", None, True, False, 0, [], {}),
    *(2**63, -(2**63) - 1, 10**30, 1e308, -0.0, 1.5, 10**700),
    *(b"\x00\xff", Decimal("0.10"), UUID(int=7), timedelta(days=-1, microseconds=3)),
    *(date(2040, 2, 29), time(23, 59, 59, 999999), datetime(2040, 1, 1, tzinfo=UTC)),
    *((1, (2, 3)), [[], [None]], {"$uuid": "x"}, {"a": {"$b": [1e300, "é\u2028"]}}),
)


@backwave.job("live.value", retry=ONCE)
def value(number: int) -> object:
    """Return one of the values."""
    return VALUES[number]


@backwave.job("live.parent", retry=ONCE)
def parent(number: int) -> int:
    """Return at once."""
    return number


@backwave.job("live.total", retry=ONCE)
def total(ctx: backwave.JobContext = backwave.context()) -> int:
    """Add up what the parents returned."""
    return sum(each.output for each in ctx.parents)


@backwave.job("live.broken", retry=ONCE)
def broken(number: int) -> None:
    """Fail for odd numbers."""
    if number % 2:
        raise ValueError(str(number))


@backwave.on_outcome("dead_lettered", jobs=["live.broken"])
@backwave.job("live.alarm", retry=ONCE)
def alarm(event: backwave.OutcomeEvent) -> str:
    """Return which job it is about, and fail for one of them."""
    if event.message == "7":
        raise ValueError("no alarm about an alarm")
    return str(event.job_id)


def ended(*handles: backwave.JobHandle) -> bool:
    return all(handle.refresh().record.terminal_at is not None for handle in handles)


def test_f065_every_output_comes_back_as_it_was_returned():
    handles = value.enqueue_many([(number,) for number in range(len(VALUES))])
    with RunningNode():
        until(lambda: ended(*handles))
    outputs = [handle.output for handle in handles]
    assert outputs == list(VALUES)
    assert list(map(type, outputs)) == list(map(type, VALUES))
    assert str(outputs[VALUES.index(-0.0)]) == str(VALUES[VALUES.index(-0.0)])


def test_output_over_the_cap_is_refused_and_not_cut():
    @backwave.job("live.large", retry=backwave.Retry(max_attempts=3))
    def large() -> str:
        return "x" * (1024 * 1024)

    handle = large.enqueue()
    with RunningNode():
        until(lambda: ended(handle))
    assert (handle.state, handle.cause, handle.output) == ("dead_lettered", "output", None)
    assert handle.record.run == 1


def test_f140_child_runs_once_though_its_parents_end_at_the_same_moment():
    with RunningNode(POOL_SIZE=16):
        for _ in range(5):
            parents = parent.enqueue_many([(number,) for number in range(30)])
            child = total.options(after=parents).enqueue()
            until(partial(ended, child))
            assert (child.state, child.output, child.record.run) == ("succeeded", 435, 1)


def test_workflow_runs_to_its_end():
    with backwave.workflow("live") as flow:
        numbers = [flow.add(parent, number) for number in (1, 2, 3)]
        flow.add(total.s(), after=numbers, name="total")
    with RunningNode():
        until(lambda: flow.handle.status == "succeeded")
    assert flow.steps["total"].refresh().output == 6


def test_each_dead_letter_runs_exactly_one_observer():
    handles = broken.enqueue_many([(number,) for number in range(60)])
    with RunningNode(PUMPS=2, POOL_SIZE=8):
        until(lambda: ended(*handles))
        alarms = Job.objects.filter(wire_name="live.alarm")
        until(lambda: alarms.filter(terminal_at=None).count() == 0)
    dead = {str(handle.id) for handle in handles if handle.state == "dead_lettered"}
    assert len(dead) == 30
    told = Counter(job.tags["backwave.observes"] for job in alarms)
    assert told == Counter(dict.fromkeys(dead, 1))
    states = Counter(alarms.values_list("state", flat=True))
    assert states == {"succeeded": 29, "dead_lettered": 1}
