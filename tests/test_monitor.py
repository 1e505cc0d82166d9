"""The read side: counts that stop, lists that know every queue, and why a job does not run."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings

from backwave_django import monitor
from backwave_django.core.states import JobState
from backwave_django.monitor import counts, patience
from backwave_django.monitor.records import read_record
from backwave_django.store import default_store
from tests.factories import (
    MINUTE,
    SECOND,
    T0,
    DependencyFactory,
    JobFactory,
    LeaseFactory,
    OperatorActionFactory,
    OutcomeFactory,
    PumpFactory,
    QueueFactory,
    uuid7,
)

pytestmark = pytest.mark.django_db

GONE = T0 - timedelta(hours=1)


def test_database_clock_is_aware_and_close_to_ours():
    assert abs(monitor.database_clock() - datetime.now(tz=UTC)) < timedelta(hours=1)  # noqa: TID251 - to compare with


def test_jobs_are_counted_by_state():
    JobFactory.create_batch(2)
    JobFactory.create(limit_key="gateway")
    JobFactory.create_batch(3, state="succeeded")
    LeaseFactory.create()
    DependencyFactory.create(parent=JobFactory.create(state="leased"))
    found = monitor.job_counts()
    assert {state: str(count) for state, count in found.items()} == {
        "scheduled": "3",
        "awaiting": "1",
        "leased": "2",
        "succeeded": "3",
        "dead_lettered": "0",
        "quarantined": "0",
        "expired": "0",
        "cancelled": "0",
    }


def test_job_that_awaits_two_parents_counts_once():
    child = DependencyFactory.create().child
    DependencyFactory.create(child=child)
    assert monitor.job_counts()[JobState.AWAITING].number == 1


def test_counts_stop_at_the_cap(monkeypatch):
    monkeypatch.setattr(counts, "CAP", 2)
    JobFactory.create_batch(4)
    JobFactory.create_batch(2, state="cancelled")
    found = monitor.job_counts()
    assert str(found[JobState.SCHEDULED]) == "2+"
    assert str(found[JobState.CANCELLED]) == "2"
    assert str(monitor.lane_counts(["default"], now=T0)["default"].due) == "2+"


def test_counting_takes_one_statement_that_only_counts_what_it_limited():
    with CaptureQueriesContext(
        connection,
    ) as captured:
        monitor.job_counts()
        monitor.lane_counts(["a", "b", "c"], now=T0)
    assert len(captured) == 2
    for query in captured:
        assert query["sql"].lower().count("count(*)") <= query["sql"].count("LIMIT 10001")


def test_lanes_tell_due_from_later_and_running():
    JobFactory.create(queue="mail", due_at=T0 - 5 * MINUTE)
    JobFactory.create(queue="mail", due_at=T0 - 7 * MINUTE, limit_key="gateway")
    JobFactory.create(queue="mail", due_at=T0 + MINUTE)
    LeaseFactory.create(job__queue="mail")
    JobFactory.create(queue="mail", state="succeeded")
    found = monitor.lane_counts(["mail", "empty"], now=T0)
    assert found["mail"][:3] == ((2, False), (1, False), (1, False))
    assert found["mail"].oldest_due == T0 - 7 * MINUTE
    assert found["empty"].oldest_due is None
    assert monitor.lane_counts([], now=T0) == {}


def test_queues_are_known_from_settings_jobs_pumps_and_switches():
    JobFactory.create(queue="by-job")
    JobFactory.create(queue="by-keyed-job", limit_key="k")
    JobFactory.create(queue="ended-only", state="succeeded")
    PumpFactory.create(queues=["by-pump"])
    PumpFactory.create(queues=["by-dead-pump"], seen_at=GONE)
    QueueFactory.create(name="by-switch")
    with override_settings(BACKWAVE={"GROUPS": {"g": {"QUEUES": ["by-group"]}}}):
        names = [view.name for view in monitor.queue_views(clock=T0)]
    expected = {"by-job", "by-keyed-job", "by-pump", "by-switch", "by-group"}
    assert expected <= set(names)
    assert not {"ended-only", "by-dead-pump"} & set(names)
    assert names == sorted(names)


def test_queue_shows_its_pumps_groups_and_pause():
    JobFactory.create(queue="mail")
    PumpFactory.create(queues=["mail"])
    QueueFactory.create(name="mail", paused=True, paused_at=T0, paused_by="ops")
    with override_settings(BACKWAVE={"GROUPS": {"g": {"QUEUES": ["mail"]}}}):
        view = monitor.queue_view("mail", clock=T0)
    assert (view.paused, view.unserved, view.groups, len(view.pumps)) == (True, False, ("g",), 1)


def test_queue_with_due_jobs_and_no_pump_is_unserved():
    JobFactory.create(queue="mail")
    PumpFactory.create(queues=["other"])
    assert monitor.queue_view("mail", clock=T0).unserved
    assert not monitor.queue_view("other", clock=T0).unserved


def test_pause_with_an_end_ends_by_itself():
    QueueFactory.create(name="mail", paused=True, paused_until=T0)
    assert monitor.queue_view("mail", clock=T0 - SECOND).paused
    assert not monitor.queue_view("mail", clock=T0).paused


@pytest.mark.parametrize(
    ("changes", "pulse", "claims"),
    [
        ({}, "live", True),
        ({"seen_at": T0 - 40 * SECOND}, "live", True),
        ({"seen_at": T0 - 41 * SECOND}, "late", True),
        ({"seen_at": T0 - 61 * SECOND}, "gone", False),
        ({"seen_at": T0 + 5 * SECOND}, "live", True),
        ({"health": "degraded"}, "degraded", True),
        ({"health": "draining"}, "draining", False),
        ({"drain_requested": True}, "draining", False),
        ({"health": "halted", "seen_at": GONE}, "halted", False),
        ({"health": "stopped", "stopped_at": T0}, "stopped", False),
    ],
)
def test_pulse_of_a_pump_is_told_by_the_databases_clock(changes, pulse, claims):
    PumpFactory.create(**changes)
    (view,) = monitor.pump_views(clock=T0)
    assert (view.pulse, view.claims) == (pulse, claims)
    assert len(monitor.pump_views(clock=T0, gone=False)) == int(claims)


def test_job_is_read_with_all_that_hangs_on_it():
    job = JobFactory.create(state="dead_lettered", spent=1, run=1)
    pump = PumpFactory.create()
    OutcomeFactory.create(job=job, pump_id=pump.pk)
    OperatorActionFactory.create(target=str(job.pk))
    OperatorActionFactory.create(target=str(uuid7(7)))
    parent = DependencyFactory.create(child=job, settled=True).parent
    child = DependencyFactory.create(parent=job).child
    found = monitor.read_job(job.pk, clock=T0)
    assert found is not None
    assert found.attempts[0].pump == pump
    assert found.attempts[0].ran_for == 9 * SECOND
    assert [each.target for each in found.actions] == [str(job.pk)]
    assert [each.id for each in found.parents] == [parent.pk]
    assert [each.id for each in found.children] == [child.pk]
    assert found.headline.startswith("It is dead-lettered")


def test_what_is_not_to_be_shown_is_not_read():
    job = JobFactory.create(state="dead_lettered", spent=1, run=1, payload='"hunter2"')
    OutcomeFactory.create(job=job, message="hunter2")
    with CaptureQueriesContext(connection) as captured:
        found = monitor.read_job(job.pk, clock=T0)
    assert found is not None
    assert found.job.get_deferred_fields() == {"payload", "output"}
    assert found.attempts[0].outcome.get_deferred_fields() == {"message", "traceback", "log"}
    assert not any(
        f'"{column}"' in each["sql"]
        for each in captured
        for column in ("payload", "output", "traceback", "message")
    )
    opened = monitor.read_job(job.pk, clock=T0, values=True, failures=True)
    assert opened is not None
    assert opened.attempts[0].outcome.message == "hunter2"


def test_job_that_is_gone_is_none():
    assert monitor.read_job(uuid7(1), clock=T0) is None
    assert read_record(uuid7(1), using="default") is None


def test_record_is_the_job_without_its_payload():
    job = JobFactory.create(priority=-5, tags={"tenant": "acme"}, output="7", state="succeeded")
    record = read_record(job.pk, using="default")
    assert record is not None
    assert (record.id, record.state, record.cause) == (job.pk, "succeeded", "returned")
    assert (record.priority, record.tags, record.output) == (5, {"tenant": "acme"}, "7")


def _run_for_ever():
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"
        )
        cursor.fetchall()


def test_statement_that_takes_too_long_is_given_up_and_the_connection_goes_on(monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 1)
    monkeypatch.setattr(patience, "_MOST_CALLS", 1)
    with pytest.raises(patience.TookTooLong), patience.patience():
        _run_for_ever()
    with patience.patience():
        assert monitor.job_counts()[JobState.SCHEDULED].number == 0


@pytest.mark.vendor("postgresql")
def test_callers_own_limit_outlives_the_page():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '77s'")
        with patience.patience():
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("3s",)
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("77s",)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(milliseconds=1500), "1.5 s"),
        (12 * SECOND, "12 s"),
        (timedelta(seconds=62), "1 min 2 s"),
        (timedelta(hours=3, minutes=4), "3 h 4 min"),
        (timedelta(days=1, hours=2), "1 day 2 h"),
        (timedelta(days=7), "7 days"),
    ],
)
def test_spans_are_told_in_their_two_largest_units(length, words):
    assert monitor.span(length) == words


def test_clock_is_not_behind_what_the_store_has_just_written():
    room = default_store()._room
    for _ in range(500):
        written = room.clock()
        assert monitor.database_clock() >= written - timedelta(microseconds=1)
