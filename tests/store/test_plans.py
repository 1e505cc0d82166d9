"""The hot statements never walk over the backlog."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from backwave_django.core.contract import History
from backwave_django.jobs.ids import new_id
from backwave_django.store import PumpStore, default_store
from backwave_django.store.applied import ANY_LEASE
from backwave_django.store.applying_postgresql import _STATEMENTS, report_parameters
from backwave_django.store.heartbeats import _AT_ONCE
from backwave_django.store.lanes import Lane
from backwave_django.store.leases import _lapsed_statement, _orphans
from backwave_django.store.names import Statement
from backwave_django.store.purging import _old
from backwave_django.store.survey import _AFTER, _keyed, _plain
from backwave_django.store.sweeping import _late
from backwave_django.store.taking import _TAKE_PLAIN, _candidates, plain_parameters
from backwave_django.store.turning import _STATEMENTS as _TURNS
from tests.builders import SECOND, T0, beat, claim_request, new_job, succeeded

postgres = pytest.mark.vendor("postgresql")

BACKLOG = 20_000
JOBS = "backwave_job"
GROWING = {JOBS, "backwave_lease", "backwave_dependency", "backwave_outcome"}


@pytest.fixture
def fresh_backlog(store: PumpStore) -> PumpStore:
    """A store over 20,000 due jobs that no statistics know of."""
    template = new_job(1)
    for start in range(0, BACKLOG, 5_000):
        default_store().enqueue(
            [
                replace(template, id=new_id(), due_at=T0 + number * SECOND / 1000)
                for number in range(start, start + 5_000)
            ]
        )
    return store


@pytest.fixture
def backlog(fresh_backlog: PumpStore) -> PumpStore:
    """The same, with statistics."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return fresh_backlog


def plan(
    store: PumpStore, statement: Statement, parameters: dict[str, Any]
) -> list[dict[str, Any]]:
    """Run a statement; return the nodes of the plan that the pump's session keeps for it."""
    store.executor.fetch(statement, parameters)
    return kept_plan(store, statement)


def kept_plan(store: PumpStore, statement: Statement) -> list[dict[str, Any]]:
    """Return the nodes of the plan that this session made when it first ran the statement."""
    prepared = Statement("SELECT name, statement FROM pg_prepared_statements")
    text = statement.numbered.decode()
    ((name, _),) = [row for row in store.executor.fetch(prepared, {}) if row[1] == text]
    explain = Statement("SELECT 1")
    nothing = ", ".join(["NULL"] * len(statement.names))
    explain.numbered = f"EXPLAIN (FORMAT JSON) EXECUTE {name}({nothing})".encode()
    ((found,),) = store.executor.fetch(explain, {})
    return list(nodes(found[0]["Plan"]))


def sqlite_steps(store: PumpStore, statement: Statement) -> list[str]:
    """Return the steps of SQLite's plan for a statement."""
    text = statement.on("sqlite3")
    explain = Statement("SELECT 1")
    explain._texts = {"sqlite3": f"EXPLAIN QUERY PLAN {text}"}
    parameters = dict.fromkeys(re.findall(r":([a-z]\w*)", text), "[]")
    return [row[3] for row in store.executor.fetch(explain, parameters)]


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)


def walks(found: list[dict[str, Any]]) -> list[str]:
    """Scans and sorts that touch the backlog: whole-table scans of jobs, and large sorts."""
    return [
        f"{node['Node Type']} {node.get('Relation Name', '')}"
        for node in found
        if (node["Node Type"] in {"Seq Scan", "Bitmap Heap Scan"} and node["Relation Name"] == JOBS)
        or (node["Node Type"] in {"Sort", "Incremental Sort"} and node["Plan Rows"] > 1_000)
    ]


def unbounded(found: list[dict[str, Any]]) -> list[str]:
    """Scans of a table that grows which no condition on an index bounds."""
    return [
        f"{node['Node Type']} {node['Relation Name']}"
        for node in found
        if node.get("Relation Name") in GROWING
        and "Scan" in node["Node Type"]
        and "Index Cond" not in node
    ]


def indexes(found: list[dict[str, Any]]) -> set[str]:
    return {
        node["Index Name"]
        for node in found
        if node.get("Relation Name") == JOBS and "Index Name" in node
    }


of_lanes = pytest.mark.parametrize(
    "queues", [("default",), ("default", "mail")], ids=["one lane", "two lanes"]
)


def known_lanes(store: PumpStore, queues: tuple[str, ...]) -> list[Lane]:
    """Return what the store knows of queues in which it has just looked: a lane in each."""
    memory = store._room.lanes
    memory.ample = None  # not the first of them alone
    lanes = memory.known(queues, now=T0 + 60 * SECOND)
    assert [lane.queue for lane in lanes] == list(queues)
    return lanes


