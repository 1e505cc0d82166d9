"""Machines whose clocks are wrong, or set while pumps run. The database's clock counts."""

from datetime import timedelta
from functools import partial

import pytest

from backwave_django.models import Job, Lease, Outcome, Pump
from backwave_django.monitor import database_clock
from tests.field.clocks import WrongClock
from tests.field.ground import QUICK
from tests.field.stranding import every_second, ticks
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

# On SQLite the database's clock is the machine's.
pytestmark = pytest.mark.vendor("postgresql")

LEASE = QUICK["LEASE_DURATION"]
A_WHILE = timedelta(seconds=60)
DELAYED = (
    "from datetime import timedelta; from tests.fieldapp import jobs; "
    "jobs.noop.options(delay=timedelta(seconds=3)).enqueue(); "
    "jobs.noop.options(delay=timedelta(seconds=3)).enqueue_many([()] * 2); "
    "jobs.noop.options(deadline=timedelta(seconds=30)).enqueue()"
)


def _ticked(times: int) -> bool:
    return ticks() > times


@pytest.fixture
def clock(tmp_path, need_program):
    need_program("faketime")
    return WrongClock(tmp_path)


def test_f019_a_delay_counts_from_the_databases_clock_whoever_enqueues(
    field, ledger, closed, clock
):
    for offset in ("+10m", "-10m"):
        known = set(Job.objects.values_list("id", flat=True))
        clock.set(offset)
        before = database_clock()
        shell = field.manage("shell", "-v0", "-c", DELAYED, environ=clock.environ)
        assert shell.wait() == 0
        later, after = timedelta(seconds=3), database_clock()
        new = Job.objects.exclude(id__in=known)
        dues = new.filter(deadline=None).values_list("due_at", flat=True)
        assert len(dues) == 3
        assert all(before + later <= due_at <= after + later for due_at in dues)
        ((due_at, deadline),) = new.exclude(deadline=None).values_list("due_at", "deadline")
        assert deadline is not None
        assert before <= due_at <= after
        assert before <= deadline - timedelta(seconds=30) <= after
    process = field.ready(environ=clock.environ)
    until(lambda: Job.objects.filter(state="succeeded").count() == 8)
    for outcome in Outcome.objects.select_related("job"):
        assert outcome.started_at is not None
        assert outcome.started_at >= outcome.job.due_at
        assert abs(outcome.finished_at - database_clock()) < A_WHILE
    closed()
    assert field.stop(process) == [0]


def test_f088_a_clock_that_is_set_while_pumps_run_changes_nothing(field, ledger, closed, clock):
    every_second()
    wrong, right = field.ready(environ=clock.environ), field.ready()
    handle = field_jobs.until.enqueue_many([(str(field.gate),)] * 4)[0]
    until(lambda: len(ledger.of("start")) == 4)
    for offset in ("+10m", "-1h", "+0"):
        clock.set(offset)
        until(partial(_ticked, ticks() + 1), what="schedules go on")
        assert all(
            timedelta(0) < expires_at - database_clock() <= timedelta(seconds=LEASE + 1)
            for (expires_at,) in Lease.objects.values_list("expires_at")
        )
    nominal = [
        scheduled_for
        for scheduled_for in Job.objects.filter(schedule="ticking")
        .order_by("scheduled_for")
        .values_list("scheduled_for", flat=True)
        if scheduled_for is not None
    ]
    assert len(set(nominal)) == len(nominal)
    assert nominal[-1] - database_clock() < timedelta(seconds=1)
    assert all(
        abs(seen_at - database_clock()) < A_WHILE
        for (seen_at,) in Pump.objects.values_list("seen_at")
    )
    field.open_gate()
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(wrong, right) == [0, 0]
    assert not Outcome.objects.filter(kind="lapsed").exists()
    assert {entry.attempt for entry in ledger.of("finish")} == {1}
