"""Schedules under the harness: what a project's own tests see of them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.test.utils import override_settings

import backwave_django as backwave
from backwave_django.jobs.schedules import schedules
from backwave_django.models import Job, Schedule
from backwave_django.testing import Harness

pytestmark = pytest.mark.django_db

heard: list[datetime | None] = []


@backwave.job("tests.over_time.note")
def note(
    ctx: backwave.JobContext = backwave.context(),
) -> None:
    heard.append(ctx.scheduled_for)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_declared", [])
    heard.clear()


def sync_at(now: datetime) -> None:
    """Store what is declared as if it were ``now``."""
    call_command("backwave_sync_schedules", verbosity=0)
    Schedule.objects.update(created_at=now, cursor=now, next_at=None)


def test_a_daily_job_runs_on_each_day_that_passes() -> None:
    start = datetime(2027, 3, 26, tzinfo=UTC)
    backwave.schedule("30 2 * * *", timezone="Europe/Berlin")(note)
    sync_at(start)
    with Harness(now=start) as harness:
        assert harness.advance(days=4) == 4
    assert heard == [
        datetime(2027, 3, 26, 1, 30, tzinfo=UTC),
        datetime(2027, 3, 27, 1, 30, tzinfo=UTC),
        datetime(2027, 3, 28, 1, 0, tzinfo=UTC),  # 03:00 there: 02:30 was skipped
        datetime(2027, 3, 29, 0, 30, tzinfo=UTC),
    ]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/Los_Angeles"])
def test_f085_each_slot_fires_once(zone: str) -> None:
    start = datetime(2027, 6, 1, 9, 58, 30, tzinfo=UTC)
    with override_settings(TIME_ZONE=zone):
        backwave.add_schedule("daily", "0 0 * * *", job=note)
        backwave.add_schedule("often", "*/5 * * * *", job=note)
        sync_at(start)
        with Harness(now=start) as harness:
            harness.advance(minutes=11)
    assert heard == [
        datetime(2027, 6, 1, 10, 0, tzinfo=UTC),
        datetime(2027, 6, 1, 10, 5, tzinfo=UTC),
    ]


def test_sub_minute_intervals_run_on_time() -> None:
    start = datetime(2027, 6, 1, tzinfo=UTC)
    backwave.add_schedule("often", every=timedelta(seconds=7), job=note)
    sync_at(start)
    with Harness(now=start) as harness:
        harness.advance(minutes=1)
    assert heard == [start + n * timedelta(seconds=7) for n in range(1, 9)]
    for job in Job.objects.all():
        assert job.due_at == job.scheduled_for
