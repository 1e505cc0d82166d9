from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backwave_django.core.errors import InvalidOption
from backwave_django.core.schedules import (
    Decision,
    Interval,
    LoadedSchedule,
    Rule,
    decide,
    first_plan,
    in_words,
)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
T0 = datetime(2027, 1, 1, tzinfo=UTC)


def schedule(rule=None, *, created_at=T0, **values):
    """A planned schedule that began when it was created; hourly unless told otherwise."""
    rule = rule or Rule(cron="0 * * * *")
    given = {
        "name": "s",
        "wire_name": "shop.nightly",
        "payload_version": 1,
        "catch_up": "skip",
        "cursor": created_at,
        "next_at": first_plan(rule, created_at=created_at, now=created_at),
    }
    return LoadedSchedule(rule=rule, created_at=created_at, **{**given, **values})


def decided(row, *, now, known=None):
    """What is to be done, where something is."""
    decision = decide(row, now=now, known=known)
    assert decision is not None
    return decision


def applied(decision):
    """The row after its decision was applied."""
    return replace(
        decision.seen,
        cursor=decision.cursor,
        next_at=decision.next_at,
        problem=decision.problem,
    )


def minted(row, *, until, late=timedelta(0)):
    """The ticks minted while a pump looks at every next tick, ``late`` after it."""
    ticks = []
    while row.next_at is not None and row.next_at <= until:
        decision = decided(row, now=row.next_at + late)
        ticks.append(decision.tick)
        row = applied(decision)
    return ticks


# On time


def test_nothing_is_due_before_its_time():
    assert decide(schedule(), now=T0 + HOUR - SECOND) is None


def test_a_due_tick_is_minted_and_the_next_one_planned():
    row = schedule()
    assert decide(row, now=T0 + HOUR) == Decision(
        seen=row, cursor=T0 + HOUR, next_at=T0 + 2 * HOUR, tick=T0 + HOUR
    )


def test_a_late_look_mints_the_nominal_time():
    row = schedule()
    decision = decided(row, now=T0 + HOUR + 100 * SECOND)
    assert (decision.tick, decision.next_at) == (T0 + HOUR, T0 + 2 * HOUR)
    assert decision.skipped == 0


def test_a_decision_is_made_once():
    decision = decided(schedule(), now=T0 + HOUR)
    assert decide(applied(decision), now=T0 + HOUR) is None
    assert decision.name == "s"


# Intervals


def test_intervals_are_counted_from_the_second_of_their_creation():
    created = T0 + timedelta(seconds=7, microseconds=250)
    row = schedule(Rule(every_seconds=10.0), created_at=created)
    assert minted(row, until=T0 + MINUTE) == [T0 + n * SECOND for n in (17, 27, 37, 47, 57)]


def test_late_looks_do_not_make_an_interval_drift():
    row = schedule(Rule(every_seconds=10.0))
    found = minted(row, until=T0 + HOUR, late=timedelta(seconds=3, milliseconds=141))
    assert found == [T0 + n * 10 * SECOND for n in range(1, 361)]


def test_an_interval_may_have_parts_of_a_second():
    row = schedule(Rule(every_seconds=1.5))
    assert minted(row, until=T0 + 5 * SECOND) == [T0 + n * 1.5 * SECOND for n in (1, 2, 3)]


def test_interval_answers():
    every = Interval(10 * SECOND, T0)
    assert every.next_after(T0 - HOUR) == T0 + 10 * SECOND
    assert every.next_after(T0 + 10 * SECOND) == T0 + 20 * SECOND
    assert every.next_after(datetime(9950, 1, 1, tzinfo=UTC)) is None
    assert every.last_by(T0 + 25 * SECOND, since=T0) == T0 + 20 * SECOND
    assert every.last_by(T0 + 25 * SECOND, since=T0 + 20 * SECOND) is None
    assert every.last_by(T0 - 25 * SECOND, since=T0 - HOUR) is None
    assert every.count(since=T0, before=T0 + 30 * SECOND, most=9) == 2
    assert every.count(since=T0 - HOUR, before=T0 + 31 * SECOND, most=9) == 3
    assert every.count(since=T0, before=T0 + DAY, most=9) == 9
    assert every.count(since=T0, before=T0 - DAY, most=9) == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "Every second"),
        (1.5, "Every 1.5 seconds"),
        (60, "Every minute"),
        (900, "Every 15 minutes"),
        (3600, "Every hour"),
        (5400, "Every 90 minutes"),
        (7200, "Every 2 hours"),
        (86400, "Every day"),
        (864000, "Every 10 days"),
    ],
)
def test_an_interval_in_words(seconds, words):
    assert Interval(timedelta(seconds=seconds), T0).describe() == words
    assert words == f"Every {in_words(timedelta(seconds=seconds))}"


# Missed ticks


