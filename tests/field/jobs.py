"""What the cases run, besides the jobs of the field app."""

import ctypes
import os
import resource
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction

import backwave_django as backwave
from tests.fieldapp import ledger
from tests.fieldapp.jobs import ONCE, QUICK

#: Who is tried again within a test was not tried again by this.
PATIENT = backwave.Retry(initial=timedelta(hours=1), maximum=timedelta(hours=9))
#: Bodies that never end hang on this: nobody sets it.
_NEVER = threading.Event()
_CONTEXT = backwave.context()


def _until(path: str) -> None:
    while not Path(path).exists():
        _NEVER.wait(0.02)


@backwave.job("ground.first_waits", retry=QUICK)
def first_waits(path: str, ctx: backwave.JobContext = _CONTEXT) -> int:
    """Wait on the first attempt, end at once on the others; tell whose process it was."""
    ledger.write(ctx, "start")
    if ctx.attempt == 1:
        _until(path)
    ledger.write(ctx, "finish")
    return os.getpid()


@backwave.job("ground.patient", retry=PATIENT)
def patient(path: str, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Wait on the first attempt; one that failed would not be tried again for an hour."""
    ledger.write(ctx, "start")
    if ctx.attempt == 1:
        _until(path)
    ledger.write(ctx, "finish")


@backwave.job("ground.only_once", retry=ONCE)
def only_once(path: str, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Wait, on the only attempt there is."""
    ledger.write(ctx, "start")
    _until(path)
    ledger.write(ctx, "finish")


@backwave.job("ground.say", retry=QUICK)
def say(word: str, path: str | None = None, ctx: backwave.JobContext = _CONTEXT) -> str:
    """Return a word, which can be found in what goes over the wire."""
    ledger.write(ctx, "start")
    if path is not None:
        _until(path)
    ledger.write(ctx, "finish")
    return word


@backwave.job("ground.work", retry=QUICK)
def work(seconds: float, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Take a while, and use the database."""
    ledger.write(ctx, "start")
    Group.objects.count()
    _NEVER.wait(seconds)
    ledger.write(ctx, "finish")


@backwave.job("ground.query", retry=QUICK)
def query() -> int:
    """Ask the database one thing."""
    return Group.objects.count()


@backwave.job("ground.tick")
def tick(ctx: backwave.JobContext = _CONTEXT) -> str:
    """Leave a line, and say for which instant this was made."""
    ledger.write(ctx, "tick")
    return str(ctx.scheduled_for)


@backwave.job("ground.write", retry=QUICK)
def write(name: str) -> None:
    """Write one row."""
    Group.objects.create(name=name)


@backwave.job("ground.write_when", retry=QUICK)
def write_when(name: str, path: str, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Wait for a file, then write one row."""
    ledger.write(ctx, "start")
    _until(path)
    try:
        Group.objects.create(name=name)
    finally:
        ledger.write(ctx, "finish")


@backwave.job("ground.hold_lock", retry=QUICK)
def hold_lock(name: str, path: str, ctx: backwave.JobContext = _CONTEXT) -> int:
    """Hold what a transaction that has written holds, until there is a file."""
    ledger.write(ctx, "start")
    with transaction.atomic():
        Group.objects.create(name=f"{name} {ctx.attempt}")
        ledger.write(ctx, "holds")
        _until(path)
    ledger.write(ctx, "finish")
    return os.getpid()


@backwave.job("ground.swallow", retry=ONCE)
def swallow() -> str:
    """Break the transaction, and return as if nothing had been."""
    with transaction.atomic():
        Group.objects.create(name="swallowed")
        try:
            Group.objects.create(name="swallowed")
        except IntegrityError:
            return "ok"
    return "never"


@backwave.job("ground.leave_open", retry=ONCE)
def leave_open() -> None:
    """Begin a transaction and leave it to others to end it."""
    transaction.set_autocommit(autocommit=False)
    Group.objects.create(name="left open")


@backwave.job("ground.leave_broken", retry=ONCE)
def leave_broken() -> None:
    """Begin a transaction behind Django's back, and break it."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        Group.objects.create(name="left broken")


@backwave.job("ground.spoil_session", retry=ONCE)
def spoil_session() -> None:
    """Leave settings behind in a session that another attempt gets."""
    with connection.cursor() as cursor:
        cursor.execute("SET search_path TO pg_catalog")
        cursor.execute("SET statement_timeout = '1ms'")
        cursor.execute("SET ROLE pg_read_all_data")


@backwave.job("ground.fork", retry=ONCE)
def fork(ctx: backwave.JobContext = _CONTEXT) -> int:
    """Fork, and let both return."""
    Group.objects.count()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        Group.objects.count()
    ledger.write(ctx, "finish")
    return child


@backwave.job("ground.block_signals", retry=ONCE)
def block_signals() -> None:
    """Block in this thread what tells a process to end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})


@backwave.job("ground.recurse", retry=ONCE)
def recurse() -> None:
    """Go deeper, for ever."""

    def deeper() -> None:
        deeper()

    deeper()


