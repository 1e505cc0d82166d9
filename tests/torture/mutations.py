"""Bugs made on purpose in the SQL of the store: an instrument that misses one is no instrument.

A mutation replaces words in every statement that has them, those that are made later included,
for as long as its context lasts. Patterns are matched against text in which any run of white
space counts as one blank.
"""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from backwave_django.core.jobs import NewJob
from backwave_django.core.observing import Ended
from backwave_django.jobs.observers import Observers
from backwave_django.store import capping, observing
from backwave_django.store.adapter import DatabaseStore
from backwave_django.store.lanes import LaneMemory
from backwave_django.store.names import Statement
from tests.torture import checks

BOTH = ("postgresql", "sqlite")
POSTGRESQL = ("postgresql",)


class Swap(NamedTuple):
    """``old`` (a pattern) becomes ``new``."""

    old: str
    new: str


class Mutation(NamedTuple):
    """A bug, the databases whose statements it is in, and the check that has to notice."""

    name: str
    check: checks.Check
    swaps: tuple[Swap, ...]
    vendors: tuple[str, ...] = POSTGRESQL


class Mutant:
    """Statements with other words, and how to get the old ones back."""

    def __init__(self, swaps: tuple[Swap, ...]) -> None:
        self._swaps = swaps
        self._healthy: list[tuple[Statement, dict[str, str], bytes, tuple[str, ...]]] = []

    def infect(self, statement: Statement) -> None:
        """Change one statement, if it has the words."""
        texts = {vendor: self._swapped(statement.on(vendor)) for vendor in BOTH}
        if all(texts[vendor] == _flat(statement.on(vendor)) for vendor in BOTH):
            return
        before = (dict(statement._texts), statement.numbered, statement.names)
        self._healthy.append((statement, *before))
        for vendor in BOTH:
            # Braces are doubled, because a statement's text is a format.
            made = Statement.__new__(Statement)
            _INIT(made, texts[vendor].replace("{", "{{").replace("}", "}}"))
            statement._texts[vendor] = made._texts[vendor]
            if vendor == "sqlite":
                statement._texts["sqlite3"] = made._texts["sqlite3"]
            else:
                statement.numbered, statement.names = made.numbered, made.names

    def _swapped(self, text: str) -> str:
        text = _flat(text)
        for swap in self._swaps:
            text = re.sub(swap.old, swap.new, text)
        return text

    def heal(self) -> None:
        """Give everybody their words back."""
        for statement, texts, numbered, names in reversed(self._healthy):
            statement._texts = texts
            statement.numbered, statement.names = numbered, names

    @property
    def has_spread(self) -> bool:
        """Whether any statement had the words."""
        return bool(self._healthy)


_INIT = Statement.__init__


def _flat(text: str) -> str:
    return " ".join(text.split())


@contextmanager
def mutated(swaps: tuple[Swap, ...]) -> Iterator[Mutant]:
    """Let the bug live."""
    mutant = Mutant(swaps)

    def made(statement: Statement, text: str) -> None:
        _INIT(statement, text)
        mutant.infect(statement)

    try:
        for found in gc.get_objects():
            if isinstance(found, Statement):
                mutant.infect(found)
        with patch.object(Statement, "__init__", made):
            yield mutant
    finally:
        mutant.heal()


@contextmanager
def limits_counted_where_they_are_locked() -> Iterator[None]:
    """Count in the statement that waits for the lock, which counts what was before it waited."""
    counting = Statement(
        'SELECT q.name, q."limit" - (SELECT count(*) FROM {lease} l WHERE l.queue = q.name),'
        " q.rate, q.rate_full_at"
        ' FROM {queue} q WHERE q.name {any:queues} AND q."limit" IS NOT NULL'
        " ORDER BY q.name FOR NO KEY UPDATE OF q"
    )
    nothing = Statement("SELECT q.name, 0 FROM {queue} q WHERE q.name {any:queues} AND 1 = 0")
    with patch.multiple(capping, _HELD_QUEUES=counting, _QUEUE_LEASES=nothing):
        yield


@contextmanager
def floors_trusted_for_ever() -> Iterator[None]:
    """Never look below the last row again, while batches are full."""
    with patch.object(LaneMemory, "_can_trust", lambda *_args, **_named: True):
        yield


@contextmanager
def observers_told_twice() -> Iterator[None]:
    """Make two jobs of an observer for one end."""
    healthy = Observers.jobs

    def twice(self: Observers, ended: Ended) -> tuple[NewJob, ...]:
        return (*healthy(self, ended), *healthy(self, ended))

    with patch.object(Observers, "jobs", twice):
        yield


