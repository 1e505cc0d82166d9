"""Processes that are killed: how soon, and at what cost, their jobs run again."""

import os
import signal
from datetime import timedelta

import pytest

from backwave_django import operations
from backwave_django.core.contract import ActionResult
from backwave_django.models import Job, Lease, Outcome, Pump
from backwave_django.monitor import database_clock
from backwave_django.store import default_store
from tests.e2e.processes import children_of
from tests.field import jobs
from tests.field.closing import SLACK_SECONDS, Bounds
from tests.field.ground import QUICK
from tests.field.stranding import ACTOR, strand
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

LEASE = QUICK["LEASE_DURATION"]
#: Nobody waits for this one: who runs again was recovered in another way.
ENDLESS = {"LEASE_DURATION": 600}


def kinds(handle):
    rows = Outcome.objects.filter(job_id=handle.id).order_by("run")
    return list(rows.values_list("kind", flat=True))


def from_elsewhere():
    """Let the pumps in the registry be those of another host: nobody sees that they are gone."""
    Pump.objects.update(boot_id="another boot of another host")


def test_f001_a_job_of_another_hosts_dead_process_waits_for_its_lease_and_no_longer(
    field, ledger, closed
):
    handle = field_jobs.until.enqueue(str(field.gate))
    first = field.ready()
    until(lambda: ledger.of("start"))
    from_elsewhere()
    first.kill()
    expires_at = Lease.objects.get().expires_at
    second = field.ready()
    until(lambda: len(ledger.of("start")) == 2)
    lapsed = Outcome.objects.get(job_id=handle.id)
    assert expires_at <= lapsed.finished_at
    most = timedelta(seconds=QUICK["MAINTENANCE_INTERVAL"] + 2 + SLACK_SECONDS)
    assert lapsed.finished_at <= expires_at + most
    field.open_gate()
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(second) == [0]
    assert kinds(handle) == ["lapsed", "succeeded"]
    assert [entry.attempt for entry in ledger.of("finish")] == [2]


def test_f002_jobs_are_recovered_although_the_rows_of_their_pump_are_gone(field, ledger, closed):
    handles = field_jobs.until.enqueue_many([(str(field.gate),)] * 2)
    first = field.ready()
    until(lambda: len(ledger.of("start")) == 2)
    from_elsewhere()
    first.kill()
    Pump.objects.all().delete()
    Lease.objects.filter(job_id=handles[0].id).delete()
    operations.purge(now=database_clock())
    second = field.ready()
    until(lambda: len(ledger.of("start")) == 4)
    field.open_gate()
    until(lambda: all(handle.refresh().state == "succeeded" for handle in handles))
    closed()
    assert field.stop(second) == [0]
    assert [Job.objects.get(pk=handle.id).spent for handle in handles] == [0, 1]


def test_f005_f014_a_job_of_the_future_belongs_to_nobody_and_runs_once(field, ledger, closed):
    later = field_jobs.noop.options(delay=timedelta(seconds=LEASE + 1)).enqueue()
    first, *others = (field.ready() for _ in range(3))
    first.kill()
    until(lambda: later.refresh().state == "succeeded")
    outcome, job = Outcome.objects.get(job_id=later.id), Job.objects.get(pk=later.id)
    assert outcome.started_at is not None
    assert outcome.started_at >= job.due_at
    closed()
    assert field.stop(*others) == [0, 0]
    assert [entry.attempt for entry in ledger.of("start") if entry.job_id == later.id] == [1]


def test_f007_the_only_attempt_survives_a_deploy_and_ends_visibly_with_its_process(
    field, ledger, closed
):
    handle = jobs.only_once.enqueue(str(field.gate))
    first = field.ready(SHUTDOWN_TIMEOUT=0.5)
    until(lambda: ledger.of("start"))
    first.terminate()
    assert first.wait() == 4
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.spent) == ("scheduled", 0)
    second = field.ready(**ENDLESS)
    until(lambda: len(ledger.of("start")) == 2)
    second.kill()
    third = field.ready(**ENDLESS)
    until(lambda: handle.refresh().state == "dead_lettered")
    assert Job.objects.get(pk=handle.id).cause == "attempts"
    field.open_gate()
    (answer,) = operations.requeue([handle.id], actor=ACTOR, now=database_clock())
    assert answer.result is ActionResult.DONE
    until(lambda: handle.refresh().state == "succeeded")
    assert field.stop(third) == [0]
    assert kinds(handle)[:2] == ["released", "lapsed"]
    assert [entry.attempt for entry in ledger.of("start")] == [1, 1, 1]


def test_f008_jobs_of_a_killed_process_run_again_by_themselves(field, ledger, closed):
    handles = jobs.first_waits.enqueue_many([(str(field.gate),)] * 3)
    first = field.ready(POOL_SIZE=3, **ENDLESS)
    until(lambda: len(ledger.of("start")) == 3)
    first.kill()
    second = field.ready(POOL_SIZE=3, **ENDLESS)
    until(lambda: all(handle.refresh().state == "succeeded" for handle in handles))
    closed()
    assert field.stop(second) == [0]
    assert [kinds(handle) for handle in handles] == [["lapsed", "succeeded"]] * 3