@postgres
@of_lanes
def test_claim_reads_one_index_range_per_lane(backlog: PumpStore, queues: tuple[str, ...]) -> None:
    default_store().enqueue([new_job(1, queue="mail", due_at=T0 + 30 * SECOND)])
    request = claim_request(*queues, limit=32)
    backlog.claim(request, now=T0 + 60 * SECOND)
    room, lanes = backlog._room, known_lanes(backlog, queues)
    parameters = plain_parameters(room, request, lanes, 32, now=T0 + 60 * SECOND)
    assert len(lanes) == len(queues)
    found = plan(backlog, _TAKE_PLAIN[len(lanes) == 1], parameters)
    assert walks(found) == []
    assert indexes(found) == {"backwave_job_claim", "backwave_job_pkey"}


@postgres
def test_report_touches_its_rows_alone(backlog: PumpStore) -> None:
    jobs = backlog.claim(claim_request(limit=32), now=T0 + 60 * SECOND).jobs
    outcomes = [succeeded(job) for job in jobs]
    parameters = report_parameters(backlog._room, outcomes, fence=ANY_LEASE, now=T0)
    found = plan(backlog, _STATEMENTS[True], parameters)
    assert walks(found) == []
    assert indexes(found) == {"backwave_job_pkey"}


def turn_plan(store: PumpStore, queues: tuple[str, ...]) -> list[dict[str, Any]]:
    default_store().enqueue([new_job(2, queue="mail", due_at=T0 + 30 * SECOND)])
    request = claim_request(*queues, limit=32)
    now = T0 + 60 * SECOND
    jobs = store.claim(request, now=now).jobs
    room = store._room
    assert room.settings.history is not History.OFF
    parameters = report_parameters(room, list(map(succeeded, jobs)), fence=ANY_LEASE, now=now)
    lanes = known_lanes(store, queues)
    parameters |= plain_parameters(room, request, lanes, 32, now=now)
    return plan(store, _TURNS[True, len(lanes) == 1], parameters)


@postgres
@of_lanes
def test_turn_does_neither(backlog: PumpStore, queues: tuple[str, ...]) -> None:
    found = turn_plan(backlog, queues)
    assert walks(found) == []
    assert indexes(found) == {"backwave_job_claim", "backwave_job_pkey"}


@postgres
@of_lanes
def test_turn_needs_no_statistics(fresh_backlog: PumpStore, queues: tuple[str, ...]) -> None:
    found = turn_plan(fresh_backlog, queues)
    assert walks(found) == []
    assert indexes(found) == {"backwave_job_claim", "backwave_job_pkey"}


@postgres
@of_lanes
def test_turn_that_was_planned_over_empty_tables_reads_by_keys(
    store: PumpStore, queues: tuple[str, ...]
) -> None:
    with connection.cursor() as cursor:
        # Not even the ten pages that the planner assumes of a table it knows nothing of.
        cursor.execute("VACUUM ANALYZE backwave_job, backwave_lease, backwave_dependency")
    default_store().enqueue([new_job(number) for number in range(10, 60)])
    assert unbounded(turn_plan(store, queues)) == []


@postgres
def test_heartbeat_that_was_planned_over_empty_tables_reads_by_keys(store: PumpStore) -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE backwave_job, backwave_lease")
    store.heartbeat(beat(), now=T0)
    assert unbounded(kept_plan(store, _AT_ONCE)) == []


@postgres
def test_survey_steps_from_lane_to_lane(backlog: PumpStore) -> None:
    found = plan(backlog, _plain("postgresql"), {"queues": ["default"], "now": T0})
    assert walks(found) == []
    assert indexes(found) <= {"backwave_job_claim", "backwave_job_claim_keyed"}


@pytest.mark.vendor("sqlite")
@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (_plain("sqlite"), "backwave_job_claim"),
        (_keyed("sqlite", _AFTER), "backwave_job_claim_keyed"),
        (_candidates(keyed=False, limit=5), "backwave_job_claim"),
        (_candidates(keyed=True, limit=5), "backwave_job_claim_keyed"),
        (_late(5), "backwave_job_deadline"),
        (_orphans(5), "backwave_job_leased"),
        (_old("cancelled", 5), "backwave_job_terminal"),
        (_lapsed_statement("sqlite", 5), "backwave_lease_expires"),
    ],
)
def test_sqlite_uses_the_partial_indexes(
    store: PumpStore, statement: Statement, index: str
) -> None:
    steps = sqlite_steps(store, statement)
    assert [step for step in steps if step in {"SCAN j", "SCAN l", "SCAN backwave_job"}] == []
    assert any(f"INDEX {index} " in f"{step} " for step in steps)
