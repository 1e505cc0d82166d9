import json
import logging
import socket
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

import backwave_django as backwave
from backwave_django.core import events as e
from backwave_django.core.bounds import (
    MAX_ERROR_CLASS_CHARS,
    MAX_MESSAGE_CHARS,
    MAX_OUTPUT_BYTES,
    MAX_TRACEBACK_CHARS,
)
from backwave_django.core.commands import CancelReason
from backwave_django.core.leases import Progress
from backwave_django.core.outcomes import Unroutable
from backwave_django.pumps.attempts import Assignment
from backwave_django.pumps.joblog import keep_log_lines
from backwave_django.pumps.progress import ProgressBoard
from tests.pumps.attempting import Bench, leased


@pytest.fixture
def bench():
    return Bench()


@backwave.job("attempts.returns")
def returns(value: object = None) -> object:
    return value


@backwave.job("attempts.returns_deep")
def returns_deep(depth: int) -> object:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@backwave.job("attempts.raises")
def raises(what: str) -> None:
    error = ODD[what]()
    raise error


@backwave.job("attempts.signals")
def signals(what: str) -> None:
    raise {
        "snooze": backwave.Snooze(timedelta(seconds=7)),
        "retry": backwave.RetryAfter(timedelta(seconds=5), "gateway is busy"),
        "give_up": backwave.GiveUp("no such order"),
        "cancelled": backwave.Cancelled(),
    }[what]


@backwave.job("attempts.tags")
def tags(ctx: backwave.JobContext = backwave.context()) -> None:
    ctx.add_tags(tenant="acme")
    logging.getLogger("shop").warning("packing %s", "now")
    raise ValueError("after the tags")


def forever() -> None:
    forever()


@backwave.job("attempts.recursion")
def recursion() -> None:
    forever()


@backwave.job("attempts.progress")
def progress(ctx: backwave.JobContext = backwave.context()) -> None:
    ctx.progress(3, 10, "x\x00y")
    SEEN.extend(BOARD[0].take())


SEEN: list[Progress] = []
BOARD: list[ProgressBoard] = []


class NoInit(Exception):
    def __init__(self, first, second):
        self.first, self.second = first, second


