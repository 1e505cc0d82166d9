"""Large states of the tables, in which claims and drains must be as quick as over empty ones."""

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from backwave_django.conf import get_config
from backwave_django.core.contract import ClaimRequest
from backwave_django.core.events import AttemptSucceeded
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.outcomes import Outcome
from backwave_django.core.retries import Retry, RetryTable
from backwave_django.core.verdicts import judge
from backwave_django.jobs.ids import new_id
from backwave_django.models import Job
from backwave_django.store import PumpStore, open_pump_store
from backwave_django.store.names import Statement
from testproject.bench.ledger import END, START
from testproject.bench.workers import wait_until
from testproject.bench.workloads import Bench

#: Queues of the backlog; the worker serves all of them.
QUEUES: Final = ("bench", "bench-b", "bench-c")
CLAIMS: Final = 500
CLAIM_SIZE: Final = 20
_WATCHED: Final = ("job", "lease", "outcome", "dependency")
_LEASE: Final = timedelta(minutes=1)

_ID: Final = {"postgresql": "gen_random_uuid()", "sqlite": "lower(hex(randomblob(16)))"}
_NUMBERS: Final = {
    "postgresql": "generate_series(0, %s - 1) AS s(g)",
    "sqlite": "(WITH RECURSIVE s(g) AS (SELECT 0 UNION ALL SELECT g + 1 FROM s WHERE g + 1 < %s)"
    " SELECT g FROM s) AS s",
}
_AGO: Final = {
    "postgresql": "t.due_at - interval '1 hour'",
    "sqlite": "datetime(t.due_at, '-1 hour')",
}
_LATER: Final = {
    "postgresql": "t.due_at + interval '1 year'",
    "sqlite": "datetime(t.due_at, '+1 year')",
}


def _copies(bench: Bench, rows: int, **values: str) -> None:
    """Insert ``rows`` copies of a job of the benchmark, with some columns computed anew."""
    bench.contestant.enqueue("noop", 0)
    template = Job.objects.order_by("-id").values_list("pk", flat=True)[0]
    values = {"id": _ID[connection.vendor], **values}
    names = [field.column for field in Job._meta.concrete_fields]
    chosen = ", ".join(values.get(name, f't."{name}"') for name in names)
    listed = ", ".join(f'"{name}"' for name in names)
    written = template if connection.vendor == "postgresql" else template.hex
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO backwave_job ({listed}) SELECT {chosen}"
            f" FROM backwave_job t, {_NUMBERS[connection.vendor]} WHERE t.id = %s",
            [rows, written],
        )


def _backlog(bench: Bench, rows: int) -> None:
    queue = (
        f"CASE g %% 3 WHEN 0 THEN '{QUEUES[0]}' WHEN 1 THEN '{QUEUES[1]}' ELSE '{QUEUES[2]}' END"
    )
    _copies(bench, rows, queue=queue, priority="g %% 5 - 2", due_at=_AGO[connection.vendor])


def _future(bench: Bench, rows: int) -> None:
    _copies(bench, rows, priority="-100", due_at=_LATER[connection.vendor])


def _finished(bench: Bench, rows: int) -> None:
    rows = 4 * rows if connection.vendor == "postgresql" else rows * 23 // 100
    _copies(bench, rows, state="'succeeded'", cause="'returned'", terminal_at="t.due_at", run="1")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO backwave_outcome (job_id, run, attempt, kind, state, cause, finished_at)"
            " SELECT id, 1, 1, 'succeeded', 'succeeded', 'returned', terminal_at FROM backwave_job"
            " WHERE state = 'succeeded'"
        )


def _nothing(_bench: Bench, _rows: int) -> None:
    """The tables stay as they are; what is special happens while the drain runs."""