def test_f082_after_a_pause_a_frequent_schedule_goes_on_with_its_last_tick():
    row = schedule(Rule(cron="* * * * *"))
    back = T0 + 30 * MINUTE + 20 * SECOND
    assert decide(row, now=back) == Decision(
        seen=row,
        cursor=T0 + 30 * MINUTE,
        next_at=T0 + 31 * MINUTE,
        tick=T0 + 30 * MINUTE,
        skipped=29,
        skipped_at=T0 + 29 * MINUTE,
    )


def test_f082_skip_passes_over_a_tick_that_was_missed():
    row = schedule(Rule(cron="0 2 * * *"))
    assert decide(row, now=T0 + 3 * DAY) == Decision(
        seen=row,
        cursor=T0 + 2 * DAY + 2 * HOUR,
        next_at=T0 + 3 * DAY + 2 * HOUR,
        skipped=3,
        skipped_at=T0 + 2 * DAY + 2 * HOUR,
    )


def test_f082_coalesce_makes_up_for_all_of_them_with_one_job():
    row = schedule(Rule(cron="0 2 * * *"), catch_up="coalesce")
    assert decide(row, now=T0 + 3 * DAY) == Decision(
        seen=row,
        cursor=T0 + 2 * DAY + 2 * HOUR,
        next_at=T0 + 3 * DAY + 2 * HOUR,
        tick=T0 + 2 * DAY + 2 * HOUR,
        skipped=2,
        skipped_at=T0 + DAY + 2 * HOUR,
    )


@pytest.mark.parametrize(("late", "tick"), [(5 * MINUTE, T0 + HOUR), (5 * MINUTE + SECOND, None)])
def test_a_tick_counts_as_missed_after_five_minutes(late, tick):
    assert decided(schedule(), now=T0 + HOUR + late).tick == tick


def test_years_of_missed_ticks_come_to_one_job():
    row = schedule(Rule(cron="* * * * *", timezone="Europe/Berlin"), catch_up="coalesce")
    decision = decided(row, now=T0 + 3000 * DAY)
    assert decision.tick == T0 + 3000 * DAY
    assert decision.skipped == 1000
    assert decide(applied(decision), now=T0 + 3000 * DAY) is None


def test_every_missed_tick_of_an_interval_is_counted_up_to_the_bound():
    row = schedule(Rule(every_seconds=1.0))
    assert decided(row, now=T0 + 600 * SECOND).skipped == 599
    assert decided(row, now=T0 + DAY).skipped == 1000


# Clocks and edits


def test_f088_a_clock_set_back_mints_nothing_twice():
    row = schedule(Rule(cron="* * * * *"))
    row = applied(decided(row, now=T0 + 90 * MINUTE))
    assert row.cursor == T0 + 90 * MINUTE
    back = [decide(row, now=T0 + 86 * MINUTE + n * SECOND) for n in range(300)]
    assert set(back) == {None}
    assert decided(row, now=T0 + 91 * MINUTE).tick == T0 + 91 * MINUTE


def test_a_clock_set_far_back_is_a_problem_that_ends_by_itself():
    row = applied(decided(schedule(Rule(cron="* * * * *")), now=T0 + 90 * MINUTE))
    told = decided(row, now=T0 + 30 * MINUTE)
    assert "it has ticked until 2027-01-01 01:30:00 UTC" in told.problem
    assert (told.cursor, told.next_at, told.tick) == (row.cursor, row.next_at, None)
    assert decide(applied(told), now=T0 + 40 * MINUTE) is None
    assert decided(applied(told), now=T0 + 89 * MINUTE).problem == ""
    assert decided(applied(told), now=T0 + 91 * MINUTE).tick == T0 + 91 * MINUTE


def test_a_new_row_is_planned_from_now_on():
    row = schedule(cursor=None, next_at=None)
    now = T0 + 3 * DAY + 5 * MINUTE
    assert decide(row, now=now) == Decision(seen=row, cursor=now, next_at=T0 + 3 * DAY + HOUR)


def test_f080_an_edited_rule_holds_from_now_on():
    row = applied(decided(schedule(Rule(cron="0 2 * * *")), now=T0 + 2 * HOUR))
    edited = replace(row, rule=Rule(cron="0 14 * * *"))
    at_noon = decided(edited, now=T0 + 12 * HOUR)
    assert at_noon == Decision(seen=edited, cursor=row.cursor, next_at=T0 + 14 * HOUR)
    at_four = decided(edited, now=T0 + 16 * HOUR)
    assert at_four == Decision(seen=edited, cursor=T0 + 16 * HOUR, next_at=T0 + DAY + 14 * HOUR)


def test_f080_an_edited_zone_holds_from_now_on():
    row = schedule(Rule(cron="0 2 * * *"))
    moved = replace(row, rule=Rule(cron="0 2 * * *", timezone="Asia/Kathmandu"))
    decision = decided(moved, now=T0 + HOUR)
    assert decision.tick is None
    assert decision.next_at == datetime(2027, 1, 1, 20, 15, tzinfo=UTC)


def test_a_rule_without_any_more_ticks_rests():
    end = datetime(9920, 1, 1, tzinfo=UTC)
    row = schedule(created_at=end)
    assert row.next_at is None
    assert decide(row, now=end + DAY) is None
    edited = replace(row, next_at=end + HOUR)
    assert decide(edited, now=end + DAY) == Decision(seen=edited, cursor=end, next_at=None)


