"""Bodies that do what their caller chose for them, and write down that they did."""

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

import backwave_django as backwave
from tests.torture.journal import Journal

QUICK = backwave.Retry(
    max_attempts=3, initial=timedelta(seconds=0.1), maximum=timedelta(seconds=0.5)
)
ONCE = backwave.Retry(max_attempts=1)
TWICE = backwave.Retry(max_attempts=2, initial=timedelta(seconds=0.1))
#: The numbers of ``swing`` and of other keys change while pumps run; these two do not.
GATEWAY = "torture.gateway"
GATEWAY_LIMIT = 2
CAPPED_LIMIT = 3
#: Bodies that ignore whatever is asked of them wait for this: nobody sets it.
_NEVER = threading.Event()
_CONTEXT = backwave.context()


def _return(_seconds: float, _ctx: backwave.JobContext) -> None:
    return


def _sleep(seconds: float, _ctx: backwave.JobContext) -> None:
    _NEVER.wait(seconds)


def _heed(seconds: float, ctx: backwave.JobContext) -> None:
    ctx.wait(timedelta(seconds=10 * seconds))
    ctx.raise_if_cancelled()


def _fail(_seconds: float, _ctx: backwave.JobContext) -> None:
    raise ValueError("as it was told to")


def _flaky(_seconds: float, ctx: backwave.JobContext) -> None:
    if ctx.attempt == 1:
        raise ValueError("only this time")


def _give_up(_seconds: float, _ctx: backwave.JobContext) -> None:
    raise backwave.GiveUp("no use")


def _cancel(_seconds: float, _ctx: backwave.JobContext) -> None:
    raise backwave.Cancelled("no need")


def _snooze(_seconds: float, ctx: backwave.JobContext) -> None:
    if ctx.lease_token == 1:
        raise backwave.Snooze(timedelta(seconds=1))


def _exit(_seconds: float, ctx: backwave.JobContext) -> None:
    if ctx.attempt == 1:
        raise SystemExit(1)


def _query(_seconds: float, _ctx: backwave.JobContext) -> None:
    Group.objects.count()


def _follow(seconds: float, ctx: backwave.JobContext) -> None:
    """Enqueue one more job in a transaction of the body's own."""
    label = f"{ctx.job_id}>{ctx.lease_token}"
    journal = Journal.current()
    journal.write("enqueue.asked", label=label, act="return")
    with transaction.atomic():
        Group.objects.count()
        handle = work.options(tags={"label": label}).enqueue("return", seconds)
    journal.write("enqueue.committed", label=label, job=handle.id, created=handle.created)


ACTS: dict[str, Callable[[float, backwave.JobContext], None]] = {
    "return": _return,
    "sleep": _sleep,
    "heed": _heed,
    "fail": _fail,
    "flaky": _flaky,
    "give_up": _give_up,
    "cancel": _cancel,
    "snooze": _snooze,
    "exit": _exit,
    "query": _query,
    "follow": _follow,
}


def _perform(act: str, seconds: float, ctx: backwave.JobContext) -> Any:
    """Do it; what comes back, and the tag that stays, name the run that did it."""
    run = ctx.lease_token
    journal = Journal.current()
    told = {"job": ctx.job_id, "run": run, "queue": ctx.queue, "act": act}
    journal.write("body.started", **told)
    ctx.add_tags(**{f"r{run}": "1"})
    if act == "refuse":
        return threading.Lock()
    try:
        ACTS[act](seconds, ctx)
    except BaseException as error:
        journal.write("body.raised", **told, error=type(error).__name__)
        raise
    journal.write("body.returned", **told)
    return {"run": run}


@backwave.job("torture.work", queue="plain", retry=QUICK)
def work(act: str, seconds: float, ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Work by the group's rules, but with few and quick attempts."""
    return _perform(act, seconds, ctx)


@backwave.job("torture.once", queue="plain", retry=ONCE)
def once(act: str, seconds: float, ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Work with one attempt."""
    return _perform(act, seconds, ctx)


@backwave.job("torture.inherit", queue="lazy")
def inherit(act: str, seconds: float, ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Work with the attempts that the claiming group grants."""
    return _perform(act, seconds, ctx)


@backwave.job("torture.limited", queue="keyed", limit=backwave.Limit(GATEWAY, GATEWAY_LIMIT))
def limited(act: str, seconds: float, ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Work under a limit key that stays as it is declared."""
    return _perform(act, seconds, ctx)


def _tenant(act: str, seconds: float) -> str:
    return f"torture.tenant-{int(seconds * 1000) % 3}"


@backwave.job("torture.shared", queue="keyed", retry=QUICK, limit=backwave.Limit(_tenant, 2))
def shared(act: str, seconds: float, ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Work under one of three keys, whose numbers people change."""
    return _perform(act, seconds, ctx)


@backwave.job("torture.brief", retry=ONCE, queue="plain", timeout=timedelta(seconds=0.4))
def brief(act: str, seconds: float, ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Work for less than a while."""
    return _perform(act, seconds, ctx)


@backwave.job("torture.fatal", queue="plain", retry=TWICE)
def fatal(ctx: backwave.JobContext = _CONTEXT) -> None:
    """Take the pump's process along, each time."""
    told = {"job": ctx.job_id, "run": ctx.lease_token, "queue": ctx.queue, "act": "die"}
    Journal.current().write("body.started", **told)
    os.kill(os.getpid(), signal.SIGKILL)


@backwave.job("torture.tick", queue="plain", retry=QUICK)
def tick(ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Be minted."""
    return _perform("sleep", 0.3, ctx)


JOB_TYPES = (work, work, once, inherit, limited, shared, brief)
MOURN = "torture.mourn"
#: Whose dead letters are observed: all but ticks, and an observer that asks for its own ends.
OBSERVED = (*dict.fromkeys(kind.wire_name for kind in JOB_TYPES), fatal.wire_name, MOURN)
#: What an observer does about a job, by the job's id: some end as dead letters themselves.
_MOURNING = ("return", "fail", "sleep", "give_up", "flaky", "query")


@backwave.on_outcome("dead_lettered", jobs=OBSERVED)
@backwave.job(MOURN, queue="plain", retry=QUICK)
def mourn(event: backwave.OutcomeEvent, ctx: backwave.JobContext = _CONTEXT) -> Any:
    """Hear of a dead letter."""
    return _perform(_MOURNING[event.job_id.int % len(_MOURNING)], 0.05, ctx)
