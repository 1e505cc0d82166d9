"""Nodes whose clocks are wrong, and process trees that are unusual."""

import os
import signal
import subprocess
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from backwave_django.models import Job, Outcome, Pump
from tests.e2e.processes import children_of
from tests.fieldapp import jobs

SHORT_LEASE = {"LEASE_DURATION": 2, "HEARTBEAT_INTERVAL": 0.4, "MAINTENANCE_INTERVAL": 0.5}


@pytest.mark.vendor("postgresql")
def test_f019_nodes_whose_clocks_differ_agree_on_the_databases(field, ledger, need_program):
    nodes = [
        field.runpumps(environ=environ, POOL_SIZE=4, **SHORT_LEASE)
        for environ in ({}, shifted("+10m", need_program), shifted("-10m", need_program))
    ]
    field.until(lambda: Pump.objects.count() == 3)
    jobs.sleep.enqueue_many([(3,)] * 6)
    later = jobs.noop.options(delay=timedelta(seconds=3)).enqueue()
    field.until(lambda: Job.objects.filter(state="succeeded").count() == 7)
    for node in nodes:
        node.terminate()
    assert [node.wait() for node in nodes] == [0, 0, 0]
    assert len(ledger.of("finish")) == 6
    assert len(ledger.of("start")) == 7
    job, outcome = Job.objects.get(pk=later.id), Outcome.objects.get(job_id=later.id)
    assert outcome.started_at is not None
    assert outcome.started_at >= job.due_at
    assert abs(outcome.finished_at - timezone.now()) < timedelta(minutes=1)


def shifted(by: str, need_program: Callable[[str], str]) -> dict[str, str]:
    """What ``faketime`` sets for a program whose clocks shall be off.

    Without the program itself in between, which would not pass signals on.
    """
    asked = [need_program("faketime"), "-f", by, "env"]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    pairs = (line.partition("=") for line in told.splitlines())
    preload = {name: value for name, _, value in pairs if name in {"LD_PRELOAD", "FAKETIME"}}
    # Wall clocks differ between nodes; the time since boot, by which they wait, runs as ever.
    return {**preload, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}


def test_a_job_enqueued_by_another_process_is_hinted_at(field, ledger):
    process = field.runpumps(POLL_INTERVAL=600)
    field.until(listens)
    jobs.noop.enqueue()
    field.until(lambda: ledger.of("start"))
    process.terminate()
    assert process.wait() == 0


def listens() -> bool:
    if not Pump.objects.exists():
        return False
    if connection.vendor == "sqlite":
        return True  # whoever watches a file misses nothing that happens after it has begun
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        return bool(cursor.fetchone()[0])


def test_f094_process_one_of_a_container_drains_like_any_other(field, ledger, need_program):
    unshare = need_program("unshare")
    jobs.until.enqueue(str(field.gate))
    process = field.runpumps(prefix=(unshare, "--pid", "--fork", "--mount-proc", "--kill-child"))
    (entry,) = field.until(lambda: ledger.of("start"))
    assert entry.pid == 1
    (inside,) = children_of(process.pid)
    os.kill(inside, signal.SIGTERM)
    field.open_gate()
    assert process.wait() == 0
    assert len(ledger.of("finish")) == 1
