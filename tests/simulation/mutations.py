"""Bugs made on purpose: an instrument that misses one of these is not an instrument.

A mutation replaces some text of one function, in place, for as long as its context lasts.
"""

import __future__

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import NamedTuple

CORE = "backwave_django.core."


class Mutation(NamedTuple):
    """``old`` becomes ``new`` in the function at ``where``: a module, a colon, a dotted name.

    What shows only when several things go wrong at once is looked for from seed ``first`` on.
    """

    name: str
    where: str
    old: str
    new: str
    first: int = 0


def function_at(where: str) -> FunctionType:
    module, _, path = where.partition(":")
    found: object = import_module(CORE + module)
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    if isinstance(found, property):
        found = found.fget
    assert isinstance(found, FunctionType)
    return found


@contextmanager
def mutated(mutation: Mutation) -> Iterator[None]:
    """Let the bug live."""
    function = function_at(mutation.where)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(mutation.old) == 1, f"{mutation.name}: the code has changed"
    changed = source.replace(mutation.old, mutation.new)
    flags = __future__.annotations.compiler_flag
    code = compile(changed, inspect.getfile(function), "exec", flags, dont_inherit=True)
    names: dict[str, FunctionType] = {}
    exec(code, dict(function.__globals__), names)  # noqa: S102 - our own source, slightly wrong
    healthy = function.__code__
    function.__code__ = names[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = healthy


DRIVER = (
    Mutation(
        "an outcome is forgotten",
        "driver:Driver._judge",
        "self._holdings.buffered[event.lease_id] = verdicts.judge(",
        "_ = verdicts.judge(",
    ),
    Mutation(
        "an outcome is kept after it was answered",
        "driver:Driver._reported",
        "buffered.pop(row.lease_id, None) or",
        "buffered.get(row.lease_id, None) or",
    ),
    Mutation(
        "a busy outcome is dropped",
        "driver:Driver._reported",
        "busy[row.lease_id] = outcome",
        "outcome = None",
        first=66,
    ),
    Mutation(
        "running bodies hold no slots",
        "holdings:Holdings.free",
        "- len(self.running)",
        "- 0",
    ),
    Mutation(
        "running leases are not renewed",
        "holdings:Holdings.leases",
        "if not attempt.void]",
        "if attempt.void]",
        first=2,
    ),
    Mutation(
        "a lost lease is not abandoned",
        "driver:Driver._beaten",
        "renewal.health is LeaseHealth.LOST",
        "renewal.health is None",
    ),
    Mutation(
        "an empty poll is not followed by another",
        "pacing:Pacing.claimed",
        "now + (self._interval if busy else self._waited)",
        "now + 100_000 * self._interval",
        first=9,
    ),
    Mutation(
        "polls do not wait",
        "pacing:Pacing.claimed",
        "now + (self._interval if busy else self._waited)",
        "now",
    ),
    Mutation(
        "a drain spends an attempt",
        "verdicts:released",
        "kind=OutcomeKind.RELEASED",
        "kind=OutcomeKind.FAILED",
    ),
    Mutation(
        "a drain releases nothing",
        "driver:Driver._overdue_drain",
        "self._bodies.release(now=self._now)",
        "self._handed_back = True",
        first=31,
    ),
    Mutation(
        "a drain does not wait for outcomes",
        "holdings:Holdings.empty",
        "self.buffered or self.busy or",
        "",
        first=3,
    ),
    Mutation(
        "a drain never runs out of patience",
        "driver:Driver._overdue_drain",
        "landed or self._now >= ends_at + EXIT_GRACE",
        "landed",
        first=3,
    ),
    Mutation(
        "orphans are not recovered",
        "driver:Driver._next",
        "if self._contact.recover:",
        "if False:",
    ),
    Mutation(
        "leases are swept without contact",
        "upkeep:Contact.may_expire",
        "now - self._unbroken_since >= self._interval",
        "True",
        first=115,
    ),
    Mutation(
        "lapsed leases are not swept",
        "upkeep:Upkeep.take",
        "if may_expire or not isinstance(command, ExpireLeases):",
        "if not isinstance(command, ExpireLeases):",
    ),
    Mutation(
        "after a fault nothing is tried again",
        "upkeep:Contact.faulted",
        "self.retry_at = now + self._backoff",
        "self.retry_at = now + 100_000 * self._backoff",
    ),
    Mutation(
        "a pump that comes back late loses its leases",
        "upkeep:Contact.__init__",
        "min(MAX_BACKOFF, config.heartbeat_interval / 2)",
        "max(config.poll_interval, MAX_BACKOFF)",
    ),
    Mutation(
        "time-outs are not looked at",
        "bodies:Bodies.begin",
        "running[job.lease_id] = Attempt(job, now, timeout_at)",
        "running[job.lease_id] = Attempt(job, now, None)",
        first=12,
    ),
    Mutation(
        "slots are not replaced",
        "bodies:Bodies.overdue",
        "attempt.replace_at <= now",
        "attempt.replace_at is None",
    ),
    Mutation(
        "a requested cancellation is not signalled",
        "driver:Driver._beaten",
        "elif renewal.cancel_requested:",
        "elif False:",
    ),
    Mutation(
        "an empty inbox flushes nothing",
        "driver:Driver._flush_due",
        "isinstance(event, e.InboxEmpty)",
        "False",
    ),
    Mutation(
        "claims do not fall through",
        "dispatch:Dispatcher.shares",
        "Share((name, *(other for other in self._queues if other != name)), count)",
        "Share((name,), count)",
    ),
    Mutation(
        "credit is not paid",
        "dispatch:Dispatcher._richest",
        "self._credit[name] -= sum(weights.values())",
        "self._credit[name] -= 0",
    ),
    Mutation(
        "one attempt too many",
        "retries:due_after",
        "attempt >= policy.max_attempts",
        "attempt > policy.max_attempts",
    ),
    Mutation(
        "a hand-back spends an attempt",
        "verdicts:hand_back",
        "kind=OutcomeKind.UNROUTABLE",
        "kind=OutcomeKind.FAILED",
    ),
)
