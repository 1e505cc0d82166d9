"""Atomic bodies in processes that die, and on connections that break."""

import json

import pytest
from django.contrib.auth.models import Group

import backwave_django as backwave
from backwave_django.core.jobs import NewJob
from backwave_django.jobs.ids import new_id
from backwave_django.jobs.payload import encode_call
from backwave_django.models import Job, Lease, Outcome
from backwave_django.store import default_store
from tests.e2e.processes import Process
from tests.pumps.waiting import until

ATOMIC = {"FIELD_ATOMIC": "1"}
KNOWN = "field.write_atomically"


def kinds(handle: backwave.JobHandle) -> list[str]:
    rows = Outcome.objects.filter(job_id=handle.id).order_by("run")
    return list(rows.values_list("kind", flat=True))


def names() -> set[str]:
    return set(Group.objects.values_list("name", flat=True))


def enqueue(name: str, path: str = "") -> backwave.JobHandle:
    """Enqueue what only some processes know."""
    payload = encode_call((name, path), {})
    job = NewJob(id=new_id(), wire_name=KNOWN, queue="default", payload=payload)
    default_store().enqueue([job])
    return backwave.JobHandle(job.id)


def test_body_that_dies_with_its_process_leaves_no_write_and_runs_again(field, ledger):
    handle = enqueue("killed", str(field.gate))
    first: Process = field.ready(environ=ATOMIC, LEASE_DURATION=600)
    until(lambda: ledger.of("start"))
    first.kill()
    assert names() == set()
    field.open_gate()
    second = field.pump("--drain", environ=ATOMIC, LEASE_DURATION=600)
    assert second.wait() == 0
    assert (kinds(handle), names()) == (["lapsed", "succeeded"], {"killed 2"})
    assert not Lease.objects.exists()


@pytest.mark.vendor("postgresql")
def test_commit_whose_answer_is_lost_is_looked_for(field, ledger, closed, wire):
    environ = {**ATOMIC, "DATABASE_URL": wire.url}
    process = field.ready(environ=environ, LEASE_DURATION=60, POOL_SIZE=1)
    wire.lose("of-a-commit 1")  # goes by with the body's write, in the transaction to be lost
    handle = enqueue("of-a-commit")
    until(wire.lost.is_set, what="the commit's answer is lost")
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(process) == [0]
    assert (kinds(handle), names()) == (["succeeded"], {"of-a-commit 1"})
    starts = [entry.attempt for entry in ledger.of("start") if entry.job_id == handle.id]
    assert starts == [1]
    assert process.log.count("is committed, though that answer was lost") == 1
    assert "lost its lease" not in process.log
    assert Job.objects.get(pk=handle.id).spent == 0


@pytest.mark.vendor("postgresql")
def test_pool_of_django_serves_atomic_bodies(field):
    handles = [enqueue(f"pooled {number}") for number in range(8)]
    pool = json.dumps({"min_size": 1, "max_size": 2, "timeout": 20})
    process = field.pump("--drain", environ={**ATOMIC, "FIELD_POOL": pool}, POOL_SIZE=4)
    assert process.wait() == 0
    assert [kinds(handle) for handle in handles] == [["succeeded"]] * 8
    assert names() == {f"pooled {number} 1" for number in range(8)}


@pytest.mark.vendor("sqlite")
@pytest.mark.parametrize("options", [["--processes", "2"], ["--group", "other"]])
def test_sqlite_lets_no_other_pump_start_beside_atomic_bodies(field, options):
    process = field.pump(*options, environ=ATOMIC)
    assert process.wait() == 1
    assert "'field.write_atomically' is atomic, and 2 pumps would share" in process.log


@pytest.mark.vendor("sqlite")
def test_sqlite_lets_no_other_process_start_beside_atomic_bodies(field):
    first = field.ready(environ=ATOMIC)
    second = field.pump(environ=ATOMIC)
    assert second.wait() == 1
    assert "works on this SQLite database" in second.log
    assert field.stop(first) == [0]
