"""Schedules end to end: what a starting pump makes of the code's, and ticks that become jobs."""

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

import backwave_django as backwave
from backwave_django import operations
from backwave_django.jobs.schedules import schedules
from backwave_django.models import Job, Schedule
from backwave_django.monitor import database_clock
from tests.builders import ACTOR
from tests.pumps.running import RunningNode
from tests.pumps.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
NOMINAL: list[datetime | None] = []


@backwave.job("pump.tick")
def tick(
    ctx: backwave.JobContext = backwave.context(),
) -> None:
    NOMINAL.append(ctx.scheduled_for)


@backwave.job("pump.greet")
def greet(name: str) -> str:
    return name


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_declared", [])
    NOMINAL.clear()


def rows() -> dict[str, Any]:
    return {row.name: row for row in Schedule.objects.all()}


def test_a_starting_pump_makes_what_is_missing() -> None:
    backwave.schedule("0 2 * * *", timezone="Europe/Zurich", no_overlap=True)(tick)
    backwave.add_schedule("greeting", every=timedelta(hours=1), job=greet.s("world"))
    with RunningNode():
        until(lambda: Schedule.objects.count() == 2)
    made = rows()["pump.tick"]
    assert (made.cron, made.timezone, made.no_overlap) == ("0 2 * * *", "Europe/Zurich", True)
    assert (made.owner, made.release, made.enabled) == ("default", None, True)
    assert made.next_at > timezone.now()
    assert rows()["greeting"].every_seconds == 3600.0


def test_ticks_are_run_on_time_and_know_their_nominal_time() -> None:
    backwave.add_schedule("often", every=SECOND, job=tick)
    with RunningNode(MAINTENANCE_INTERVAL=60):
        until(lambda: len(NOMINAL) >= 3)
    created = rows()["often"].created_at.replace(microsecond=0)
    assert sorted(set(NOMINAL)) == NOMINAL  # type: ignore[type-var]  # each has one
    for nominal in NOMINAL:
        assert nominal is not None
        assert (nominal - created) % SECOND == timedelta(0)
    found = Job.objects.filter(schedule="often").values_list("scheduled_for", flat=True)
    assert set(NOMINAL) <= set(found)


def test_a_job_made_by_hand_runs_and_has_no_nominal_time() -> None:
    backwave.schedule("0 2 * * *")(tick)
    with RunningNode():
        until(Schedule.objects.exists)
        answer = operations.trigger_schedule("pump.tick", actor=ACTOR, now=database_clock())
        assert answer.job_id is not None
        until(lambda: NOMINAL == [None])


def test_f077_a_row_that_cannot_work_stops_no_other() -> None:
    backwave.add_schedule("often", every=SECOND, job=tick)
    Schedule.objects.create(
        name="a bad one",
        cron="61 * * * *",
        wire_name="pump.tick",
        queue="default",
        payload="{}",
        created_at=timezone.now(),
    )
    with RunningNode():
        until(lambda: len(NOMINAL) >= 2 and rows()["a bad one"].problem != "")
    assert "the minute field cannot be '61'" in rows()["a bad one"].problem
    assert rows()["often"].problem == ""


def test_f155_a_row_that_names_other_code_never_runs_it() -> None:
    before = timezone.now().replace(microsecond=0) - timedelta(hours=1)
    Schedule.objects.create(
        name="evil",
        every_seconds=1,
        wire_name="os.system",
        queue="default",
        payload='{"args":["true"]}',
        cursor=before,
        next_at=before + SECOND,
        created_at=before,
    )
    with RunningNode():
        until(lambda: rows()["evil"].problem != "")
    assert "no pump knows the job type 'os.system'" in rows()["evil"].problem
    assert not Job.objects.exists()


@pytest.mark.parametrize("how", ["save", "update", "sql"])
def test_f080_an_edit_is_picked_up_however_it_is_made(how: str) -> None:
    backwave.add_schedule("often", every=timedelta(hours=1), job=tick)
    with RunningNode():
        until(Schedule.objects.exists)
        if how == "save":
            row = Schedule.objects.get()
            row.every_seconds = 1.0
            row.save()
        elif how == "update":
            Schedule.objects.update(every_seconds=1.0)
        else:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE backwave_schedule SET every_seconds = 1")
        until(lambda: len(NOMINAL) >= 1)
        Schedule.objects.update(enabled=False)
        count = Job.objects.count()
        later = greet.options(delay=2 * SECOND).enqueue("a look at it later")
        until(lambda: later.refresh().state == "succeeded")
        # One tick may have been minted between the two statements above.
        assert Job.objects.filter(schedule="often").count() <= count + 1


def test_a_paused_schedule_mints_nothing_until_it_is_resumed() -> None:
    backwave.add_schedule("often", every=SECOND, job=tick)
    with RunningNode():
        until(lambda: len(NOMINAL) >= 1)
        operations.pause_schedule("often", actor=ACTOR, now=database_clock())
        count = Job.objects.count()
        other = greet.enqueue("still here")
        until(lambda: other.refresh().state == "succeeded")
        assert Job.objects.filter(schedule="often").count() == count
        operations.resume_schedule("often", actor=ACTOR, now=database_clock())
        until(lambda: Job.objects.filter(schedule="often").count() > count)


def test_drift_is_warned_about_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    backwave.schedule("0 2 * * *")(tick)
    with RunningNode():
        until(Schedule.objects.exists)
    Schedule.objects.update(cron="0 3 * * *")
    with caplog.at_level(logging.WARNING, "backwave.store"), RunningNode():
        until(lambda: "is not as this code declares it (rule)" in caplog.text)
    assert "run backwave_sync_schedules" in caplog.text
    assert rows()["pump.tick"].cron == "0 3 * * *"


@override_settings(DEBUG=True)
def test_in_development_a_starting_pump_updates_too() -> None:
    backwave.schedule("0 2 * * *")(tick)
    with RunningNode():
        until(Schedule.objects.exists)
    Schedule.objects.update(cron="0 3 * * *")
    with RunningNode():
        until(lambda: rows()["pump.tick"].cron == "0 2 * * *")


def test_a_wrong_declaration_stops_no_pump(caplog: pytest.LogCaptureFixture) -> None:
    backwave.schedule("0 2 * * *")(tick)
    backwave.schedule("0 3 * * *")(tick)
    with RunningNode():
        handle = greet.enqueue("all the same")
        until(lambda: handle.refresh().state == "succeeded")
    assert "the schedules of this code are not declared" in caplog.text
