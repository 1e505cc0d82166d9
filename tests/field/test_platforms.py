"""Systems that lack what Linux has."""

import signal

from backwave_django.models import Outcome
from tests.field import jobs
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

#: Run by the interpreter before anything else: what macOS and Windows do without.
WITHOUT = """
import multiprocessing, os, signal
for name in ("SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "setitimer", "alarm"):
    if hasattr(signal, name):
        delattr(signal, name)
del os.fork
multiprocessing.set_start_method("spawn")
"""


def test_f100_pumps_need_neither_alarms_nor_forks(field, ledger, closed, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    path = f"{tmp_path}:{field.environ['PYTHONPATH']}"
    process = field.ready(environ={"PYTHONPATH": path}, SHUTDOWN_TIMEOUT=1)
    field_jobs.noop.enqueue()
    until(lambda: ledger.of("start"))
    hung = jobs.hang.enqueue()
    until(lambda: hung.refresh().state == "dead_lettered")
    assert Outcome.objects.get(job_id=hung.id).kind == "timed_out"
    closed()
    process.signal(signal.SIGINT)
    assert process.wait() in {0, 4}


def test_f094_a_shell_in_front_passes_the_signal_on_by_exec(field, ledger, closed):
    process = field.ready(prefix=("/bin/sh", "-c", 'exec "$@"', "sh"))
    field_jobs.noop.enqueue()
    until(lambda: ledger.of("start"))
    closed()
    assert field.stop(process) == [0]
