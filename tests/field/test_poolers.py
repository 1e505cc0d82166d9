"""PgBouncer, which gives another server session to each transaction."""

import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from backwave_django.models import Job, Outcome
from tests.field import jobs
from tests.field.closing import Bounds
from tests.field.poolers import PgBouncer
from tests.field.servers import sessions
from tests.field.stranding import every_second, ticks
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

pytestmark = pytest.mark.vendor("postgresql")

#: What Django needs behind such a pooler, and what ``docs/how-to/pgbouncer.md`` says.
ADVISED = {"DISABLE_SERVER_SIDE_CURSORS": True}
#: So that only a hint can be what woke a pump.
HINTED = {"POLL_INTERVAL": 600, "LEASE_DURATION": 60, "HEARTBEAT_INTERVAL": 19}


@pytest.fixture
def pooler(database_url, need_program):
    program = need_program("pgbouncer")
    # Not under pytest's directory: nobody but root may look into that.
    directory = Path(tempfile.mkdtemp(prefix="pooler-"))
    with PgBouncer(program, url=database_url, directory=directory) as pooler:
        yield pooler
    shutil.rmtree(directory)


def test_f028_all_works_through_a_pooler_with_hints_past_it(
    field, ledger, closed, pooler, database_url
):
    every_second()
    process = field.ready(
        top={"POOLER": "transaction", "DIRECT_URL": database_url},
        database=ADVISED,
        environ={"DATABASE_URL": pooler.url},
        POOL_SIZE=8,
        **HINTED,
    )
    until(lambda: any(name.startswith("backwave:hints") for name in sessions()))
    parent = field_jobs.until.enqueue(str(field.gate))
    child = field_jobs.noop.options(after=parent).enqueue()
    limited = field_jobs.noop.options(unique="only").enqueue()
    jobs.work.enqueue_many([(0.01,)] * 150)
    until(lambda: limited.refresh().state == "succeeded")
    field.open_gate()
    until(lambda: child.refresh().state == "succeeded")
    until(lambda: Job.objects.filter(state="succeeded", schedule=None).count() == 153)
    made = ticks()
    until(lambda: ticks() > made)
    closed(Bounds(lease=HINTED["LEASE_DURATION"]))
    assert field.stop(process) == [0]
    assert not Outcome.objects.exclude(kind="succeeded").exists()
    assert "hints do not arrive" not in process.log
    assert "degraded" not in process.log


def test_without_a_way_past_the_pooler_a_warning_says_what_is_off(field, ledger, closed, pooler):
    process = field.ready(
        top={"POOLER": "transaction"}, database=ADVISED, environ={"DATABASE_URL": pooler.url}
    )
    handle = field_jobs.noop.enqueue()
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(process) == [0]
    assert "backwave.W007" in process.log
    assert "cannot listen for wake-ups" in process.log


def test_a_pooler_that_the_settings_do_not_name_is_noticed(field, ledger, pooler):
    # Not waited for until it is ready: it may halt before, and say the same.
    process = field.pump(environ={"DATABASE_URL": pooler.url})
    # Hints do not arrive; and if it is busy, what the pump has prepared is not there.
    until(lambda: 'BACKWAVE["POOLER"] = "transaction"' in process.log)
    process.terminate()
    assert process.wait() in {0, 3, -signal.SIGTERM}  # it may have been about to end


def test_a_direct_url_that_leads_elsewhere_is_noticed(field, ledger, database_url):
    elsewhere = database_url.rpartition("/")[0] + "/postgres"
    process = field.ready(top={"DIRECT_URL": elsewhere})
    until(lambda: "hints do not arrive" in process.log)
    assert field.stop(process) == [0]
