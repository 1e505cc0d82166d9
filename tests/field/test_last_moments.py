"""Signals that come when a process has already decided how it ends."""

import signal

import pytest

from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

ENDS = {
    "drained": ["--drain"],
    "parent of two": ["--drain", "--processes", "2"],
    "told to": [],
}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
@pytest.mark.parametrize("options", ENDS.values(), ids=ENDS)
def test_a_signal_after_all_pumps_have_ended_changes_no_exit_code(
    field, ledger, tmp_path, options, signum
):
    field_jobs.noop.enqueue()
    mark = tmp_path / "lingers"
    settings = {"DJANGO_SETTINGS_MODULE": "tests.field.lingering", "FIELD_LINGERS": str(mark)}
    process = field.pump(*options, environ=settings)
    until(lambda: ledger.of("start"))
    if not options:
        process.signal(signum)
    until(mark.exists, what="the process is about to end")
    for _ in range(20):
        process.signal(signum)
    mark.with_suffix(".done").touch()
    assert process.wait() == 0
    assert "Traceback" not in process.log
