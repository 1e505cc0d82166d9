"""``timeout_mode="raise"``: the body is interrupted, and nothing but the body."""

import asyncio
import sys
import threading
from datetime import timedelta
from queue import SimpleQueue
from random import Random  # noqa: TID251 - seeded, the same in each run
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

import backwave_django as backwave
from backwave_django.core import events as e
from backwave_django.core.commands import CancelReason
from backwave_django.models import Outcome
from backwave_django.pumps.attempts import Assignment
from tests.pumps.attempting import Bench, leased, on_a_thread
from tests.pumps.marks import BEGUN, GO, SEEN
from tests.pumps.running import RunningNode
from tests.pumps.waiting import until

LIMIT = timedelta(seconds=0.3)
ONCE = backwave.Retry(max_attempts=1)
RAISING: dict[str, Any] = {"timeout": LIMIT, "timeout_mode": "raise", "retry": ONCE}
ROUNDS = 400


@pytest.fixture
def _restless_threads():
    """Threads take turns as often as they can, so that they meet at every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def spin() -> None:
    while not GO.is_set():
        continue


@backwave.job("raising.spin", **RAISING)
def spins() -> None:
    BEGUN.set()
    try:
        spin()
    finally:
        SEEN.append("cleaned up")


@backwave.job("raising.writes", **RAISING)
def writes() -> None:
    with transaction.atomic():
        Group.objects.create(name="half-done")
        spin()


@backwave.job("raising.stubborn", **RAISING)
def stubborn() -> str:
    try:
        spin()
    except backwave.JobTimedOut:
        SEEN.append("caught")
    return "went on"


@backwave.job("raising.in_c", **RAISING)
def in_c() -> None:
    GO.wait()  # one call that does not come back: no instruction of Python runs


@backwave.job("raising.swallows", **RAISING)
def swallows() -> None:
    while True:
        try:
            spin()
        except Exception:  # noqa: S112 - what many loops do
            continue
        return


@backwave.job("raising.awaits", **RAISING)
async def awaits() -> None:
    BEGUN.set()
    try:
        await asyncio.sleep(600)
    finally:
        SEEN.append(asyncio.current_task() is not None)


@backwave.job("raising.brief", **RAISING)
def brief(turns: int) -> int:
    BEGUN.set()
    for _ in range(turns):
        continue
    return turns


@backwave.job("raising.abrief", **RAISING)
async def abrief(turns: int) -> int:
    BEGUN.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    return turns


@backwave.job("raising.plain")
def plain() -> int:
    return sum(1 for _ in range(200))


def struck(body: Any) -> Any:
    """Run one attempt whose time is over once it has begun."""
    bench, assignment = Bench(), Assignment(leased(body))

    def strike():
        assert BEGUN.wait(30)
        assignment.signals.cancel(CancelReason.TIMEOUT)

    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    ended = on_a_thread(lambda: bench.attempts.run(assignment))
    thread.join(30)
    return ended


def interrupted(ended: e.AttemptEnded) -> bool:
    if not isinstance(ended, e.AttemptFailed):
        return False
    assert ended.failure.error_class.endswith("JobTimedOut"), ended
    return True


def test_loop_is_interrupted_and_cleans_up():
    ended = struck(spins)
    assert interrupted(ended)
    assert "in spin" in ended.failure.traceback
    assert SEEN == ["cleaned up"]


def test_async_body_is_cancelled_where_it_waits():
    assert interrupted(struck(awaits))
    assert SEEN == [True]


def test_async_body_under_a_plain_decorator_is_cancelled_too():
    async def unwrapped():
        BEGUN.set()
        await asyncio.sleep(600)

    def wrapped():
        return unwrapped()

    ended = struck(backwave.job("raising.wrapped", **RAISING)(wrapped))
    assert interrupted(ended)


@pytest.mark.parametrize("body", [brief, abrief])
def test_time_that_is_over_before_the_body_begins_is_raised_at_its_beginning(body):
    bench, assignment = Bench(), Assignment(leased(body, 0))
    context = assignment.signals
    # What a pump does between the look at the signals and the beginning of the body.
    context.timed_out = True
    assert interrupted(on_a_thread(lambda: bench.attempts.run(assignment)))
    assert not BEGUN.is_set()


@pytest.mark.usefixtures("_restless_threads")
@pytest.mark.parametrize(("body", "most"), [(brief, 4_000), (abrief, 20)])
def test_f143_body_that_ends_at_its_time_out_never_poisons_what_comes_after(body, most):
    bench, chance = Bench(), Random(7)  # noqa: S311 - no secret
    targets: SimpleQueue[tuple[Assignment, int] | None] = SimpleQueue()

    def strike():
        while (target := targets.get()) is not None:
            assignment, turns = target
            BEGUN.wait(30)
            for _ in range(turns):
                continue
            assignment.signals.cancel(CancelReason.TIMEOUT)

    def attempts():
        ends = []
        for _ in range(ROUNDS if body is brief else ROUNDS // 4):
            BEGUN.clear()
            assignment = Assignment(leased(body, chance.randrange(most)))
            targets.put((assignment, chance.randrange(4_000)))
            ends.append(bench.attempts.run(assignment))
            after = bench.run(plain)
            assert isinstance(after, e.AttemptSucceeded), after
        targets.put(None)
        return ends

    striker = threading.Thread(target=strike, daemon=True)
    striker.start()
    ends = on_a_thread(attempts)
    striker.join(30)
    assert all(isinstance(each, e.AttemptSucceeded) or interrupted(each) for each in ends)


@pytest.mark.django_db(transaction=True)
def test_slot_of_an_interrupted_body_is_free_at_once(caplog):
    handles = [job.enqueue() for job in (spins, swallows, awaits)]
    after = plain.enqueue()
    with RunningNode(POOL_SIZE=1):
        until(lambda: after.refresh().state == "succeeded")
    assert {(str(each.refresh().state), str(each.cause)) for each in handles} == {
        ("dead_lettered", "timeout")
    }
    kinds = Outcome.objects.filter(job_id__in=[each.id for each in handles])
    assert set(kinds.values_list("kind", "error_class")) == {
        ("timed_out", "backwave_django.TimedOut")
    }
    assert "its slot is given to a new worker" not in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("connections", ["fresh", "reuse"])
def test_transaction_of_an_interrupted_body_is_rolled_back(connections):
    handle, after = writes.enqueue(), plain.enqueue()
    with RunningNode(POOL_SIZE=1, CONNECTIONS=connections):
        until(lambda: after.refresh().state == "succeeded")
    assert handle.refresh().cause == "timeout"
    assert not Group.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_body_that_goes_on_counts_for_nothing():
    handle, after = stubborn.enqueue(), plain.enqueue()
    with RunningNode(POOL_SIZE=1):
        until(lambda: after.refresh().state == "succeeded")
    assert (SEEN, handle.refresh().cause, handle.output) == (["caught"], "timeout", None)


@pytest.mark.django_db(transaction=True)
def test_slot_of_a_body_that_cannot_be_interrupted_is_replaced(caplog):
    handle, after = in_c.enqueue(), plain.enqueue()
    with RunningNode(POOL_SIZE=1):
        until(lambda: after.refresh().state == "succeeded")
        assert handle.refresh().cause == "timeout"
        GO.set()
    assert "its slot is given to a new worker" in caplog.text
