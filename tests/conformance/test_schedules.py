"""Schedules that code declares and people make, and what is done to them by hand."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from backwave_django.core.contract import ActionResult, ScheduleAnswer, Store
from backwave_django.core.memory import Snapshot
from backwave_django.core.schedule_answers import DeclareMode, DeclareResult, DeclareRow
from backwave_django.core.schedule_rows import ScheduleRow
from backwave_django.core.schedules import Rule
from backwave_django.core.states import JobState
from tests.builders import (
    ACTOR,
    HOUR,
    MINUTE,
    SECOND,
    T0,
    claim_request,
    schedule_spec,
    succeeded,
)

Observe = Callable[[], Snapshot]
CREATE, UPDATE, SYNC = DeclareMode.CREATE, DeclareMode.UPDATE, DeclareMode.SYNC
DONE, REFUSED, GONE = ActionResult.DONE, ActionResult.REFUSED, ActionResult.GONE
NOW = T0 + 90 * MINUTE


def declare(store, *specs, mode=CREATE, owner="shop", release=None, now=T0):
    return store.declare_schedules(specs, owner=owner, release=release, mode=mode, now=now)


def only(snapshot: Snapshot) -> ScheduleRow:
    (row,) = snapshot.schedules.values()
    return row


def audited(snapshot: Snapshot) -> list[tuple[object, ...]]:
    return [
        (a.action, a.target_kind, a.target, dict(a.before), dict(a.after), a.result)
        for a in snapshot.actions
    ]


# Declared in code


def test_a_declared_schedule_begins_now(store: Store, observe: Observe) -> None:
    assert declare(store, schedule_spec(), release=7) == (
        DeclareRow("nightly", DeclareResult.CREATED),
    )
    assert only(observe()) == ScheduleRow(
        spec=schedule_spec(),
        created_at=T0,
        owner="shop",
        release=7,
        cursor=T0,
        next_at=T0 + HOUR,
    )
    assert observe().actions == ()


def test_everything_declared_is_kept(store: Store, observe: Observe) -> None:
    spec = schedule_spec(
        "s",
        rule=Rule(every_seconds=1.5, timezone="Europe/Berlin"),
        priority=-7,
        payload_version=3,
        tags='{"team": "ops"}',
        limit_key="gateway",
        catch_up="coalesce",
        no_overlap=True,
    )
    declare(store, spec)
    assert only(observe()).spec == spec


def test_a_schedule_that_is_there_is_left_as_it_is(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec())
    before = observe().schedules
    assert declare(store, schedule_spec(), now=NOW) == (
        DeclareRow("nightly", DeclareResult.UNCHANGED),
    )
    changed = schedule_spec(rule=Rule(cron="5 * * * *"), queue="bulk")
    assert declare(store, changed, now=NOW) == (
        DeclareRow("nightly", DeclareResult.DRIFTED, "rule, queue"),
    )
    assert observe().schedules == before


def test_an_update_brings_a_schedule_in_line(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec())
    changed = schedule_spec(rule=Rule(cron="5 * * * *"), queue="bulk")
    assert declare(store, changed, mode=UPDATE, release=2, now=NOW) == (
        DeclareRow("nightly", DeclareResult.UPDATED, "rule, queue"),
    )
    assert only(observe()) == ScheduleRow(
        spec=changed,
        created_at=T0,
        owner="shop",
        release=2,
        cursor=NOW,
        next_at=T0 + 2 * HOUR + 5 * MINUTE,
    )


def test_an_update_of_the_job_keeps_the_ticks(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec())
    declare(store, schedule_spec(payload='{"args":[2]}'), mode=UPDATE, now=NOW)
    assert (only(observe()).cursor, only(observe()).next_at) == (T0, T0 + HOUR)


def test_the_same_tags_in_another_order_are_no_difference(store: Store) -> None:
    declare(store, schedule_spec(tags='{"a": 1, "b": 2}'))
    assert declare(store, schedule_spec(tags='{"b":2,"a":1}'), mode=UPDATE) == (
        DeclareRow("nightly", DeclareResult.UNCHANGED),
    )


def test_a_paused_schedule_stays_paused_whatever_is_declared(
    store: Store, observe: Observe
) -> None:
    declare(store, schedule_spec())
    store.pause_schedule("nightly", actor=ACTOR, now=T0)
    declare(store, schedule_spec(rule=Rule(cron="5 * * * *")), mode=SYNC, now=NOW)
    assert only(observe()).enabled is False


def test_a_sync_retires_what_its_owner_declares_no_more(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec("a"), schedule_spec("b"), release=1)
    declare(store, schedule_spec("c"), owner="crm")
    store.save_schedule(schedule_spec("d"), actor=ACTOR, now=T0)
    assert declare(store, schedule_spec("a"), mode=SYNC, release=2, now=NOW) == (
        DeclareRow("a", DeclareResult.UNCHANGED),
        DeclareRow("b", DeclareResult.RETIRED),
    )
    rows = observe().schedules
    assert {name: row.retired_at for name, row in rows.items()} == {
        "a": None, "b": NOW, "c": None, "d": None,
    }  # fmt: skip
    assert (rows["a"].release, rows["b"].release) == (2, 2)
    names = [one.name for one in store.load_schedules(after="", limit=10).schedules]
    assert names == ["a", "c", "d"]


def test_a_retired_schedule_that_is_declared_again_begins_anew(
    store: Store, observe: Observe
) -> None:
    declare(store, schedule_spec())
    declare(store, mode=SYNC, now=T0 + MINUTE)
    assert declare(store, schedule_spec(), now=NOW) == (
        DeclareRow("nightly", DeclareResult.DRIFTED, "retired"),
    )
    assert declare(store, schedule_spec(), mode=UPDATE, now=NOW) == (
        DeclareRow("nightly", DeclareResult.UPDATED, "retired"),
    )
    row = only(observe())
    assert (row.retired_at, row.cursor, row.next_at) == (None, NOW, T0 + 2 * HOUR)


def test_an_older_release_is_refused(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec("a"), release=5)
    before = observe().schedules["a"]
    changed = schedule_spec("a", queue="bulk")
    refused = DeclareRow("a", DeclareResult.REFUSED, "release 5 has written it")
    assert declare(store, changed, mode=UPDATE, release=4) == (refused,)
    assert declare(store, changed, mode=SYNC, release=4) == (refused,)
    assert declare(store, mode=SYNC, release=4) == ()
    assert observe().schedules["a"] == before
    # What is missing is made all the same, by pumps of whatever release.
    created = DeclareRow("b", DeclareResult.CREATED)
    assert declare(store, schedule_spec("b"), release=4) == (created,)


def test_a_schedule_of_somebody_else_is_refused(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec("a"), owner="crm")
    store.save_schedule(schedule_spec("b"), actor=ACTOR, now=T0)
    before = observe().schedules
    specs = schedule_spec("a", queue="bulk"), schedule_spec("b", queue="bulk")
    for mode in DeclareMode:
        assert declare(store, *specs, mode=mode) == (
            DeclareRow("a", DeclareResult.REFUSED, "it belongs to 'crm'"),
            DeclareRow("b", DeclareResult.REFUSED, "a person made it"),
        )
    assert observe().schedules == before


# Made by people


def test_a_person_makes_and_changes_a_schedule(store: Store, observe: Observe) -> None:
    made = store.save_schedule(schedule_spec(), actor=ACTOR, now=T0)
    assert made == ScheduleAnswer(name="nightly", result=DONE)
    assert only(observe()).owner is None
    changed = schedule_spec(rule=Rule(every_seconds=60.0), priority=5)
    store.save_schedule(changed, actor=ACTOR, now=NOW)
    row = only(observe())
    assert (row.spec, row.cursor, row.next_at) == (changed, NOW, NOW + MINUTE)
    create, change = observe().actions
    assert (create.action, create.before, create.result) == ("create", {}, "done")
    assert create.after == {
        "cron": "0 * * * *", "every_seconds": None, "timezone": "UTC", "wire_name": "shop.pack",
        "queue": "default", "priority": 0, "catch_up": "skip", "no_overlap": False,
        "enabled": True,
    }  # fmt: skip
    assert (change.action, change.before) == ("change", create.after)
    assert change.after["every_seconds"] == 60.0


def test_a_change_of_the_job_alone_keeps_the_ticks(store: Store, observe: Observe) -> None:
    store.save_schedule(schedule_spec(), actor=ACTOR, now=T0)
    store.save_schedule(schedule_spec(queue="bulk"), actor=ACTOR, now=NOW)
    assert (only(observe()).cursor, only(observe()).spec.queue) == (T0, "bulk")


def test_a_schedule_that_cannot_work_is_kept_in_error(store: Store, observe: Observe) -> None:
    store.save_schedule(schedule_spec(rule=Rule(cron="61 * * * *")), actor=ACTOR, now=T0)
    row = only(observe())
    assert "the minute field cannot be '61'" in row.problem
    assert row.next_at is None


def test_what_code_declares_is_not_changed_by_people(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec())
    before = observe().schedules
    answer = store.save_schedule(schedule_spec(queue="bulk"), actor=ACTOR, now=NOW)
    assert (answer.result, answer.detail) == (REFUSED, "it is declared in code: change it there")
    assert store.delete_schedule("nightly", actor=ACTOR, now=NOW).result is REFUSED
    assert observe().schedules == before
    assert [action.result for action in observe().actions] == ["refused", "refused"]


def test_delete_leaves_the_jobs(store: Store, observe: Observe) -> None:
    store.save_schedule(schedule_spec(), actor=ACTOR, now=T0)
    store.trigger_schedule("nightly", actor=ACTOR, now=T0)
    assert store.delete_schedule("nightly", actor=ACTOR, now=T0).result is DONE
    assert store.delete_schedule("nightly", actor=ACTOR, now=T0).result is GONE
    assert observe().schedules == {}
    assert [job["schedule"] for job in observe().jobs.values()] == ["nightly"]


def test_a_retired_schedule_can_be_deleted(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec())
    declare(store, mode=SYNC)
    assert store.delete_schedule("nightly", actor=ACTOR, now=T0).result is DONE
    assert observe().schedules == {}


# By hand


def test_pause_and_resume(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec())
    assert store.pause_schedule("nightly", actor=ACTOR, now=T0).result is DONE
    assert store.load_schedules(after="", limit=10).schedules == ()
    assert store.pause_schedule("nightly", actor=ACTOR, now=T0).detail == "it is paused already"
    assert store.resume_schedule("nightly", actor=ACTOR, now=NOW).result is DONE
    row = only(observe())
    assert (row.enabled, row.cursor, row.next_at) == (True, NOW, T0 + 2 * HOUR)
    assert store.resume_schedule("nightly", actor=ACTOR, now=NOW).detail == "it is not paused"
    on, off = {"enabled": True}, {"enabled": False}
    assert audited(observe()) == [
        ("pause", "schedule", "nightly", on, off, "done"),
        ("pause", "schedule", "nightly", off, off, "refused"),
        ("resume", "schedule", "nightly", off, on, "done"),
        ("resume", "schedule", "nightly", on, on, "refused"),
    ]


def test_trigger_makes_a_job_and_moves_no_cursor(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec(priority=5, tags='{"team": "ops"}', limit_key="k"))
    before = observe().schedules
    answer = store.trigger_schedule("nightly", actor=ACTOR, now=NOW)
    assert answer.result is DONE
    (job_id,) = observe().jobs
    assert answer.job_id == job_id
    job = observe().jobs[job_id]
    expected = {
        "state": JobState.SCHEDULED, "schedule": "nightly", "scheduled_for": None, "due_at": NOW,
        "wire_name": "shop.pack", "queue": "default", "priority": 5, "payload": '{"args":[1]}',
        "tags": {"team": "ops"}, "limit_key": "k",
    }  # fmt: skip
    assert {name: job[name] for name in expected} == expected
    assert observe().schedules == before
    assert audited(observe()) == [
        ("trigger", "schedule", "nightly", {}, {"job": str(job_id)}, "done")
    ]


def test_a_paused_schedule_can_be_triggered_as_often_as_one_likes(
    store: Store, observe: Observe
) -> None:
    declare(store, schedule_spec())
    store.pause_schedule("nightly", actor=ACTOR, now=T0)
    for _ in range(3):
        assert store.trigger_schedule("nightly", actor=ACTOR, now=NOW).result is DONE
    assert len(observe().jobs) == 3


def test_trigger_does_not_overlap_either(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec(no_overlap=True))
    store.trigger_schedule("nightly", actor=ACTOR, now=T0)
    second = store.trigger_schedule("nightly", actor=ACTOR, now=T0)
    assert second.result is ActionResult.CONFLICT
    assert second.job_id is None
    (job,) = store.claim(claim_request(), now=T0).jobs
    assert store.trigger_schedule("nightly", actor=ACTOR, now=T0).result is ActionResult.CONFLICT
    store.report([succeeded(job)], now=T0)
    assert store.trigger_schedule("nightly", actor=ACTOR, now=T0).result is DONE
    assert len(observe().jobs) == 2


def test_nothing_is_done_to_a_retired_schedule(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec())
    declare(store, mode=SYNC)
    before = observe().schedules
    for act in (store.trigger_schedule, store.pause_schedule, store.resume_schedule):
        answer = act("nightly", actor=ACTOR, now=NOW)
        assert (answer.result, answer.detail) == (REFUSED, "it is retired")
    assert (observe().schedules, observe().jobs) == (before, {})


def test_nothing_is_done_to_a_schedule_that_is_not_there(store: Store, observe: Observe) -> None:
    for act in (
        store.trigger_schedule,
        store.pause_schedule,
        store.resume_schedule,
        store.delete_schedule,
    ):
        assert act("nowhere", actor=ACTOR, now=NOW) == ScheduleAnswer(name="nowhere", result=GONE)
    assert [action.result for action in observe().actions] == ["gone"] * 4


# Reading


def test_schedules_are_read_by_name_in_pages(store: Store) -> None:
    names = ["B", "a", "b", "c", "é"]
    declare(store, *(schedule_spec(name) for name in names))
    pages = []
    after = ""
    while True:
        answer = store.load_schedules(after=after, limit=2)
        pages.append([one.name for one in answer.schedules])
        if not answer.full:
            break
        after = pages[-1][-1]
    assert pages == [["B", "a"], ["b", "c"], ["é"]]


def test_a_read_schedule_says_what_a_pump_has_to_know(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec(rule=Rule(every_seconds=0.1 * 3 + 5), payload_version=2))
    (read,) = store.load_schedules(after="", limit=10).schedules
    assert read == only(observe()).loaded()
    assert (read.created_at, read.cursor) == (T0, T0)
    assert read.rule == Rule(every_seconds=0.1 * 3 + 5)


@pytest.mark.parametrize("now", [T0 + SECOND])
def test_the_clock_comes_with_the_answer(store: Store, now: datetime) -> None:
    assert store.load_schedules(after="", limit=10).clock.tzinfo is not None
    assert store.mint([], now=now).clock.tzinfo is not None


def test_rows_are_replaced_whole(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec("a"), schedule_spec("b"))
    before = observe().schedules["b"]
    declare(store, schedule_spec("a", tags='{"x": 1}'), mode=UPDATE)
    assert observe().schedules["b"] == before
    assert observe().schedules["a"] == replace(before, spec=schedule_spec("a", tags='{"x": 1}'))
