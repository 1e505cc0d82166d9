"""A database that goes away, and comes back."""

import psycopg

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


def states(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT state FROM backwave_job").fetchall()
    return sorted(state for (state,) in rows)
