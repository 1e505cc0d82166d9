"""``atomic=True``: what a body writes is committed with its success, or not at all."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, connection, transaction

import backwave_django as backwave
from backwave_django.core.dials import StopRule
from backwave_django.models import Job, Lease, Outcome
from backwave_django.pumps.shutdown import ABANDONED, DRAINED
from tests.pumps.marks import BEGUN, GO, SEEN
from tests.pumps.running import RunningNode
from tests.pumps.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

DRAIN = StopRule(when_idle=True)
AT_ONCE = backwave.Retry(max_attempts=2, initial=timedelta(0), maximum=timedelta(0), jitter=0)
ATOMIC: dict[str, Any] = {"atomic": True, "retry": AT_ONCE}
BRIEF: dict[str, Any] = {**ATOMIC, "timeout": timedelta(seconds=0.3)}


@backwave.job("atomic.write", **ATOMIC)
def write(name: str, ctx: backwave.JobContext = backwave.context()) -> str:
    Group.objects.create(name=name)
    job_id = ctx.job_id
    transaction.on_commit(lambda: SEEN.append(Job.objects.get(pk=job_id).state))
    assert connection.in_atomic_block
    return name


@backwave.job("atomic.end", **ATOMIC)
def end(how: str) -> None:
    Group.objects.create(name=how)
    transaction.on_commit(lambda: SEEN.append("committed"))
    raise {
        "fail": ValueError("no"),
        "give up": backwave.GiveUp("never"),
        "snooze": backwave.Snooze(timedelta(hours=1)),
        "cancel": backwave.Cancelled(),
        "exit": SystemExit(3),
    }[how]


@backwave.job("atomic.refused", **ATOMIC)
def refused() -> object:
    Group.objects.create(name="refused")
    return threading.Lock()


@backwave.job("atomic.wait", **ATOMIC)
def wait(ctx: backwave.JobContext = backwave.context()) -> int:
    """Write, and then wait on the first run only."""
    run = Outcome.objects.filter(job_id=ctx.job_id).count() + 1
    Group.objects.create(name=f"run {run}")
    BEGUN.set()
    if run == 1:
        GO.wait(60)
    return run


@backwave.job("atomic.late", **{**BRIEF, "retry": backwave.Retry(max_attempts=1)})
def late() -> None:
    Group.objects.create(name="late")
    GO.wait(60)


@backwave.job(
    "atomic.interrupted",
    **{**BRIEF, "retry": backwave.Retry(max_attempts=1)},
    timeout_mode="raise",
)
def interrupted() -> None:
    Group.objects.create(name="interrupted")
    while not GO.is_set():
        continue


@backwave.job("atomic.spoil", **ATOMIC)
def spoil(how: str) -> None:
    Group.objects.create(name=how)
    if how == "close":
        connection.close()
    elif how == "cut off":
        assert connection.connection is not None
        connection.connection.close()
    elif how == "roll back":
        transaction.set_rollback(True)
    elif how == "break":
        _break_transaction()
    elif how == "dangle":
        Permission.objects.create(name="x", codename="x", content_type_id=2_000_000_000)
    elif how == "hook":
        transaction.on_commit(lambda: SEEN[0])  # which is not there


def _break_transaction() -> None:
    """Swallow a database's error in the middle of a transaction: PostgreSQL takes nothing more."""
    try:
        Group.objects.create(name="taken")
    except IntegrityError:
        return


@backwave.job("atomic.after")
def after() -> None:
    SEEN.append("after")


def drained(**dials: Any) -> None:
    """Run all that is due, and what that makes due."""
    with RunningNode(stop=DRAIN, POOL_SIZE=1, **dials) as running:
        assert running.join() == DRAINED


def names() -> set[str]:
    return set(Group.objects.values_list("name", flat=True))


def kinds(handle: backwave.JobHandle) -> list[str]:
    rows = Outcome.objects.filter(job_id=handle.id).order_by("id")
    return list(rows.values_list("kind", flat=True))


