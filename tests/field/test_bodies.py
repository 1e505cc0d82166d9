"""Bodies that misbehave: they cost themselves, and nobody else."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from backwave_django.models import Job, Lease, Outcome
from tests.e2e.processes import children_of
from tests.field import jobs
from tests.field.servers import fetch
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

WAYS = {
    "fresh": {},
    "reused": {"CONNECTIONS": "reuse"},
}


def after(handle, *states):
    until(lambda: handle.refresh().state in states, what=f"it is {states}")


@pytest.mark.parametrize("way", list(WAYS))
def test_f029_f130_what_a_body_does_to_its_connection_ends_with_it(field, ledger, closed, way):
    process = field.ready(POOL_SIZE=1, **WAYS[way])
    spoil: list[Any] = [jobs.swallow, jobs.leave_open, jobs.leave_broken]
    if connection.vendor == "postgresql":
        spoil.append(jobs.spoil_session)
    for job in spoil:
        spoilt, next_one = job.enqueue(), jobs.query.enqueue()
        after(spoilt, "succeeded", "dead_lettered")
        after(next_one, "succeeded")
        assert Outcome.objects.filter(job_id=spoilt.id).count() == 1
    assert list(Group.objects.values_list("name", flat=True)) == []
    closed()
    assert field.stop(process) == [0]
    assert not Outcome.objects.filter(job__wire_name="ground.query", kind="failed").exists()


def test_bodies_that_fork_recurse_devour_and_block_signals_end_alone(field, ledger, closed):
    bystanders = field_jobs.until.enqueue_many([(str(field.gate),)] * 2)
    process = field.ready(POOL_SIZE=4)
    until(lambda: len(ledger.of("start")) == 2)
    forked = jobs.fork.enqueue()
    after(forked, "succeeded", "dead_lettered")
    assert forked.state == "succeeded"
    assert children_of(process.pid) == [], "the child has ended with the body"
    assert len([entry for entry in ledger.of("finish") if entry.job_id == forked.id]) == 2
    for job, error in ((jobs.recurse, "RecursionError"), (jobs.devour, "MemoryError")):
        handle = job.enqueue()
        after(handle, "dead_lettered")
        assert Outcome.objects.get(job_id=handle.id).error_class == error
    blocked = jobs.block_signals.enqueue()
    after(blocked, "succeeded")
    field.open_gate()
    for bystander in bystanders:
        after(bystander, "succeeded")
    closed()
    assert field.stop(process) == [0]
    assert not Lease.objects.exists()


def test_bodies_that_ignore_being_cancelled_or_timed_out_are_left_behind(field, ledger, closed):
    process = field.ready(POOL_SIZE=2, SHUTDOWN_TIMEOUT=1)
    hung = jobs.hang.enqueue()
    after(hung, "dead_lettered")
    assert Outcome.objects.get(job_id=hung.id).cause == "timeout"
    asked = field_jobs.stubborn.enqueue()
    until(lambda: any(entry.job_id == asked.id for entry in ledger.of("start")))
    asked.cancel(actor="field")
    closed()
    process.terminate()
    assert process.wait() == 4
    job = Job.objects.get(pk=asked.id)
    assert (job.state, job.spent) in {("cancelled", 0), ("scheduled", 0)}
    if connection.vendor == "postgresql":
        until(lambda: fetch("SELECT 1 FROM pg_stat_activity WHERE state LIKE 'idle in%'") == [])


def test_a_body_that_kills_its_process_again_and_again_ends_as_lost(field, ledger, closed):
    handle = jobs.kill_always.enqueue()
    parent = field.ready("--processes", "2", pumps=2, LEASE_DURATION=600)
    after(handle, "dead_lettered")
    closed()
    # Whoever took the place of the dead may not have begun yet: that is no failure.
    assert field.stop(parent) == [0]
    assert list(
        Outcome.objects.filter(job_id=handle.id).order_by("run").values_list("kind", "state")
    ) == [("lapsed", "scheduled"), ("lapsed", "dead_lettered")]
