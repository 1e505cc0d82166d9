"""A year of schedules, minted tick by tick over virtual time, in five zones."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from backwave_django.core.schedules import LoadedSchedule, Rule, decide, first_plan

T0 = datetime(2027, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
HALF = HOUR / 2


def a_year_of(rule):
    """Return what a pump mints in 2027 that looks two seconds after each tick."""
    row = LoadedSchedule(
        name="s",
        rule=rule,
        wire_name="shop.nightly",
        payload_version=1,
        catch_up="skip",
        cursor=T0,
        next_at=first_plan(rule, created_at=T0, now=T0),
        created_at=T0,
    )
    ticks = []
    while row.next_at is not None and row.next_at <= T0 + YEAR:
        decision = decide(row, now=row.next_at + 2 * SECOND)
        assert decision is not None
        assert (decision.skipped, decision.problem) == (0, "")
        ticks.append(decision.tick)
        row = replace(row, cursor=decision.cursor, next_at=decision.next_at)
    return ticks


def gaps_of(ticks):
    return Counter(later - earlier for earlier, later in pairwise(ticks))


def instant(text):
    return datetime.fromisoformat(f"2027-{text}:00+00:00")


def around(ticks, *days):
    """The ticks of the given UTC days, as ``MM-DD HH:MM``."""
    return [f"{tick:%m-%d %H:%M}" for tick in ticks if f"{tick:%m-%d}" in days]


# One tick a day, at 02:30 local. Where clocks change at two, 02:30 is what they skip or repeat.


def test_daily_in_berlin():
    ticks = a_year_of(Rule(cron="30 2 * * *", timezone="Europe/Berlin"))
    assert len(ticks) == 365
    assert gaps_of(ticks) == {DAY: 361, DAY - HALF: 2, DAY + HOUR: 1}
    assert around(ticks, "03-27", "03-28", "03-29") == [
        "03-27 01:30", "03-28 01:00", "03-29 00:30",
    ]  # fmt: skip
    assert around(ticks, "10-30", "10-31", "11-01") == [
        "10-30 00:30", "10-31 00:30", "11-01 01:30",
    ]  # fmt: skip


def test_daily_in_new_york():
    ticks = a_year_of(Rule(cron="30 2 * * *", timezone="America/New_York"))
    assert len(ticks) == 365
    assert gaps_of(ticks) == {DAY: 361, DAY - HALF: 2, DAY + HOUR: 1}
    assert around(ticks, "03-13", "03-14", "03-15") == [
        "03-13 07:30", "03-14 07:00", "03-15 06:30",
    ]  # fmt: skip
    # Clocks go from two to one: 02:30 is shown once, after the change.
    assert around(ticks, "11-06", "11-07", "11-08") == [
        "11-06 06:30", "11-07 07:30", "11-08 07:30",
    ]  # fmt: skip


def test_daily_in_santiago():
    # Clocks change at midnight: 02:30 is shown once on every day.
    ticks = a_year_of(Rule(cron="30 2 * * *", timezone="America/Santiago"))
    assert len(ticks) == 365
    assert gaps_of(ticks) == {DAY: 362, DAY + HOUR: 1, DAY - HOUR: 1}
    midnight = a_year_of(Rule(cron="0 0 * * *", timezone="America/Santiago"))
    assert gaps_of(midnight) == {DAY: 362, DAY + HOUR: 1, DAY - HOUR: 1}
    assert around(midnight, "04-03", "04-04", "04-05") == [
        "04-03 03:00", "04-04 04:00", "04-05 04:00",
    ]  # fmt: skip
    assert around(midnight, "09-04", "09-05", "09-06") == [
        "09-04 04:00", "09-05 04:00", "09-06 03:00",
    ]  # fmt: skip


def test_daily_on_lord_howe():
    ticks = a_year_of(Rule(cron="0 2 * * *", timezone="Australia/Lord_Howe"))
    assert len(ticks) == 365
    assert gaps_of(ticks) == {DAY: 362, DAY + HALF: 1, DAY - HALF: 1}
    assert around(ticks, "04-02", "04-03", "04-04") == [
        "04-02 15:00", "04-03 15:30", "04-04 15:30",
    ]  # fmt: skip
    assert around(ticks, "10-01", "10-02", "10-03") == [
        "10-01 15:30", "10-02 15:30", "10-03 15:00",
    ]  # fmt: skip


def test_daily_in_kathmandu():
    ticks = a_year_of(Rule(cron="30 2 * * *", timezone="Asia/Kathmandu"))
    assert ticks == [T0 + timedelta(hours=20, minutes=45) + n * DAY for n in range(365)]


@pytest.mark.parametrize(
    ("zone", "count", "gaps"),
    [
        ("Europe/Berlin", 8760, {HOUR: 8759}),
        ("America/New_York", 8760, {HOUR: 8759}),
        ("America/Santiago", 8760, {HOUR: 8759}),
        # Half an hour is repeated and half an hour skipped; no full hour is in either.
        ("Australia/Lord_Howe", 8759, {HOUR: 8756, HOUR + HALF: 2}),
        ("Asia/Kathmandu", 8760, {HOUR: 8759}),
    ],
)
def test_hourly(zone, count, gaps):
    ticks = a_year_of(Rule(cron="0 * * * *", timezone=zone))
    assert len(ticks) == count
    assert gaps_of(ticks) == gaps


@pytest.mark.parametrize(
    ("zone", "first", "count"),
    [
        ("Europe/Berlin", "01-01 08:00", 261),
        ("America/New_York", "01-01 14:00", 261),
        ("America/Santiago", "01-01 12:00", 261),
        ("Australia/Lord_Howe", "01-03 22:00", 260),
        ("Asia/Kathmandu", "01-01 03:15", 261),
    ],
)
def test_on_weekdays(zone, first, count):
    ticks = a_year_of(Rule(cron="0 9 * * MON-FRI", timezone=zone))
    assert ticks[0] == instant(first)
    assert len(ticks) == count


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("Europe/Berlin", [23, 23, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23]),
        ("America/New_York", [5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4, 5]),
        ("America/Santiago", [3, 3, 3, 3, 4, 4, 4, 4, 4, 3, 3, 3]),
    ],
)
def test_on_the_first_of_each_month(zone, hours):
    # East of Greenwich a month begins while the last one's last day still lasts in UTC.
    found = a_year_of(Rule(cron="0 0 1 * *", timezone=zone))
    assert [tick.hour for tick in found] == hours
    assert [(tick + 4 * HOUR).day for tick in found] == [1] * 12
    assert [(tick + 4 * HOUR).month % 12 for tick in found] == [
        (month + (hours[0] > 12)) % 12 for month in range(1, 13)
    ]


def test_a_quarter_of_an_hour_does_not_see_clocks_change():
    ticks = a_year_of(Rule(cron="*/15 * * * *", timezone="Australia/Lord_Howe"))
    assert ticks == [T0 + n * timedelta(minutes=15) for n in range(1, 4 * 8760 + 1)]


def test_an_interval_does_not_see_clocks_change():
    ticks = a_year_of(Rule(every_seconds=5400.0, timezone="Europe/Berlin"))
    assert ticks == [T0 + n * timedelta(minutes=90) for n in range(1, 365 * 16 + 1)]
