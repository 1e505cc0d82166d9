"""What field cases run."""

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection

import backwave_django as backwave
from tests.fieldapp import ledger

QUICK = backwave.Retry(max_attempts=5, initial=timedelta(0), maximum=timedelta(0), jitter=0)
ONCE = backwave.Retry(max_attempts=1)
#: Bodies that never end hang on this: nobody sets it.
_NEVER = threading.Event()


@backwave.job("field.noop")
def noop(ctx: backwave.JobContext = backwave.context()) -> None:
    """Leave one line, and nothing else."""
    ledger.write(ctx, "start")


@backwave.job("field.sleep", retry=QUICK)
def sleep(seconds: float, ctx: backwave.JobContext = backwave.context()) -> int:
    """Ignore all signals for a while."""
    ledger.write(ctx, "start")
    _NEVER.wait(seconds)
    ledger.write(ctx, "finish")
    return os.getpid()


@backwave.job("field.until", retry=QUICK)
def until(path: str, ctx: backwave.JobContext = backwave.context()) -> int:
    """Run until there is a file, whatever is asked meanwhile; note that once."""
    ledger.write(ctx, "start")
    asked = False
    while not Path(path).exists():
        _NEVER.wait(0.02)
        if ctx.stopping and not asked:
            asked = True
            ledger.write(ctx, "asked")
    ledger.write(ctx, "finish")
    return os.getpid()


@backwave.job("field.stubborn", retry=QUICK)
def stubborn(ctx: backwave.JobContext = backwave.context()) -> None:
    """Hear that the pump stops, and go on for ever all the same; the second attempt is wiser."""
    ledger.write(ctx, "start")
    if ctx.attempt == 1:
        while not ctx.stopping:
            _NEVER.wait(0.02)
        ledger.write(ctx, "asked")
        _NEVER.wait()
    ledger.write(ctx, "finish")


@backwave.job("field.fail", retry=ONCE)
def fail() -> None:
    """Fail for good."""
    raise ValueError("as it should")


@backwave.job("field.child_signals", retry=ONCE)
def child_signals() -> dict[str, object]:
    """Look at the signals that a child process of a body inherits."""
    child = subprocess.Popen(["sleep", "60"])  # noqa: S607 - found on PATH
    child.terminate()
    code = child.wait(5)
    asked = subprocess.run(
        ["grep", "SigBlk", "/proc/self/status"],  # noqa: S607 - found on PATH
        check=True,
        capture_output=True,
        text=True,
    )
    return {"code": code, "blocked": asked.stdout.split()[1]}


@backwave.job("field.leave_behind", retry=ONCE)
def leave_behind(ctx: backwave.JobContext = backwave.context()) -> None:
    """Return, and leave a thread and a pool that never end."""
    threading.Thread(target=_NEVER.wait, daemon=False).start()
    ThreadPoolExecutor(1).submit(_NEVER.wait)
    ledger.write(ctx, "finish")


@backwave.job("field.kill_process", retry=QUICK)
def kill_process(ctx: backwave.JobContext = backwave.context()) -> None:
    """Take the whole process down on the first attempt."""
    ledger.write(ctx, "start")
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    ledger.write(ctx, "finish")


@backwave.job("field.hold", retry=ONCE)
def hold(seconds: float) -> None:
    """Hold a database connection for a while."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        _NEVER.wait(seconds)


@backwave.job("field.spoil", retry=ONCE)
def spoil() -> None:
    """Leave a session behind that is nothing like it was."""
    with connection.cursor() as cursor:
        cursor.execute("SET search_path TO pg_catalog")
        cursor.execute("SET statement_timeout = 54321")
        cursor.execute("SET TimeZone = 'Asia/Kathmandu'")
        cursor.execute("SET ROLE pg_read_all_data")
        cursor.execute("SELECT pg_advisory_lock(4711)")


@backwave.job("field.tell_session", retry=ONCE)
def tell_session() -> list[str]:
    """Look at what a body finds in its session."""
    names = ("search_path", "statement_timeout", "TimeZone", "role")
    with connection.cursor() as cursor:
        return [_setting(cursor, name) for name in names]


def _setting(cursor: Any, name: str) -> str:
    cursor.execute(f"SHOW {name}")
    return str(cursor.fetchone()[0])


@backwave.job("field.break_session", retry=ONCE)
def break_session() -> None:
    """Close the session behind Django's back."""
    connection.ensure_connection()
    connection.connection.close()


if os.environ.get("FIELD_ATOMIC"):
    # Not for all processes: on SQLite whoever knows an atomic body has to be alone.

    @backwave.job("field.write_atomically", retry=QUICK, atomic=True)
    def write_atomically(
        name: str, path: str = "", ctx: backwave.JobContext = backwave.context()
    ) -> str:
        """Write a row, and run until there is a file, if one is named."""
        ledger.write(ctx, "start")
        Group.objects.create(name=f"{name} {ctx.attempt}")
        while path and not Path(path).exists():
            _NEVER.wait(0.02)
        ledger.write(ctx, "finish")
        return name


if os.environ.get("FIELD_RELEASE") == "2":

    @backwave.job("field.next_release")
    def next_release(ctx: backwave.JobContext = backwave.context()) -> None:
        """Known to the processes of the next release only."""
        ledger.write(ctx, "start")