def _never_analysed(bench: Bench, rows: int) -> None:
    """Statistics say that the tables are empty, and nobody looks again."""
    with connection.cursor() as cursor:
        for name in _WATCHED:
            cursor.execute(f"ALTER TABLE backwave_{name} SET (autovacuum_enabled = false)")
            cursor.execute(f"ANALYZE backwave_{name}")
    _copies(bench, rows // 5, due_at=_AGO[connection.vendor])


STATES: Final[dict[str, Callable[[Bench, int], None]]] = {
    "backlog": _backlog,
    "future": _future,
    "finished": _finished,
    "snapshot": _nothing,
    "stale": _never_analysed,
}


@contextmanager
def _open_snapshot() -> Iterator[None]:
    """A transaction that was begun before the drain, and keeps every dead row in its place."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM backwave_lease")
        yield
    finally:
        other.close()


def flat(bench: Bench, state: str, *, rows: int, explain: bool) -> dict[str, Any]:
    """The drain in a large state against the drain over empty tables, and what a claim takes."""
    if state in {"snapshot", "stale"} and connection.vendor != "postgresql":
        raise SystemExit(f"the state {state!r} is one of PostgreSQL")
    os.environ["BENCH_QUEUES"] = ",".join(QUEUES)
    jobs = max(bench.jobs, 20 * bench.jobs if state == "snapshot" else 0)
    bench.contestant.clear()
    empty = _drained(bench, jobs, fill=True)
    bench.contestant.clear()
    STATES[state](bench, rows)
    if state != "stale":
        _settled()
    with ExitStack() as stack:
        stack.callback(_look_after_tables)
        if state == "snapshot":
            stack.enter_context(_open_snapshot())
        fill = state not in {"backlog", "stale"}
        rate = _drained(bench, jobs, fill=fill)
        found = _claims(bench, fill=fill, explain=explain)
    return {"rows": rows, "rate_empty": empty, "rate": rate, "flatness": rate / empty, **found}


def _look_after_tables() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for name in _WATCHED:
                cursor.execute(f"ALTER TABLE backwave_{name} RESET (autovacuum_enabled)")


def _settled() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def _drained(bench: Bench, jobs: int, *, fill: bool) -> float:
    """Jobs a second over the first ``jobs`` of them; there may be more."""
    bench.ledger.clear()
    if fill:
        bench.fill("noop", jobs)
    with bench.workers(bench.processes):
        wait_until(bench.drained(jobs), seconds=10 * bench.seconds, what="last end")
    entries = list(bench.ledger.entries())
    first = min(entry.at for entry in entries if entry.kind == START)
    ends = sorted(entry.at for entry in entries if entry.kind == END)
    return jobs / (ends[jobs - 1] - first)


def _claims(bench: Bench, *, fill: bool, explain: bool) -> dict[str, Any]:
    """Milliseconds of one pump's claims, and the plans that its session keeps."""
    if fill:
        bench.fill("noop", CLAIMS * CLAIM_SIZE)
    store = open_pump_store(
        "default",
        get_config().store_settings,
        application_name="bench",
        lease_duration=_LEASE,
    )
    pump, retries = new_id(), RetryTable(default=Retry(), own={})
    request = ClaimRequest(
        pump_id=pump, queues=QUEUES, limit=CLAIM_SIZE, lease_duration=_LEASE, retries=retries
    )
    took: list[float] = []
    outcomes: list[Outcome] = []
    try:
        for _ in range(CLAIMS):
            now = timezone.now()
            began = time.perf_counter()
            # As a pump does: the first claims, all others report as well.
            if outcomes:
                _, answer = store.turn(outcomes, request, now=now)
            else:
                answer = store.claim(request, now=now)
            took.append(1000 * (time.perf_counter() - began))
            outcomes = [_returned(job) for job in answer.jobs]
        cuts = statistics.quantiles(took, n=100)
        plans = {"plans": _plans(store)} if explain and connection.vendor == "postgresql" else {}
    finally:
        store.close()
    return {"claim_p50_ms": cuts[49], "claim_p95_ms": cuts[94], **plans}


def _returned(job: LeasedJob) -> Outcome:
    now = timezone.now()
    ended = AttemptSucceeded(job.lease_id, now, now)
    return judge(ended, job=job, signalled=None, now=now)


def _plans(store: PumpStore) -> str:
    """What the planner keeps for each statement of this session, made when it first ran."""
    prepared = Statement("SELECT name, statement FROM pg_prepared_statements ORDER BY name")
    texts: list[str] = []
    for name, text in store.executor.fetch(prepared, {}):
        count = len(set(re.findall(r"\$\d+", text)))
        explain = Statement("SELECT 1")
        given = f"({', '.join(['NULL'] * count)})" if count else ""
        explain.numbered = f"EXPLAIN EXECUTE {name}{given}".encode()
        lines = [row[0] for row in store.executor.fetch(explain, {})]
        texts.append("\n".join([text.strip(), "", *lines, ""]))
    return "\n".join(texts)
