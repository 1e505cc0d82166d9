"""A PostgreSQL that stops, hangs, or only lets itself be read, under pumps at work."""

from datetime import timedelta
from functools import partial

import pytest

from backwave_django.models import Job, Outcome, Pump
from backwave_django.monitor import database_clock
from tests.e2e.processes import Process
from tests.field import jobs
from tests.field.ground import QUICK, cpu_seconds, lines_of
from tests.field.passing import passes
from tests.field.servers import BODIES, cut, held, read_only_database
from tests.field.stranding import every_second, strand, ticks
from tests.fieldapp import jobs as field_jobs
from tests.fieldapp.ledger import now
from tests.pumps.waiting import until

LEASE = QUICK["LEASE_DURATION"]


def _degraded(process: Process, times: int) -> bool:
    return process.log.count("degraded") >= times


def test_a_restart_under_a_busy_pump_loses_nothing(field, ledger, closed, own_server):
    jobs.work.enqueue_many([(0.02,)] * 150)
    process = field.ready(POOL_SIZE=8)
    until(lambda: len(ledger.of("finish")) >= 16)
    own_server.stop()
    own_server.start()
    until(lambda: Job.objects.filter(state="succeeded").count() == 150)
    closed()
    assert field.stop(process) == [0]
    # Bodies that lost their own connection have failed; nobody's outcome was lost.
    assert {kind for (kind,) in Outcome.objects.values_list("kind")} <= {"succeeded", "failed"}


@pytest.mark.parametrize("way", ["stopped", "hanging"])
def test_no_lease_of_a_healthy_pump_is_taken_after_an_outage_longer_than_it(
    field, ledger, closed, own_server, way
):
    field_jobs.until.enqueue_many([(str(field.gate),)] * 4)
    processes = [field.ready(pumps=2, PUMPS=2, POOL_SIZE=1) for _ in range(2)]
    until(lambda: len(ledger.of("start")) == 4)
    if way == "stopped":
        own_server.stop("immediate")
    else:
        own_server.suspend()
    # Everybody finds out by himself, however silent the server is.
    until(lambda: all(process.log.count("degraded") == 2 for process in processes))
    passes(LEASE + 1)
    if way == "stopped":
        own_server.start()
    else:
        own_server.resume()
    until(lambda: all(process.log.count("healed") == 2 for process in processes))
    swept_at = now()
    until(lambda: now() - swept_at > 2 * QUICK["MAINTENANCE_INTERVAL"])
    field.open_gate()
    until(lambda: Job.objects.filter(state="succeeded").count() == 4)
    closed()
    assert field.stop(*processes) == [0, 0]
    assert [entry.attempt for entry in ledger.of("finish")] == [1] * 4
    assert not Outcome.objects.exclude(kind="succeeded").exists()


def test_f022_outcomes_wait_for_the_database_in_silence(field, ledger, closed, own_server):
    field_jobs.until.enqueue_many([(str(field.gate),)] * 4)
    later = field_jobs.noop.options(priority=-1).enqueue_many([()] * 3)
    process = field.ready()
    until(lambda: len(ledger.of("start")) == 4)
    own_server.stop("immediate")
    field.open_gate()
    until(lambda: len(ledger.of("finish")) == 4)
    lines, used, began = lines_of(process.log_path), cpu_seconds(process), now()
    passes(3)
    spent = now() - began
    assert lines_of(process.log_path) - lines <= 2 * spent + 5
    assert cpu_seconds(process) - used < 0.2 * spent
    own_server.start()
    until(lambda: Job.objects.filter(state="succeeded").count() == 4 + len(later))
    closed()
    assert field.stop(process) == [0]
    assert {entry.attempt for entry in ledger.entries()} == {1}


def test_f025_sessions_that_are_read_only_are_given_up(field, ledger, closed, own_server):
    handle = field_jobs.until.enqueue(str(field.gate))
    process = field.ready()
    until(lambda: ledger.of("start"))
    with read_only_database(own_server.name):
        queued = field_jobs.noop.enqueue()
        until(lambda: "degraded" in process.log)
        lines, used, began = lines_of(process.log_path), cpu_seconds(process), now()
        passes(LEASE + 1)
        spent = now() - began
        # F026: a standby is asked again patiently.
        assert lines_of(process.log_path) - lines <= 2 * spent
        assert cpu_seconds(process) - used < 0.2 * spent
        assert queued.refresh().state == "scheduled"
    until(lambda: "healed" in process.log)
    field.open_gate()
    until(lambda: Job.objects.filter(state="succeeded").count() == 2)
    closed()
    assert field.stop(process) == [0]
    assert list(Outcome.objects.filter(job_id=handle.id).values_list("kind", "attempt")) == [
        ("succeeded", 1)
    ]


def test_f025_djangos_pool_gives_up_sessions_that_are_read_only(field, ledger, closed, own_server):
    pool = {"OPTIONS": {"pool": {"min_size": 1, "max_size": 1, "timeout": 20}}}
    first = jobs.write_when.enqueue("first", str(field.gate))
    process = field.ready(database=pool, environ={"PGAPPNAME": BODIES})
    until(lambda: ledger.of("start"))
    with read_only_database(own_server.name):
        cut(BODIES)  # the pool's, too
        field.open_gate()
        until(lambda: ledger.of("finish"))
    second = jobs.write_when.enqueue("second", str(field.gate))
    until(lambda: first.refresh().state == second.refresh().state == "succeeded")
    closed()
    assert field.stop(process) == [0]


@pytest.mark.parametrize(
    "purges", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_f023_every_duty_goes_on_after_the_tables_were_locked(
    field, ledger, closed, own_server, purges
):
    own_server.set(idle_in_transaction_session_timeout="1s", statement_timeout="300ms")
    every_second()
    process = field.ready()
    for spell in range(1, 4):
        with held(own_server.url, "LOCK TABLE backwave_job IN ACCESS EXCLUSIVE MODE"):
            until(partial(_degraded, process, spell))
        until(lambda: process.log.count("healed") == process.log.count("degraded"))
    made, seen_at = ticks(), Pump.objects.get().seen_at
    until(lambda: ticks() > made, what="schedules go on")
    until(lambda: Pump.objects.get().seen_at > seen_at, what="heartbeats go on")
    lost = jobs.query.options(queue="elsewhere").enqueue_many([()] * 3)
    strand("elsewhere", limit=3)
    until(lambda: Outcome.objects.filter(kind="lapsed").count() == 3, what="sweeps go on")
    assert {handle.refresh().state for handle in lost} == {"scheduled"}
    if purges:
        old = Job.objects.filter(state="succeeded")[:1].get()
        Job.objects.filter(id=old.id).update(terminal_at=database_clock() - timedelta(days=60))
        until(lambda: not Job.objects.filter(id=old.id).exists(), seconds=90)
    closed()
    assert field.stop(process) == [0]