@backwave.job("ground.devour", retry=ONCE)
def devour() -> None:
    """Take more memory than there is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**28, hard))
    try:
        bytearray(2**32)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@backwave.job("ground.seize_interpreter", retry=QUICK)
def seize_interpreter(seconds: float, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Hold the interpreter, so that no other thread of the process does anything."""
    ledger.write(ctx, "start")
    if ctx.attempt == 1:
        # PyDLL keeps the lock that CDLL gives back.
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    ledger.write(ctx, "finish")


@backwave.job("ground.long", retry=QUICK)
def long(seconds: float) -> None:
    """Take long, beside many that do not."""
    _NEVER.wait(seconds)


@backwave.job("ground.short", retry=QUICK)
def short(seconds: float) -> float:
    """Take a moment; return when it was over, by the clock of this machine."""
    _NEVER.wait(seconds)
    return time.time()  # noqa: TID251 - what is measured is how long the outcome takes from here


@backwave.job(
    "ground.crowded",
    retry=backwave.Retry(
        max_attempts=200, initial=timedelta(seconds=0.1), maximum=timedelta(seconds=0.3)
    ),
)
def crowded(seconds: float) -> None:
    """Use the database for a while, and come back when there is no room."""
    Group.objects.count()
    _NEVER.wait(seconds)


@backwave.job("ground.hang", retry=ONCE, timeout=timedelta(seconds=0.5))
def hang(ctx: backwave.JobContext = _CONTEXT) -> None:
    """Hear nothing, and never end."""
    ledger.write(ctx, "start")
    _NEVER.wait()


@backwave.job(
    "ground.kill_always",
    retry=backwave.Retry(max_attempts=2, initial=timedelta(0), maximum=timedelta(0)),
)
def kill_always(ctx: backwave.JobContext = _CONTEXT) -> None:
    """Take the whole process down, each time."""
    ledger.write(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@backwave.job(
    "ground.hang_thrice",
    retry=backwave.Retry(max_attempts=3, initial=timedelta(0), maximum=timedelta(0)),
    timeout=timedelta(seconds=0.5),
)
def hang_thrice(ctx: backwave.JobContext = _CONTEXT) -> None:
    """Hear nothing, and never end, in any attempt."""
    ledger.write(ctx, "start")
    _NEVER.wait()


SOON = backwave.Retry(max_attempts=3, initial=timedelta(seconds=3))


@backwave.job("ground.fail_first", retry=SOON)
def fail_first(ctx: backwave.JobContext = _CONTEXT) -> None:
    """Fail on the first attempt."""
    ledger.write(ctx, "start")
    if ctx.attempt == 1:
        raise ValueError("only this time")
    ledger.write(ctx, "finish")


@backwave.job("ground.alone", retry=QUICK, limit=backwave.Limit("ground.alone", 1))
def alone(path: str, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Run until there is a file, and no other of its kind beside it."""
    ledger.write(ctx, "start")
    _until(path)
    ledger.write(ctx, "finish")


@backwave.job("ground.in_turn", retry=QUICK, limit=backwave.Limit("ground.in_turn", 1))
def in_turn(seconds: float, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Take a while, and no other of its kind at the same time."""
    ledger.write(ctx, "start")
    _NEVER.wait(seconds)
    ledger.write(ctx, "finish")


@backwave.job("ground.heed", retry=SOON)
def heed(ctx: backwave.JobContext = _CONTEXT) -> None:
    """Look every half a second whether to stop, and go on for ever otherwise."""
    ledger.write(ctx, "start")
    while True:
        ctx.wait(timedelta(seconds=0.5))
        ctx.raise_if_cancelled()


@backwave.job("ground.ignore", retry=SOON)
def ignore(path: str, then: str, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Run until there is a file, whatever is asked meanwhile; then fail, or do not."""
    ledger.write(ctx, "start")
    _until(path)
    if then == "fail":
        raise ValueError("as it was told to")
    ledger.write(ctx, "finish")


#: The waits are 1.5, 2.25 and 3.375 s, each moved by a tenth at most.
GROWING = backwave.Retry(max_attempts=4, initial=timedelta(seconds=1.5), multiplier=1.5, jitter=0.1)


@backwave.job("ground.fail_always", retry=GROWING)
def fail_always(ctx: backwave.JobContext = _CONTEXT) -> None:
    """Fail, each time."""
    ledger.write(ctx, "start")
    raise ValueError("as always")


#: Far longer than a thousand bodies take to fail.
TOGETHER = backwave.Retry(max_attempts=2, initial=timedelta(minutes=10), jitter=0.2)


@backwave.job("ground.fail_together", retry=TOGETHER)
def fail_together(path: str, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Fail on the first attempt, with all the others; come back, and wait for a file."""
    if ctx.attempt == 1:
        raise ValueError("the partner is away")
    ledger.write(ctx, "start")
    _until(path)
    ledger.write(ctx, "finish")


@backwave.job("ground.next_in_line", retry=QUICK)
def next_in_line(path: str, ctx: backwave.JobContext = _CONTEXT) -> None:
    """Have a successor in the same queue, before this one ends, until there is a file."""
    ledger.write(ctx, "start")
    if not Path(path).exists():
        next_in_line.options(queue=ctx.queue, priority=50).enqueue(path)
