"""A database that goes away, and comes back."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

ENQUEUE = "from tests.fieldapp import jobs; jobs.until.enqueue_many([({gate!r},)] * 2)"


def test_f022_an_outage_costs_no_outcome_and_one_line_each_way(field, ledger, postgres_server):
    url = postgres_server.create_database("outage")
    environ = {"DATABASE_URL": url}
    assert field.manage("migrate", "-v0", environ=environ).wait() == 0
    code = ENQUEUE.format(gate=str(field.gate))
    assert field.manage("shell", "-v0", "-c", code, environ=environ).wait() == 0
    process = field.runpumps(environ=environ, POOL_SIZE=1)
    field.until(lambda: ledger.of("start"))
    postgres_server.stop("immediate")
    field.open_gate()
    field.until(lambda: ledger.of("finish"))
    field.until(lambda: "degraded" in process.log)
    postgres_server.start()
    field.until(lambda: states(url) == ["succeeded", "succeeded"])
    field.until(lambda: "healed" in process.log)
    process.terminate()
    assert process.wait() == 0
    assert [entry.attempt for entry in ledger.of("start")] == [1, 1]
    assert process.log.count("degraded") == process.log.count("healed") == 1
    assert process.log.count("connection for hints is lost") <= 1


def test_a_process_that_is_started_before_its_database_says_so(field, postgres_server):
    url = postgres_server.create_database("late")
    postgres_server.stop()
    process = field.runpumps(environ={"DATABASE_URL": url})
    assert process.wait() == 1
    assert "refused" in process.log


@pytest.mark.vendor("sqlite")
def test_f095_a_fault_that_time_does_not_heal_halts_the_pumps(field, ledger, tmp_path):
    path = tmp_path / "own.sqlite3"
    environ = {"DATABASE_URL": f"sqlite:///{path}"}
    assert field.manage("migrate", "-v0", environ=environ).wait() == 0
    process = field.runpumps(environ=environ, LEASE_DURATION=2, HEARTBEAT_INTERVAL=0.4)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as database:
        field.until(lambda: database.execute("SELECT 1 FROM backwave_pump").fetchall())
        database.execute("DROP TABLE backwave_lease")
        assert process.wait() == 3
        (row,) = database.execute("SELECT health, problem FROM backwave_pump").fetchall()
    assert row[0] == "halted"
    assert "backwave_lease" in row[1]
    assert "halted" in process.log


def states(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT state FROM backwave_job").fetchall()
    return sorted(state for (state,) in rows)