def begun_again(ledger, handle):
    """Wait for the second run; return the pids of both, after a look at the order of things."""
    until(lambda: len(ledger.of("start")) == 2, what="the job begins again")
    until(lambda: handle.refresh().state == "succeeded")
    first, again = ledger.of("start")
    (finish,) = ledger.of("finish")
    assert first.at < again.at < finish.at
    assert (first.attempt, again.attempt) == (1, 2)
    lost, succeeded = Outcome.objects.filter(job_id=handle.id).order_by("run")
    assert (lost.kind, succeeded.kind) == ("lapsed", "succeeded")
    assert lost.next_due_at == lost.finished_at
    return first.pid, again.pid


def test_f001_a_killed_job_does_not_wait_for_its_back_off(field, ledger, closed):
    handle = jobs.patient.enqueue(str(field.gate))
    first = field.ready(**ENDLESS)
    until(lambda: ledger.of("start"))
    first.kill()
    second = field.ready(**ENDLESS)
    assert begun_again(ledger, handle) == (first.pid, second.pid)
    closed()
    assert field.stop(second) == [0]


def test_f001_a_lapsed_job_of_another_host_does_not_wait_any_longer(field, ledger, closed):
    handle = jobs.patient.enqueue(str(field.gate))
    first = field.ready()
    until(lambda: ledger.of("start"))
    from_elsewhere()
    first.kill()
    expires_at = Lease.objects.get().expires_at
    second = field.ready()
    assert begun_again(ledger, handle) == (first.pid, second.pid)
    assert expires_at <= Outcome.objects.get(job_id=handle.id, kind="lapsed").finished_at
    closed()
    assert field.stop(second) == [0]


def test_f001_a_job_of_a_killed_child_begins_again_below_its_parent(field, ledger, closed):
    handle = jobs.patient.enqueue(str(field.gate))
    parent = field.ready("--processes", "2", pumps=2, POOL_SIZE=1, **ENDLESS)
    until(lambda: ledger.of("start"))
    os.kill(ledger.of("start")[0].pid, signal.SIGKILL)
    killed, again = begun_again(ledger, handle)
    until(lambda: len(children_of(parent.pid)) == 2)
    assert again in children_of(parent.pid)
    assert killed not in children_of(parent.pid)
    closed()
    assert field.stop(parent) == [0]


def test_a_parent_frees_the_jobs_of_a_dead_child_although_nobody_starts(field, ledger, closed):
    handles = jobs.first_waits.enqueue_many([(str(field.gate),)] * 2)
    parent = field.ready("--processes", "2", pumps=2, POOL_SIZE=1, **ENDLESS)
    until(lambda: len(ledger.of("start")) == 2)
    killed, drains = ledger.of("start")
    parent.terminate()  # from here on no child starts, and none looks for dead ones
    until(lambda: Pump.objects.filter(health="draining").count() == 2)
    os.kill(killed.pid, signal.SIGKILL)
    until(lambda: Job.objects.filter(state="scheduled", spent=1).count() == 1)
    assert Lease.objects.get().job_id == drains.job_id
    assert drains.pid in children_of(parent.pid)
    field.open_gate()
    assert parent.wait() == 3
    assert field.pump("--drain").wait() == 0
    assert {handle.refresh().state for handle in handles} == {"succeeded"}
    closed()
    assert len(ledger.of("finish")) == 2


def test_a_wrong_guess_about_who_is_dead_is_harmless(field, ledger, closed):
    handle = jobs.first_waits.enqueue(str(field.gate))
    process = field.ready(**ENDLESS)
    until(lambda: ledger.of("start"))
    (pump_id,) = Pump.objects.values_list("id", flat=True)
    default_store().dispose(pumps=[pump_id], now=database_clock())
    until(lambda: handle.refresh().state == "succeeded")
    assert Outcome.objects.filter(job_id=handle.id).count() == 2
    field.open_gate()
    until(lambda: len(ledger.of("finish")) == 2)
    until(lambda: process.log.count("lost its lease") == 1)
    closed()
    assert field.stop(process) == [0]
    assert kinds(handle) == ["lapsed", "succeeded"]


@pytest.mark.parametrize(
    "count", [600, pytest.param(100_000, marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_f040_many_leases_that_lapse_at_once_hold_up_nobody(field, ledger, closed, count):
    jobs.query.options(queue="elsewhere").enqueue_many([()] * count)
    while (left := Job.objects.filter(queue="elsewhere", state="scheduled").count()) > 0:
        strand("elsewhere", limit=min(left, 100))
    process = field.ready()
    fresh = field_jobs.noop.enqueue()
    until(lambda: ledger.of("start"), seconds=15)
    until(
        lambda: Job.objects.filter(queue="elsewhere", state="scheduled").count() == count,
        seconds=30 + count / 500,
        what="all are free again",
    )
    assert fresh.refresh().state == "succeeded"
    closed(Bounds(lease=LEASE + count / 1000))
    assert field.stop(process) == [0]
    assert not Lease.objects.exists()
