"""The commands that look: status, why and doctor."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import override_settings

from backwave_django import monitor
from backwave_django.monitor.doctor import examine
from tests.factories import (
    DependencyFactory,
    JobFactory,
    LeaseFactory,
    OutcomeFactory,
    PumpFactory,
    QueueFactory,
    uuid7,
)

pytestmark = pytest.mark.django_db


def run(*arguments):
    """Return what the command printed and its exit code."""
    out = StringIO()
    try:
        call_command(*map(str, arguments), stdout=out)
    except SystemExit as end:
        return out.getvalue(), end.code
    return out.getvalue(), 0


@pytest.fixture
def clock():
    return monitor.database_clock()


@pytest.fixture
def live_pump(clock):
    return PumpFactory.create(seen_at=clock, executing=2)


def codes(clock, found=None):
    return [alert.code for alert in found or examine(node_clock=clock)]


def test_status_is_calm_when_a_pump_serves_what_is_due(live_pump):
    JobFactory.create()
    out, code = run("backwave_status")
    assert code == 0
    assert "!!" not in out
    assert ["default", "0", "1", "0", "1"] in [line.split() for line in out.splitlines()]
    assert "pump default on web-1" in out
    assert "2/20 slots" in out
    assert "1 scheduled, 0 awaiting" in out


def test_status_says_what_is_wrong_and_what_to_do_and_exits_with_2():
    with override_settings(BACKWAVE={"GROUPS": {"post": {"QUEUES": ["mail"]}}}):
        JobFactory.create(queue="mail")
        out, code = run("backwave_status")
    assert code == 2
    assert "!! 1 job is due in the queue mail, and no live pump serves it." in out
    assert "Start one: python manage.py runpumps --group post" in out


def test_status_as_json_is_one_document(live_pump, clock):
    JobFactory.create(due_at=clock - timedelta(minutes=1))
    QueueFactory.create(name="reports", paused=True)
    out, code = run("backwave_status", "--format=json")
    status = json.loads(out)
    assert (code, status["healthy"]) == (0, True)
    queues = {queue["name"]: queue for queue in status["queues"]}
    assert queues["default"]["due"] == {"number": 1, "more": False}
    assert queues["default"]["oldest_due"] == (clock - timedelta(minutes=1)).isoformat()
    assert queues["reports"]["paused"]
    assert (status["pumps"][0]["pulse"], status["pumps"][0]["executing"]) == ("live", 2)
    assert status["jobs"]["scheduled"] == {"number": 1, "more": False}


def test_why_names_the_decisive_thing_first_and_shows_no_secrets(live_pump, clock):
    job = JobFactory.create(run=1, spent=1, due_at=clock + timedelta(minutes=5), payload='"hun"')
    OutcomeFactory.create(job=job, message="hunter2", finished_at=clock)
    QueueFactory.create(name="default", paused=True, paused_by="ops")
    out, _code = run("backwave_why", job.pk)
    lines = out.splitlines()
    assert lines[0] == f"shop.send_receipt {job.pk}: scheduled, queue default"
    assert lines[1].startswith("* Attempt 1 failed (TimeoutError).")
    assert lines[2].startswith("* The queue default is paused by ops")
    assert lines[3].startswith("  attempt 1: failed → scheduled TimeoutError, ")
    assert "hun" not in out


def test_why_of_a_job_that_is_gone_says_so():
    with pytest.raises(CommandError, match="is gone: purged"):
        run("backwave_why", uuid7(1))


def test_doctor_finds_nothing_in_a_sound_system(live_pump):
    JobFactory.create()
    # Other tests declare job types with queues that nobody serves.
    assert set(codes(monitor.database_clock())) <= {"backwave.W001"}


def test_doctor_tells_alerts_and_exits_with_1_if_they_are_severe(clock):
    PumpFactory.create(health="halted", problem="no such column", seen_at=clock)
    out, code = run("backwave_doctor")
    assert code == 1
    assert "halted: no such column" in out


def test_doctor_compares_clocks(live_pump, clock):
    found = examine(node_clock=clock - timedelta(minutes=5, seconds=30))
    (alert,) = (alert for alert in found if alert.code == "clock")
    assert alert.text.startswith("The clock of this node is 5 min 3")


def test_doctor_finds_rows_that_should_not_be(live_pump, clock):
    JobFactory.create(state="leased")
    LeaseFactory.create(job=JobFactory.create(), expires_at=clock + timedelta(minutes=1))
    DependencyFactory.create(parent=JobFactory.create(state="succeeded", terminal_at=clock))
    found = codes(clock)
    assert [code for code in found if not code.startswith("backwave.")] == [
        "leaseless",
        "orphan_lease",
        "dead_edge",
    ]


def test_doctor_finds_jobs_past_their_retention(live_pump, clock):
    JobFactory.create(state="succeeded", terminal_at=clock - timedelta(days=7, hours=2))
    JobFactory.create(state="cancelled", terminal_at=clock - timedelta(days=7, minutes=2))
    found = [alert for alert in examine(node_clock=clock) if alert.code == "purge"]
    assert [alert.text for alert in found] == [
        "Jobs that are succeeded are kept for longer than RETENTION says."
    ]


def test_doctor_reports_wrong_settings(live_pump, clock):
    with override_settings(BACKWAVE={"MIDDLEWARE": ["nowhere.at_all"]}):
        assert "backwave.E022" in codes(clock)


def test_doctor_asks_for_migrations_before_anything_else(clock):
    MigrationRecorder(connection).migration_qs.filter(app="backwave").delete()
    found = examine(node_clock=clock)
    assert {alert.code for alert in found} == {"migration"}
    assert found[0].remedy == "python manage.py migrate backwave --database default"


def test_alerts_tell_late_degraded_and_lapsed_apart(clock):
    PumpFactory.create(seen_at=clock - timedelta(seconds=50), queues=[])
    PumpFactory.create(seen_at=clock, health="degraded", problem="connection refused", queues=[])
    LeaseFactory.create(pump_id=uuid7(1), expires_at=clock - timedelta(seconds=1))
    found = monitor.alerts(clock=clock)
    assert codes(clock, found) == ["degraded", "late", "lapsed"]
    assert [alert.severe for alert in found] == [True, False, False]


def test_paused_queue_with_due_jobs_is_told_but_not_severe(clock, live_pump):
    JobFactory.create()
    QueueFactory.create(name="default", paused=True, pause_reason="vendor outage")
    (alert,) = monitor.alerts(clock=clock)
    assert (alert.code, alert.severe) == ("paused", False)
    assert "vendor outage" in alert.text
    assert "backwave_resume default" in alert.remedy


def test_status_shows_limits_rates_and_windows(live_pump, clock):
    opens = clock + timedelta(hours=3)
    window = f"{opens:%H}:00-{opens + timedelta(hours=1):%H}:00 UTC"
    later = clock + timedelta(minutes=1)
    QueueFactory.create(name="a", limit=7, rate_default="1/minute", rate_full_at=later)
    QueueFactory.create(name="b", limit_default=4, rate="9/hour", window_default=window)
    QueueFactory.create(name="c", window="always")
    lines = run("backwave_status")[0].splitlines()
    said = {line.split()[0]: line for line in lines if line[:2] in {"a ", "b ", "c "}}
    assert "limit 7 (operator)  rate 1/minute (settings, next in " in said["a"]
    assert "limit 4 (settings)  rate 9/hour (operator)  " in said["b"]
    assert f"window {window} (settings, opens in " in said["b"]
    assert said["c"].endswith("window always (operator, open)")
    queues = json.loads(run("backwave_status", "--format=json")[0])["queues"]
    found = {queue["name"]: queue for queue in queues}
    assert (found["a"]["limit"], found["a"]["rate"]) == (7, "1/minute")
    assert found["a"]["next_token"] == later.isoformat()
    assert found["a"]["set_by"] == {"limit": "operator", "rate": "settings"}
    assert (found["b"]["limit"], found["b"]["rate"]) == (4, "9/hour")
    assert found["b"]["window"] == window
    assert found["b"]["opens_at"].startswith(f"{opens:%Y-%m-%dT%H}:00:00")
    assert found["default"]["window"] is found["default"]["rate"] is None
    assert found["default"]["set_by"] == {}