# Broken ones


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"rule": Rule(cron="61 * * * *")}, "the minute field cannot be '61'"),
        ({"rule": Rule(cron="0 0 * * *", timezone="Mars/Olympus")}, "no such zone here"),
        ({"rule": Rule(every_seconds=60.0, timezone="Mars/Olympus")}, "no such zone here"),
        ({"rule": Rule(every_seconds=0.1)}, "an interval between one second and ten years"),
        ({"rule": Rule(every_seconds=float("inf"))}, "an interval between one second"),
        ({"rule": Rule(every_seconds=float("nan"))}, "an interval between one second"),
        ({"rule": Rule()}, "give a cron expression or an interval"),
        ({"rule": Rule(cron="* * * * *", every_seconds=1.0)}, "give a cron expression or an"),
        ({"catch_up": "all"}, "'all' is not a valid CatchUp"),
    ],
)
def test_f077_what_cannot_work_is_said_once_and_changes_nothing(values, problem):
    row = replace(schedule(), **values)
    told = decided(row, now=T0 + DAY)
    assert problem in told.problem
    assert (told.cursor, told.next_at, told.tick, told.skipped) == (
        row.cursor,
        row.next_at,
        None,
        0,
    )
    assert decide(applied(told), now=T0 + 2 * DAY) is None


def test_a_mended_schedule_loses_its_problem_at_once():
    row = schedule(problem="the minute field cannot be '61'")
    assert decide(row, now=T0 + MINUTE) == Decision(
        seen=row, cursor=row.cursor, next_at=row.next_at
    )
    assert decided(row, now=T0 + HOUR).problem == ""


def test_a_job_type_that_others_know_is_left_to_them():
    known = {"shop.other": 1}
    assert decide(schedule(), now=T0 + HOUR + MINUTE, known=known) is None
    assert decide(schedule(), now=T0 + MINUTE, known=known) is None


def test_a_job_type_that_nobody_takes_up_is_a_problem():
    known = {"shop.nightly": 1}
    row = schedule()
    told = decided(row, now=T0 + HOUR + MINUTE + SECOND, known={})
    assert told.problem == (
        "no pump knows the job type 'shop.nightly': deploy the code that declares it, or pause "
        "the schedule"
    )
    assert (told.cursor, told.next_at) == (row.cursor, row.next_at)
    late = decided(applied(told), now=T0 + HOUR + 2 * MINUTE, known=known)
    assert (late.tick, late.problem) == (T0 + HOUR, "")


def test_a_newer_payload_is_left_to_newer_code():
    row = schedule(payload_version=2)
    assert decide(row, now=T0 + HOUR, known={"shop.nightly": 1}) is None
    assert decided(row, now=T0 + HOUR, known={"shop.nightly": 2}).tick == T0 + HOUR
    told = decided(row, now=T0 + 2 * HOUR, known={"shop.nightly": 1})
    assert "'shop.nightly' (payload version 2)" in told.problem


def test_a_first_plan_refuses_what_cannot_work():
    with pytest.raises(InvalidOption, match="write five fields"):
        first_plan(Rule(cron="hourly"), created_at=T0, now=T0)


# At length


@pytest.mark.parametrize("late", [timedelta(0), 3 * SECOND])
def test_a_day_of_a_frequent_interval_mints_every_tick(late):
    row = schedule(Rule(every_seconds=5.0))
    found = minted(row, until=T0 + DAY, late=late)
    assert found == [T0 + n * 5 * SECOND for n in range(1, 17_281)]


@settings(max_examples=100, deadline=None)
@given(
    rule=st.sampled_from(
        (
            Rule(cron="*/20 * * * *", timezone="Europe/Berlin"),
            Rule(cron="30 2 * * *", timezone="Europe/Berlin"),
            Rule(cron="0 0 * * *", timezone="America/Santiago"),
            Rule(every_seconds=1234.5),
        )
    ),
    catch_up=st.sampled_from(("skip", "coalesce")),
    steps=st.lists(st.integers(-7200, 200_000), max_size=30),
)
def test_no_tick_is_minted_or_counted_twice_however_the_clock_runs(rule, catch_up, steps):
    start = datetime(2027, 3, 20, tzinfo=UTC)
    row = schedule(rule, created_at=start, catch_up=catch_up)
    now, ticks, skipped = start, [], 0
    for step in steps:
        now += step * SECOND
        decision = decide(row, now=now)
        if decision is not None:
            ticks += [decision.tick] if decision.tick else []
            skipped += decision.skipped
            row = applied(decision)
    timetable = rule.timetable(anchor=start)
    assert ticks == sorted(set(ticks))
    assert all(timetable.next_after(tick - SECOND) == tick for tick in ticks)
    assert row.cursor == start or len(ticks) + skipped == timetable.count(
        since=start, before=row.cursor + SECOND, most=10_000
    )
