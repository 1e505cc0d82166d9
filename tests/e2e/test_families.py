"""Parents and their children: ``--processes`` and ``--reload``."""

import os
import signal

from backwave_django.jobs.handle import JobHandle
from backwave_django.jobs.ids import new_id
from backwave_django.models import Job, Pump
from tests.e2e.processes import await_death, children_of, enqueue_unknown
from tests.fieldapp import jobs
from tests.pumps.waiting import until


def pids() -> set[int]:
    return set(Pump.objects.filter(stopped_at=None).values_list("pid", flat=True))


def test_a_dead_child_is_replaced_and_its_jobs_are_recovered_at_once(field, ledger):
    handle = jobs.kill_process.enqueue()
    parent = field.runpumps("--processes", "2", LEASE_DURATION=600)
    field.until(lambda: ledger.of("finish"))
    field.until(lambda: handle.refresh().state == "succeeded")
    field.until(lambda: len(pids()) == 2)
    assert pids() == set(children_of(parent.pid))
    parent.terminate()
    assert parent.wait() == 0


def test_children_drain_when_their_parent_is_gone(field, ledger):
    parent = field.runpumps("--processes", "2")
    field.until(lambda: len(pids()) == 2)
    children = pids()
    jobs.until.enqueue(str(field.gate))
    field.until(lambda: ledger.of("start"))
    parent.kill()
    field.open_gate()
    for child in children:
        await_death(child)
    assert len(ledger.of("finish")) == 1
    assert not pids()


def test_a_second_signal_to_the_parent_ends_its_children(field, ledger):
    jobs.stubborn.enqueue()
    parent = field.runpumps("--processes", "2", SHUTDOWN_TIMEOUT=300)
    field.until(lambda: len(pids()) == 2)
    children = pids()
    field.until(lambda: ledger.of("start"))
    parent.signal(signal.SIGINT)
    field.until(lambda: ledger.of("asked"))
    parent.signal(signal.SIGINT)
    assert parent.wait(seconds=5) == 130
    for child in children:
        await_death(child)


BODY = """
import backwave_django as backwave

@backwave.job("reloaded.version", retry=backwave.Retry(max_attempts=1))
def version():
    return {version}
"""


def test_f149_changed_code_runs_next_and_a_syntax_error_is_survived(field, ledger, tmp_path):
    app = tmp_path / "reloaded"
    app.mkdir()
    (app / "__init__.py").touch()
    code = app / "jobs.py"
    write(code, BODY.format(version=1), at=1)
    environ = {
        "FIELD_APPS": "reloaded",
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    parent = field.runpumps("--reload", environ=environ)
    field.until(lambda: len(pids()) == 1)
    first = pids()
    assert output_of_a_run() == 1
    jobs.until.enqueue(str(field.gate))
    field.until(lambda: ledger.of("start"))
    write(code, BODY.format(version=2), at=2)
    field.until(lambda: "starting anew" in parent.log)
    assert pids() == first, "the running job is waited for"
    field.open_gate()
    # One look each time: between two looks the old one may go and the new one not be there yet.
    field.until(lambda: len(pids() - first) == 1)
    assert pids().isdisjoint(first)
    assert len(children_of(parent.pid)) == 1
    assert output_of_a_run() == 2
    write(code, "def version(:", at=3)
    field.until(lambda: "waiting for a change" in parent.log)
    assert "SyntaxError" in parent.log
    write(code, BODY.format(version=4), at=4)
    assert output_of_a_run() == 4
    parent.terminate()
    assert parent.wait() == 0
    assert [entry.attempt for entry in ledger.of("finish")] == [1]


def write(path, text, *, at):
    """Change a file so that its time of change differs, however fast the test is."""
    path.write_text(text)
    os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))


def output_of_a_run() -> object:
    job_id = new_id()
    enqueue_unknown("reloaded.version", job_id=job_id)
    until(lambda: Job.objects.get(pk=job_id).state == "succeeded")
    return JobHandle(job_id).refresh().output
