"""Ticks become jobs: each once, and only as long as the schedule is as it was seen."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.memory import Snapshot
from backwave_django.core.schedule_answers import DeclareMode, MintResult, MintRow
from backwave_django.core.schedule_rows import ScheduleRow
from backwave_django.core.schedules import Decision, Rule, decide
from backwave_django.core.states import JobState
from tests.builders import (
    ACTOR,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    T0,
    claim_request,
    schedule_spec,
    succeeded,
)
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
MINTED, OVERLAPPED = MintResult.MINTED, MintResult.OVERLAPPED
NOTED, STALE = MintResult.NOTED, MintResult.STALE


def declare(store, *specs, now=T0):
    store.declare_schedules(
        specs or (schedule_spec(),), owner="shop", release=None, mode=DeclareMode.UPDATE, now=now
    )


def decisions(store, *, now, known=None):
    """What a pump would decide about the schedules as they are."""
    read = store.load_schedules(after="", limit=100).schedules
    found = [decide(one, now=now, known=known) for one in read]
    return [one for one in found if one is not None]


def turn(store, *, now):
    """Decide and mint, as a pump does; say what came of it."""
    return [(row.name, row.result) for row in store.mint(decisions(store, now=now), now=now).rows]


def row(snapshot: Snapshot, name: str = "nightly") -> ScheduleRow:
    return snapshot.schedules[name]


def ticks(snapshot: Snapshot) -> list[object]:
    return sorted(job["scheduled_for"] for job in snapshot.jobs.values())  # type: ignore[type-var]  # instants


def test_a_due_tick_becomes_a_job(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec(priority=5, tags='{"team": "ops"}', limit_key="k"))
    now = T0 + HOUR + 3 * SECOND
    answer = store.mint(decisions(store, now=now), now=now)
    (job_id,) = observe().jobs
    assert answer.rows == (MintRow("nightly", MINTED, job_id),)
    job = observe().jobs[job_id]
    expected = {
        "state": JobState.SCHEDULED, "schedule": "nightly", "scheduled_for": T0 + HOUR,
        "due_at": now, "wire_name": "shop.pack", "queue": "default", "priority": 5,
        "payload": '{"args":[1]}', "payload_version": 1, "tags": {"team": "ops"},
        "limit_key": "k", "run": 0, "spent": 0, "deadline": None, "unique_key": None,
    }  # fmt: skip
    assert {name: job[name] for name in expected} == expected
    assert (row(observe()).cursor, row(observe()).next_at) == (T0 + HOUR, T0 + 2 * HOUR)


def test_f083_a_claim_carries_the_nominal_time(store: Store) -> None:
    declare(store)
    for late in (T0 + HOUR + 100 * SECOND, T0 + 2 * HOUR + 100 * SECOND):
        turn(store, now=late)
    jobs = store.claim(claim_request(), now=T0 + DAY).jobs
    assert [(job.schedule, job.scheduled_for) for job in jobs] == [
        ("nightly", T0 + HOUR),
        ("nightly", T0 + 2 * HOUR),
    ]


def test_a_decision_applies_once(store: Store, observe: Observe) -> None:
    declare(store)
    made = decisions(store, now=T0 + HOUR)
    assert store.mint(made, now=T0 + HOUR).rows[0].result is MINTED
    after = observe()
    assert store.mint(made, now=T0 + HOUR).rows == (MintRow("nightly", STALE),)
    assert observe() == after


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.pause_schedule("nightly", actor=ACTOR, now=T0),
        lambda store: store.declare_schedules(
            [], owner="shop", release=None, mode=DeclareMode.SYNC, now=T0
        ),
        lambda store: declare(store, schedule_spec(rule=Rule(cron="5 * * * *"))),
        lambda store: declare(
            store, schedule_spec(rule=Rule(cron="0 * * * *", timezone="Europe/Berlin"))
        ),
        lambda store: turn(store, now=T0 + HOUR),
    ],
    ids=["paused", "retired", "edited", "moved", "minted"],
)
def test_a_schedule_that_changed_meanwhile_is_left_alone(
    store: Store, observe: Observe, change: Callable[[Store], object]
) -> None:
    declare(store)
    made = decisions(store, now=T0 + HOUR)
    change(store)
    before = observe()
    assert store.mint(made, now=T0 + HOUR).rows == (MintRow("nightly", STALE),)
    assert observe() == before


def test_a_schedule_that_is_gone_is_left_alone(store: Store, observe: Observe) -> None:
    store.save_schedule(schedule_spec(), actor=ACTOR, now=T0)
    made = decisions(store, now=T0 + HOUR)
    store.delete_schedule("nightly", actor=ACTOR, now=T0)
    assert store.mint(made, now=T0 + HOUR).rows == (MintRow("nightly", STALE),)
    assert observe().jobs == {}


def test_a_job_that_was_edited_meanwhile_is_minted_as_it_is_now(
    store: Store, observe: Observe
) -> None:
    declare(store)
    made = decisions(store, now=T0 + HOUR)
    declare(store, schedule_spec(queue="bulk"))
    assert store.mint(made, now=T0 + HOUR).rows[0].result is MINTED
    assert [job["queue"] for job in observe().jobs.values()] == ["bulk"]


def test_many_schedules_are_minted_at_once(store: Store, observe: Observe) -> None:
    names = [f"s{number:02}" for number in range(20)]
    declare(store, *(schedule_spec(name) for name in names))
    assert turn(store, now=T0 + HOUR) == [(name, MINTED) for name in names]
    assert sorted(str(job["schedule"]) for job in observe().jobs.values()) == names


def test_f082_missed_ticks_are_counted(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec("a"), schedule_spec("b", catch_up="coalesce"))
    now = T0 + 3 * DAY + 30 * MINUTE
    assert turn(store, now=now) == [("a", NOTED), ("b", MINTED)]
    a, b = row(observe(), "a"), row(observe(), "b")
    last = T0 + 3 * DAY
    assert (a.skipped, a.last_skipped_at, a.last_skip_reason) == (72, last, "missed")
    assert (b.skipped, b.last_skipped_at, b.last_skip_reason) == (71, last - HOUR, "missed")
    assert ticks(observe()) == [last]
    assert turn(store, now=last + HOUR) == [("a", MINTED), ("b", MINTED)]


def test_f134_no_overlap_skips_the_tick_and_says_so(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec(no_overlap=True))
    assert turn(store, now=T0 + HOUR) == [("nightly", MINTED)]
    (job,) = store.claim(claim_request(lease_duration=DAY), now=T0 + HOUR).jobs
    assert turn(store, now=T0 + 2 * HOUR) == [("nightly", OVERLAPPED)]
    found = row(observe())
    assert (found.skipped, found.last_skipped_at, found.last_skip_reason) == (
        1,
        T0 + 2 * HOUR,
        "overlap",
    )
    assert (found.cursor, found.next_at) == (T0 + 2 * HOUR, T0 + 3 * HOUR)
    store.report([succeeded(job)], now=T0 + 2 * HOUR)
    assert turn(store, now=T0 + 3 * HOUR) == [("nightly", MINTED)]
    assert ticks(observe()) == [T0 + HOUR, T0 + 3 * HOUR]


def test_a_job_made_by_hand_counts_as_an_earlier_one(store: Store, observe: Observe) -> None:
    declare(store, schedule_spec(no_overlap=True), schedule_spec("other"))
    store.trigger_schedule("nightly", actor=ACTOR, now=T0)
    assert turn(store, now=T0 + HOUR) == [("nightly", OVERLAPPED), ("other", MINTED)]


def test_overlap_is_fine_unless_it_is_forbidden(store: Store, observe: Observe) -> None:
    declare(store)
    for hour in (1, 2, 3):
        assert turn(store, now=T0 + hour * HOUR) == [("nightly", MINTED)]
    assert len(observe().jobs) == 3


def test_f088_no_tick_gets_a_second_job_even_when_the_cursor_goes_back(
    store: Store, observe: Observe
) -> None:
    declare(store)
    turn(store, now=T0 + HOUR)
    store.pause_schedule("nightly", actor=ACTOR, now=T0 + HOUR)
    # The clock was set back by an hour when somebody resumed it.
    store.resume_schedule("nightly", actor=ACTOR, now=T0 + MINUTE)
    assert row(observe()).next_at == T0 + HOUR
    assert turn(store, now=T0 + HOUR) == [("nightly", NOTED)]
    assert ticks(observe()) == [T0 + HOUR]
    assert turn(store, now=T0 + 2 * HOUR) == [("nightly", MINTED)]


def test_a_problem_is_kept_until_it_is_over(store: Store, observe: Observe) -> None:
    declare(store)
    late = T0 + HOUR + 2 * MINUTE
    store.mint(decisions(store, now=late, known={}), now=late)
    assert "no pump knows the job type 'shop.pack'" in row(observe()).problem
    assert row(observe()).cursor == T0
    assert turn(store, now=late) == [("nightly", MINTED)]
    assert row(observe()).problem == ""


def test_a_broken_schedule_stops_no_other(store: Store, observe: Observe) -> None:
    store.save_schedule(schedule_spec("bad", rule=Rule(cron="61 * * * *")), actor=ACTOR, now=T0)
    zone = Rule(cron="0 * * * *", timezone="Mars/Olympus")
    store.save_schedule(schedule_spec("far", rule=zone), actor=ACTOR, now=T0)
    declare(store)
    assert turn(store, now=T0 + HOUR) == [("nightly", MINTED)]
    assert "no such zone here" in row(observe(), "far").problem
    assert "the minute field" in row(observe(), "bad").problem


def test_any_priority_a_row_may_hold_fits_a_job(store: Store, observe: Observe) -> None:
    store.save_schedule(schedule_spec(priority=-32768), actor=ACTOR, now=T0)
    assert turn(store, now=T0 + HOUR) == [("nightly", MINTED)]
    assert [job["priority"] for job in observe().jobs.values()] == [-100]


def test_instants_are_kept_to_the_microsecond(store: Store, observe: Observe) -> None:
    start = T0 + timedelta(microseconds=123_456)
    declare(store, schedule_spec(rule=Rule(every_seconds=1.000001)), now=start)
    assert turn(store, now=T0 + 2 * SECOND) == [("nightly", MINTED)]
    assert ticks(observe()) == [T0 + timedelta(seconds=1, microseconds=1)]
    assert decisions(store, now=T0 + 2 * SECOND) == []


@pytest.mark.row_locks
def test_a_schedule_that_another_transaction_holds_is_left_for_later(
    subject: Subject, store: Store, observe: Observe
) -> None:
    declare(store, schedule_spec("a"), schedule_spec("b"))
    with subject.hold_schedule("a"):
        assert turn(store, now=T0 + HOUR) == [("a", STALE), ("b", MINTED)]
    assert turn(store, now=T0 + HOUR) == [("a", MINTED)]


def test_an_unforeseen_decision_is_applied_as_it_is(store: Store, observe: Observe) -> None:
    declare(store)
    (seen,) = store.load_schedules(after="", limit=1).schedules
    decision = Decision(seen=seen, cursor=T0 + DAY, next_at=None, problem="over")
    assert store.mint([decision], now=T0).rows == (MintRow("nightly", NOTED),)
    found = row(observe())
    assert (found.cursor, found.next_at, found.problem) == (T0 + DAY, None, "over")