class BadStr(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class BadStrAndRepr(BadStr):
    def __repr__(self):
        raise SystemExit(3)


class StrOfBytes(Exception):
    def __str__(self):
        return b"bytes"  # noqa: PLE0307 - the fault that the test is about


def nested(depth: int) -> BaseException:
    error: Exception = ValueError("the innermost")
    for level in range(depth):
        error = ExceptionGroup(f"level {level}", [error])
    return error


def holding(thing: object) -> Exception:
    try:
        raise NoInit(thing, thing) from OSError(thing)  # noqa: TRY301 - for its cause
    except NoInit as error:
        return error


ODD: dict[str, Callable[[], BaseException]] = {
    "system exit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "generator exit": GeneratorExit,
    "memory": MemoryError,
    "lock": lambda: holding(threading.Lock()),
    "socket": lambda: holding(socket.socket.__class__),
    "no init": lambda: NoInit(1, 2),
    "bad str": BadStr,
    "bad str and repr": BadStrAndRepr,
    "str of bytes": StrOfBytes,
    "long name": type("N" * 300, (Exception,), {}),
    "odd module": type("Odd", (Exception,), {"__module__": None}),
    "nested": lambda: nested(50),
    "nested deep": lambda: nested(2_000),
    "long text": lambda: ValueError("x" * 100_000),
    "nul": lambda: ValueError("bad \x00 byte"),
    "surrogate": lambda: OSError(b"\xff".decode("utf-8", "surrogateescape")),
    "unicode": lambda: ValueError("žīš 🐟"),
    "bytes": lambda: ValueError(b"\xff"),
}


def test_what_a_body_returns_is_its_output(bench):
    ended = bench.run(returns, {"a": [1, None]})
    assert isinstance(ended, e.AttemptSucceeded)
    assert json.loads(ended.output or "") == {"a": [1, None]}
    assert bench.run(returns, None).output is None
    assert bench.run(returns, "null").output == '"null"'


@pytest.mark.parametrize("what", ODD)
def test_f109_every_odd_exception_is_a_failure_with_clean_text(bench, what, caplog):
    ended = bench.run(raises, what)
    assert isinstance(ended, e.AttemptFailed)
    failure = ended.failure
    assert failure.error_class
    assert len(failure.error_class) <= MAX_ERROR_CLASS_CHARS
    assert len(failure.message) <= MAX_MESSAGE_CHARS
    assert len(failure.traceback) <= MAX_TRACEBACK_CHARS
    text = "".join((failure.error_class, failure.message, failure.traceback))
    assert "\x00" not in text
    text.encode("utf-8")
    assert len(failure.fingerprint) == 16
    (record,) = caplog.records
    logging.Formatter().format(record).encode("utf-8")


def test_f109_readable_text_survives(bench):
    assert bench.run(raises, "unicode").failure.message == "žīš 🐟"
    assert bench.run(raises, "nul").failure.message == "bad \\x00 byte"
    assert bench.run(raises, "surrogate").failure.message == "\\udcff"
    assert "cannot be shown" in bench.run(raises, "bad str and repr").failure.message
    assert bench.run(raises, "str of bytes").failure.message == "StrOfBytes()"


def test_f110_endless_recursion_is_a_failure_with_a_short_traceback(bench):
    ended = bench.run(recursion)
    assert isinstance(ended, e.AttemptFailed)
    assert ended.failure.error_class == "RecursionError"
    assert len(ended.failure.traceback) < 5_000


def test_f110_an_output_nested_too_deeply_is_refused(bench):
    ended = bench.run(returns_deep, 10_000)
    assert isinstance(ended, e.AttemptOutputRefused)
    assert "output" in ended.failure.message


def test_an_output_over_its_cap_is_refused(bench):
    ended = bench.run(returns, "x" * 100)
    assert isinstance(ended, e.AttemptSucceeded)

    @backwave.job("attempts.large")
    def large() -> str:
        return "é" * (MAX_OUTPUT_BYTES // 2)

    ended = bench.run(large)
    assert isinstance(ended, e.AttemptOutputRefused)
    assert "1,048,578 bytes" in ended.failure.message


def test_an_output_that_is_no_value_is_refused(bench):
    @backwave.job("attempts.lock")
    def lock() -> object:
        return threading.Lock()

    assert isinstance(bench.run(lock), e.AttemptOutputRefused)


def test_signals_say_how_the_attempt_ends(bench):
    snoozed = bench.run(signals, "snooze")
    assert isinstance(snoozed, e.AttemptSnoozed)
    assert snoozed.delay == timedelta(seconds=7)
    retried = bench.run(signals, "retry")
    assert isinstance(retried, e.AttemptFailed)
    assert retried.retry_after == timedelta(seconds=5)
    assert retried.failure.message == "gateway is busy"
    assert bench.run(signals, "give_up").gave_up
    assert isinstance(bench.run(signals, "cancelled"), e.AttemptCancelled)


def test_tags_and_log_lines_ride_with_a_failure(bench):
    keep_log_lines()
    ended = bench.run(tags)
    assert json.loads(ended.tags) == {"tenant": "acme"}
    assert ended.log.endswith("WARNING shop: packing now")


def test_a_failure_is_logged_once_and_as_an_error_when_it_is_final(bench, caplog):
    bench.run(signals, "retry")
    bench.run(signals, "retry", spent=2)
    bench.run(signals, "give_up")
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "ERROR"]
    assert all(record.exc_info for record in caplog.records)
    assert all(record.job_id for record in caplog.records)


def test_tracebacks_leave_our_own_frames_out(bench):
    trace = bench.run(raises, "unicode").failure.traceback
    assert "test_attempts.py" in trace
    assert "backwave_django" not in trace


def test_a_fingerprint_groups_by_class_and_place(bench):
    first, again = bench.run(raises, "unicode"), bench.run(raises, "nul")
    other = bench.run(raises, "no init")
    assert first.failure.fingerprint == again.failure.fingerprint
    assert first.failure.fingerprint != other.failure.fingerprint


def test_a_job_that_this_process_cannot_run_is_handed_back(bench):
    unknown = bench.run("attempts.gone")
    assert unknown.reason is Unroutable.UNKNOWN_TYPE
    assert "attempts.gone" in unknown.failure.message
    assert bench.run(returns, payload_version=2).reason is Unroutable.NEWER_VERSION
    assert bench.run(returns, 1, 2, 3).reason is Unroutable.ARGUMENTS
    assert isinstance(bench.run(returns, payload="no json"), e.AttemptUndecodable)


def test_a_body_that_was_asked_to_stop_before_it_began_is_released(bench):
    assignment = Assignment(leased(returns))
    assignment.signals.stop()
    assert isinstance(bench.attempts.run(assignment), e.AttemptReleased)
    assignment = Assignment(leased(returns))
    assignment.signals.cancel(CancelReason.OPERATOR)
    assert isinstance(bench.attempts.run(assignment), e.AttemptReleased)


def test_progress_is_kept_until_it_is_taken_and_forgotten_at_the_end(bench):
    BOARD[:] = [bench.progress]
    bench.run(progress)
    (note,) = SEEN
    assert (note.done, note.total, note.message) == (3, 10, "x\\x00y")
    assert bench.progress.take() == ()


def test_middleware_wraps_the_body_in_the_order_of_the_list():
    def naming(name):
        def wrap(handler):
            def around(ctx):
                return [name, ctx.wire_name, handler(ctx)]

            return around

        return wrap

    bench = Bench(middleware=(naming("outer"), naming("inner")))
    ended = bench.run(returns, 1)
    assert isinstance(ended, e.AttemptSucceeded)
    assert json.loads(ended.output or "") == [
        "outer",
        "attempts.returns",
        ["inner", "attempts.returns", 1],
    ]
