"""Signals, exit codes, and what bodies leave behind."""

import signal

import pytest
from django.utils import timezone

from backwave_django.core.contract import Actor
from backwave_django.jobs.ids import new_id
from backwave_django.models import Job
from backwave_django.store import default_store
from tests.e2e.processes import enqueue_unknown
from tests.fieldapp import jobs


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_f089_a_deploy_lets_running_jobs_finish_and_begins_none(field, ledger, signum):
    jobs.until.enqueue_many([(str(field.gate),)] * 30)
    process = field.runpumps(POOL_SIZE=20)
    field.until(lambda: len(ledger.of("start")) == 20)
    process.signal(signum)
    field.until(lambda: len(ledger.of("asked")) == 20)
    field.open_gate()
    assert process.wait() == 0
    assert len(ledger.of("start")) == len(ledger.of("finish")) == 20
    assert field.runpumps("--drain").wait() == 0
    assert len(ledger.of("finish")) == 30
    assert {entry.attempt for entry in ledger.entries()} == {1}


def test_f091_a_job_that_outlives_the_grace_is_free_at_once(field, ledger):
    handle = jobs.stubborn.enqueue()
    process = field.runpumps(SHUTDOWN_TIMEOUT=1)
    field.until(lambda: ledger.of("start"))
    process.terminate()
    assert process.wait(seconds=5) == 4
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.spent) == ("scheduled", 0)


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_f092_a_second_signal_ends_it_now(field, ledger, signum, code):
    jobs.stubborn.enqueue()
    process = field.runpumps(SHUTDOWN_TIMEOUT=300)
    field.until(lambda: ledger.of("start"))
    process.signal(signum)
    field.until(lambda: ledger.of("asked"))
    process.signal(signum)
    assert process.wait(seconds=5) == code
    assert field.runpumps("--drain").wait() == 0
    assert [entry.attempt for entry in ledger.of("finish")] == [2]


def test_f097_children_of_bodies_can_be_stopped(field):
    handle = jobs.child_signals.enqueue()
    assert field.runpumps("--drain").wait() == 0
    assert handle.refresh().output == {"code": -15, "blocked": "0" * 16}


def test_f098_threads_that_bodies_leave_behind_do_not_keep_the_process(field, ledger):
    jobs.leave_behind.enqueue()
    process = field.runpumps(SHUTDOWN_TIMEOUT=2)
    field.until(lambda: ledger.of("finish"))
    process.terminate()
    assert process.wait(seconds=7) == 0


def test_f095_jobs_that_fail_are_a_clean_end(field, ledger):
    jobs.fail.enqueue()
    assert field.runpumps("--once").wait() == 0
    assert not Job.objects.exclude(state="dead_lettered").exists()
    jobs.noop.enqueue_many([()] * 3)
    assert field.runpumps("--max-jobs", "2").wait() == 0
    assert len(ledger.of("start")) == 2


WRONG = {
    "nowhere": (["--group", "nowhere"], {}, 'BACKWAVE["GROUPS"] has: field, other'),
    "bad dial": ([], {"FIELD_DIALS": '{"POOL_SIZE": "many"}'}, '["POOL_SIZE"]'),
    "no file": ([], {"DATABASE_URL": "sqlite:////no/such/place"}, "cannot be used"),
    "no server": ([], {"DATABASE_URL": "postgres://u:hunter2@127.0.0.1:1/d"}, "refused"),
    "no tables": ([], {"DATABASE_URL": "sqlite://:memory:"}, "run manage.py migrate"),
}


def test_f095_what_cannot_work_is_refused_with_a_sentence(field):
    started = {
        name: field.runpumps(*options, environ=environ)
        for name, (options, environ, _) in WRONG.items()
    }
    for name, (_, _, said) in WRONG.items():
        process = started[name]
        assert process.wait() == 1, name
        assert said in process.log
        assert "hunter2" not in process.log
        assert "Traceback" not in process.log


def test_a_dry_run_says_what_would_run_and_ends(field):
    process = field.runpumps("--dry-run", "--group", "other", POOL_SIZE=7)
    assert process.wait() == 0
    assert f"pid {process.pid}" in process.log
    assert "group field: 1 pump of 7 slots, queues default" in process.log
    assert "group other: 1 pump of 1 slots, queues other, critical, mail" in process.log


def test_a_process_behind_a_rolling_deploy_hands_back_what_it_does_not_know(field, ledger):
    job_id = new_id()
    enqueue_unknown("field.next_release", job_id=job_id)
    old = field.runpumps()
    field.until(lambda: Job.objects.filter(pk=job_id, unroutable_since__isnull=False).exists())
    assert Job.objects.get(pk=job_id).state == "scheduled"
    old.terminate()
    assert old.wait() == 0
    # It rests for a while, so that those who cannot run it do not pass it round.
    default_store().run_now([job_id], actor=Actor(name="test"), now=timezone.now())
    new = field.runpumps("--drain", environ={"FIELD_RELEASE": "2"})
    assert new.wait() == 0
    (entry,) = ledger.entries()
    assert (entry.job_id, entry.attempt) == (job_id, 1)
    assert Job.objects.get(pk=job_id).state == "succeeded"