@contextmanager
def observers_told_after_the_commit() -> Iterator[None]:
    """Insert the jobs of observers when their outcomes are in, in a transaction of their own."""
    insert, report = observing._insert, DatabaseStore.report
    later: list[tuple[Any, Any]] = []

    def remember(room: Any, ends: Any) -> None:
        later.append((room, ends))

    def report_first(self: DatabaseStore, outcomes: Any, *, now: Any) -> Any:
        answer = report(self, outcomes, now=now)
        while later:
            insert(*later.pop())
        return answer

    with (
        patch.object(observing, "_insert", remember),
        patch.object(DatabaseStore, "report", report_first),
    ):
        yield


_QUEUED_ROWS_ARE_TRUSTED = Swap(r"(s\.parent_id = o\.id) FOR UPDATE OF s SKIP LOCKED", r"\1")

MUTATIONS = (
    Mutation(
        "an outcome needs some lease of its job, not its own",
        checks.late_outcome_changes_nothing,
        (
            Swap(r"SELECT i\.lease_id FROM input i", "SELECT i.job_id AS lease_id FROM input i"),
            Swap(r"WHERE l\.id = o\.lease_id", "WHERE l.job_id = o.lease_id"),
            Swap(r"JOIN input i ON i\.lease_id = r\.id", "JOIN input i ON i.job_id = r.job_id"),
        ),
    ),
    Mutation(
        "a claim waits for rows that others hold",
        checks.claim_steps_over_a_held_row,
        (Swap(r"FOR UPDATE SKIP LOCKED\) j", "FOR UPDATE) j"),),
    ),
    Mutation(
        "a report waits for leases that others hold",
        checks.report_steps_over_a_held_lease,
        (Swap(r"FOR UPDATE SKIP LOCKED\) h", "FOR UPDATE) h"),),
    ),
    Mutation(
        "a limit is not locked before it is counted",
        checks.limit_holds_when_another_claims_after_the_count,
        (Swap("FOR NO KEY UPDATE OF q SKIP LOCKED", ""),),
    ),
    Mutation(
        "an edge is counted by everybody who finds it",
        checks.edge_counts_once_when_two_settle_it,
        (Swap("AND settled IS NOT TRUE RETURNING id", "RETURNING id"),),
    ),
    Mutation(
        "a parent is not queued beside a row that another is about to remove",
        checks.edge_left_over_by_two_is_settled_all_the_same,
        (_QUEUED_ROWS_ARE_TRUSTED,),
    ),
    Mutation(
        "a parent is not queued beside a row that another may take",
        checks.edge_that_is_linked_during_the_sweep_is_settled,
        (_QUEUED_ROWS_ARE_TRUSTED,),
    ),
    Mutation(
        "a lapse is not looked at again when it is ended",
        checks.renewed_lease_is_not_swept,
        (Swap(r"l\.expires_at <= %\(lapsed_by\)s::timestamptz", "true"),),
    ),
    Mutation(
        "a requested cancellation is overlooked",
        checks.requested_cancellation_wins,
        (Swap("WHEN r.cancel_requested THEN 'cancelled'", ""),),
    ),
    Mutation(
        "a lapse spends nothing",
        checks.lapse_spends_an_attempt,
        (Swap(r"v\.kind IN \([^)]*\)", "v.kind IN ('failed')"),),
    ),
    Mutation(
        "a job that has ended keeps its key",
        checks.ended_job_lets_go_of_its_key,
        (
            Swap(r"CASE WHEN v\.ended THEN NULL ELSE j\.unique_live END", "j.unique_live"),
            Swap(
                r"CASE WHEN %\(terminal_at\)s IS NULL THEN unique_live ELSE NULL END",
                "unique_live",
            ),
        ),
        BOTH,
    ),
    Mutation(
        "a lease is renewed for whoever names it",
        checks.lease_of_another_pump_is_lost,
        (Swap(r"AND \(l\.pump_id = %\(pump\)s\) IS TRUE", ""),),
    ),
    Mutation(
        "a pause does not concern lanes that are known",
        checks.paused_queue_yields_nothing,
        (Swap(r"AND \(NOT q\.paused OR q\.paused_until <= %\(now\)s\)", ""),),
    ),
    Mutation(
        "what is late is claimed all the same",
        checks.late_job_is_not_claimed,
        (Swap(r"AND \([bj]\.deadline IS NULL OR [bj]\.deadline > %\(now\)s\)", ""),),
        BOTH,
    ),
    Mutation(
        "a purge takes parents that are waited for",
        checks.purge_spares_a_parent_that_is_waited_for,
        (Swap(r"WHERE d\.parent_id = j\.id AND c\.state", "WHERE 1 = 0 AND c.state"),),
        BOTH,
    ),
    Mutation(
        "a claim does not count",
        checks.claim_counts_a_run,
        (Swap(r"run = (j\.)?run \+ 1", r"run = \1run"),),
        BOTH,
    ),
)
