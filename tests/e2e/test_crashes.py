"""Processes that die hard, freeze, or lose their connections."""

import signal
from collections import Counter

import pytest
from django.db import connection

from backwave_django.models import Job, Lease, Outcome
from tests.fieldapp import jobs
from tests.fieldapp.ledger import now

SHORT_LEASE = {"LEASE_DURATION": 2, "HEARTBEAT_INTERVAL": 0.4, "MAINTENANCE_INTERVAL": 0.5}


def kinds(job_id):
    return list(
        Outcome.objects.filter(job_id=job_id).order_by("run").values_list("kind", flat=True)
    )


def test_f001_a_job_of_a_killed_process_runs_again_at_once_on_its_host(field, ledger):
    handle = jobs.until.enqueue(str(field.gate))
    first = field.runpumps(LEASE_DURATION=600)
    field.until(lambda: ledger.of("start"))
    first.kill()
    field.open_gate()
    second = field.runpumps("--drain", LEASE_DURATION=600)
    assert second.wait() == 0
    assert [entry.attempt for entry in ledger.of("start")] == [1, 2]
    assert kinds(handle.id) == ["lapsed", "succeeded"]
    assert not Lease.objects.exists()


def test_f001_a_job_of_a_lost_process_is_inherited_when_its_lease_lapses(field, ledger):
    handle = jobs.until.enqueue(str(field.gate))
    first = field.runpumps(**SHORT_LEASE)
    field.until(lambda: ledger.of("start"))
    second = field.runpumps(**SHORT_LEASE)
    field.until(lambda: "group field" in second.log)
    first.signal(signal.SIGSTOP)
    stopped_at = now()
    field.until(lambda: len(ledger.of("start")) == 2)
    began, again = ledger.of("start")
    assert (began.pid, again.pid) == (first.pid, second.pid)
    # The lease, as long again because its pump was just seen, two sweeps, and a slow machine.
    assert again.at - stopped_at < 2 * 2 + 2 * 0.5 + 10
    field.open_gate()
    field.until(lambda: Job.objects.get(pk=handle.id).state == "succeeded")
    first.signal(signal.SIGCONT)
    # The first body ends late. Its outcome is refused, and its pump goes on.
    field.until(lambda: len(ledger.of("finish")) == 2)
    first.terminate()
    assert first.wait() == 0
    assert handle.refresh().output == second.pid
    assert kinds(handle.id) == ["lapsed", "succeeded"]


def test_f004_what_had_not_begun_has_spent_nothing(field, ledger):
    jobs.until.enqueue_many([(str(field.gate),)] * 6)
    first = field.runpumps(POOL_SIZE=2)
    field.until(lambda: len(ledger.of("start")) == 2)
    first.kill()
    field.open_gate()
    assert field.runpumps("--drain", POOL_SIZE=2).wait() == 0
    finished = ledger.of("finish")
    assert sorted(entry.attempt for entry in finished) == [1, 1, 1, 1, 2, 2]
    assert len({entry.job_id for entry in finished}) == 6


def test_f013_a_job_longer_than_its_lease_runs_once(field, ledger):
    jobs.sleep.enqueue(3)
    dials = {"LEASE_DURATION": 1, "HEARTBEAT_INTERVAL": 0.3, "MAINTENANCE_INTERVAL": 0.2}
    processes = [field.runpumps(**dials) for _ in range(2)]
    field.until(lambda: ledger.of("finish"))
    for process in processes:
        process.terminate()
    assert [process.wait() for process in processes] == [0, 0]
    assert len(ledger.of("start")) == 1


@pytest.mark.vendor("postgresql")
def test_f010_connections_that_are_cut_cost_no_outcome(field, ledger):
    handles = jobs.until.enqueue_many([(str(field.gate),)] * 4)
    process = field.runpumps(**SHORT_LEASE)
    field.until(lambda: len(ledger.of("start")) == 4)
    for _ in range(5):
        field.until(lambda: cut("backwave:field:%"), what="the pump is connected")
    field.open_gate()
    field.until(lambda: cut("backwave:field:%"), what="the pump is connected")
    field.until(lambda: Job.objects.filter(state="succeeded").count() == 4)
    process.terminate()
    assert process.wait() == 0
    assert len(ledger.of("start")) == 4
    assert all(kinds(handle.id) == ["succeeded"] for handle in handles)


@pytest.mark.vendor("postgresql")
def test_f041_hints_come_back_after_their_connection_was_cut(field, ledger):
    process = field.runpumps(POLL_INTERVAL=600, HEARTBEAT_INTERVAL=19)
    field.until(lambda: cut("backwave:hints:%"), what="somebody listens")
    field.until(lambda: sessions("backwave:hints:%"), what="somebody listens again")
    jobs.noop.enqueue()
    field.until(lambda: ledger.of("start"))
    process.terminate()
    assert process.wait() == 0
    assert process.log.count("connection for hints is lost") == 1


def test_f020_two_claimers_never_take_the_same_job(field, ledger, number_of_jobs):
    jobs.noop.enqueue_many([()] * number_of_jobs)
    process = field.runpumps("--processes", "4", "--drain", POOL_SIZE=8)
    assert process.wait(seconds=60 + number_of_jobs / 100) == 0
    runs = Counter(entry.job_id for entry in ledger.of("start"))
    assert len(runs) == number_of_jobs
    assert set(runs.values()) == {1}
    assert Job.objects.filter(state="succeeded").count() == number_of_jobs
    assert len({entry.pid for entry in ledger.entries()}) > 1


def cut(name: str) -> int:
    """Cut the sessions of this name; return how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE %s",
            [name],
        )
        return int(cursor.fetchone()[0])


def sessions(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name LIKE %s AND query LIKE 'LISTEN%%'",
            [name],
        )
        return int(cursor.fetchone()[0])