@pytest.mark.parametrize("connections", ["fresh", "reuse"])
def test_writes_and_success_come_together_and_hooks_after_them(connections):
    handles = [write.enqueue(name) for name in ("one", "two")]
    child = after.options(after=handles).enqueue()
    drained(CONNECTIONS=connections)
    assert names() == {"one", "two"}
    assert [handle.refresh().output for handle in handles] == ["one", "two"]
    assert [kinds(handle) for handle in handles] == [["succeeded"], ["succeeded"]]
    assert child.refresh().state == "succeeded"
    assert SEEN == ["succeeded", "succeeded", "after"]
    assert not Lease.objects.exists()


@pytest.mark.parametrize("connections", ["fresh", "reuse"])
@pytest.mark.parametrize(
    ("how", "ends", "state"),
    [
        ("fail", ["failed", "failed"], "dead_lettered"),
        ("exit", ["failed", "failed"], "dead_lettered"),
        ("give up", ["gave_up"], "dead_lettered"),
        ("snooze", ["snoozed"], "scheduled"),
        ("cancel", ["cancelled"], "cancelled"),
    ],
)
def test_body_that_does_not_return_leaves_no_write(how, ends, state, connections):
    handle = end.enqueue(how)
    drained(CONNECTIONS=connections)
    assert (kinds(handle), str(handle.refresh().state)) == (ends, state)
    assert (names(), SEEN) == (set(), [])


def test_output_that_cannot_be_kept_leaves_no_write():
    handle = refused.enqueue()
    drained()
    assert (kinds(handle), names()) == (["output_refused"], set())


@pytest.mark.parametrize("connections", ["fresh", "reuse"])
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("close", "Error"),
        ("cut off", "Error"),
        ("roll back", "TransactionManagementError"),
        ("dangle", "IntegrityError"),
        ("break", "TransactionManagementError"),
    ],
)
def test_transaction_that_cannot_be_committed_is_a_failure(how, error, connections):
    Group.objects.create(name="taken")
    handle, good = spoil.enqueue(how), write.enqueue("good")
    drained(CONNECTIONS=connections)
    assert kinds(handle) == ["failed", "failed"]
    (named,) = set(Outcome.objects.filter(job_id=handle.id).values_list("error_class", flat=True))
    assert str(named).endswith(error)
    assert names() == {"taken", "good"}
    assert kinds(good) == ["succeeded"]


def test_hook_that_raises_does_not_undo_the_commit(caplog):
    handle = spoil.enqueue("hook")
    drained()
    assert (kinds(handle), names()) == (["succeeded"], {"hook"})
    assert "is committed; what came after failed" in caplog.text


@pytest.mark.parametrize("body", [late, interrupted])
def test_body_that_is_over_its_time_leaves_no_write(body):
    handle = body.enqueue()
    # On SQLite nobody can record the time-out before the body lets go of the write lock.
    letting_go = threading.Timer(1, GO.set)
    with RunningNode(POOL_SIZE=1):
        letting_go.start()
        until(lambda: handle.refresh().state == "dead_lettered")
    letting_go.join()
    assert (kinds(handle), names()) == (["timed_out"], set())


def test_drain_lets_a_body_commit():
    handle = wait.enqueue()
    with RunningNode(POOL_SIZE=1) as running:
        assert BEGUN.wait(30)
        running.node.drain()
        GO.set()
        assert running.join() == DRAINED
    assert (kinds(handle), names()) == (["succeeded"], {"run 1"})


@pytest.mark.vendor("postgresql")
def test_body_that_outlasts_a_drain_leaves_no_write():
    handle = wait.enqueue()
    with RunningNode(POOL_SIZE=1, SHUTDOWN_TIMEOUT=0.5) as running:
        assert BEGUN.wait(30)
        running.node.drain()
        assert running.join() == ABANDONED
    assert (kinds(handle), names()) == (["released"], set())
    GO.set()
    drained()
    assert (kinds(handle), names()) == (["released", "succeeded"], {"run 2"})
