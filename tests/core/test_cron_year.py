"""A year of rules against an independent reading: every quarter hour, looked at one by one."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backwave_django.core.cron import Cron

QUARTER = timedelta(minutes=15)
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
)


def quarters(zone):
    """What clocks in ``zone`` show at every quarter of 2027 (UTC)."""
    start = datetime(2027, 1, 1, tzinfo=UTC)
    info = ZoneInfo(zone)
    instants = [start + n * QUARTER for n in range(365 * 96)]
    return [(instant, instant.astimezone(info).replace(tzinfo=None)) for instant in instants]


def running(shown, matches):
    return [instant for instant, wall in shown if matches(wall)]


def fixed(shown, matches):
    found, had = [], set()
    for (_, earlier), (instant, wall) in pairwise(shown):
        # After a gap, the quarters that were skipped are made up for at its end.
        skipped = [earlier + n * QUARTER for n in range(1, int((wall - earlier) / QUARTER))]
        if any(matches(one) for one in skipped) or (matches(wall) and wall not in had):
            found.append(instant)
        had.add(wall)
    return found


YEAR = {
    "*/15 * * * *": (running, lambda wall: wall.minute % 15 == 0),
    "0 * * * *": (running, lambda wall: wall.minute == 0),
    "*/30 1-2 * * *": (running, lambda wall: wall.minute % 30 == 0 and wall.hour in {1, 2}),
    "30 2 * * *": (fixed, lambda wall: (wall.hour, wall.minute) == (2, 30)),
    "0,15 0,2 * * SUN": (
        fixed,
        lambda wall: wall.minute in {0, 15} and wall.hour in {0, 2} and wall.weekday() == 6,
    ),
    "45 1,2,3 * 3-4,9-11 *": (
        fixed,
        lambda wall: (
            wall.minute == 45 and wall.hour in {1, 2, 3} and wall.month in {3, 4, 9, 10, 11}
        ),
    ),
}


@pytest.mark.parametrize("zone", ZONES)
def test_a_year_of_rules_in(zone):
    shown = quarters(zone)
    for expression, (reading, matches) in YEAR.items():
        found = list(
            takewhile(
                lambda tick: tick <= shown[-1][0], Cron(expression, zone).ticks_after(shown[0][0])
            )
        )
        expected = [tick for tick in reading(shown, matches) if tick > shown[0][0]]
        assert found == expected, expression


@settings(max_examples=60, deadline=None)
@given(
    zone=st.sampled_from((*ZONES, "Africa/Cairo", "Pacific/Apia", "Antarctica/Troll", "UTC")),
    minute=st.sampled_from(("0", "*/7", "0,30", "59")),
    hour=st.sampled_from(("*", "0", "1,2,3", "23", "*/6")),
    start=st.integers(1_230_000_000, 2_140_000_000),
)
def test_ticks_increase_and_do_not_depend_on_where_one_began(zone, minute, hour, start):
    rule = Cron(f"{minute} {hour} * * *", zone)
    found = list(islice(rule.ticks_after(datetime.fromtimestamp(start, tz=UTC)), 40))
    assert all(earlier < later for earlier, later in pairwise(found))
    for earlier, later in pairwise(found):
        assert rule.next_after(earlier) == later
        assert rule.next_after(later - timedelta(seconds=1)) == later
