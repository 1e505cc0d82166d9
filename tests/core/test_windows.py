from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backwave_django.core.errors import InvalidOption
from backwave_django.core.windows import Window
from tests.builders import DAY, HOUR, MINUTE, T0

NIGHT = Window.parse("20:00-06:00 Europe/Zurich")
TICK = timedelta(microseconds=1)


def utc(year, month, day, hour=0, minute=0):
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("20:00-06:00 Europe/Zurich", "20:00-06:00 Europe/Zurich"),
        ("  8:00 - 12:30   UTC ", "08:00-12:30 UTC"),
        ("MON-fri 20:00-00:00 UTC", "Mon,Tue,Wed,Thu,Fri 20:00-24:00 UTC"),
        ("sat-mon,Wed 0:00-24:00 UTC", "Mon,Wed,Sat,Sun 00:00-24:00 UTC"),
        ("Mon-Sun 01:00-02:00 UTC", "01:00-02:00 UTC"),
        ("Sat 22:00-04:00;Sun 10:00-11:00 UTC", "Sat 22:00-04:00; Sun 10:00-11:00 UTC"),
        (" Always ", "always"),
    ],
)
def test_window_is_read_and_written_in_one_spelling(text, written):
    assert str(Window.parse(text)) == written
    assert Window.parse(written) == Window.parse(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", 'write "20:00-06:00 Europe/Zurich"'),
        (None, 'write "20:00-06:00 Europe/Zurich"'),
        ("20:00-06:00", "end with a time zone"),
        ("Mon 20:00-06:00", "end with a time zone"),
        ("UTC", "end with a time zone"),
        ("20:00-06:00 UTC;", "end with a time zone"),
        ("20:00-06:00 Nowhere/Else", "time zone 'Nowhere/Else': no such zone"),
        ("20-06 UTC", "'20-06' is no window"),
        ("20:00-06:00; UTC", "'' is no window"),
        ("Mo 20:00-06:00 UTC", "'Mo' is no day"),
        ("Mon-Fry 20:00-06:00 UTC", "'Mon-Fry' is no day"),
        ("20:60-06:00 UTC", "'20:60' is no time"),
        ("20:00-24:01 UTC", "'24:01' is no time"),
        ("20:00-20:00 UTC", "has no length: write 00:00-24:00"),
        ("24:00-06:00 UTC", "has no length: write 00:00-24:00"),
        ("20:00-06:00 " + 500 * "x", "500 characters at most"),
    ],
)
def test_what_is_no_window_is_named_with_what_to_write(text, hint):
    with pytest.raises(InvalidOption, match=hint):
        Window.parse(text)


def test_opening_is_inside_and_closing_is_not():
    opens, closes = T0 + 19 * HOUR, T0 + 29 * HOUR
    assert [NIGHT.is_open(at) for at in (opens - TICK, opens, closes - TICK, closes)] == [
        *(False, True, True, False),
    ]
    assert (NIGHT.next_change(opens - TICK), NIGHT.next_change(opens)) == (opens, closes)
    assert (NIGHT.opens_at(closes), NIGHT.opens_at(opens)) == (opens + DAY, None)


def test_window_past_midnight_belongs_to_the_day_on_which_it_begins():
    window = Window.parse("Sat 22:00-04:00 UTC")
    saturday = utc(2040, 1, 7)
    hours = [hour for hour in range(-24, 72) if window.is_open(saturday + hour * HOUR)]
    assert hours == list(range(22, 28))
    assert window.next_change(saturday + 28 * HOUR) == saturday + 7 * DAY + 22 * HOUR


def test_windows_that_touch_are_one():
    window = Window.parse("Mon 08:00-12:00; Mon 12:00-24:00; Tue 00:00-01:00 UTC")
    monday = utc(2040, 1, 2)
    assert window.next_change(monday) == monday + 8 * HOUR
    assert window.next_change(monday + 8 * HOUR) == monday + 25 * HOUR


@pytest.mark.parametrize(
    "text", ["always", "00:00-24:00 Europe/Zurich", "00:00-12:00; 12:00-24:00 UTC"]
)
def test_window_that_never_closes_has_no_change(text):
    window = Window.parse(text)
    assert window.is_open(T0)
    assert (window.next_change(T0), window.opens_at(T0)) == (None, None)


def changes(text, since, until):
    window, found = Window.parse(text), []
    at = window.next_change(since)
    while at is not None and at < until:
        found.append(at)
        at = window.next_change(at)
    return found


def test_wall_clock_times_hold_when_clocks_go_forward():
    # At 02:00 on 25 March 2040 they show 03:00: the night has nine hours.
    assert changes(str(NIGHT), utc(2040, 3, 24, 12), utc(2040, 3, 26, 12)) == [
        *(utc(2040, 3, 24, 19), utc(2040, 3, 25, 4), utc(2040, 3, 25, 18), utc(2040, 3, 26, 4)),
    ]


def test_wall_clock_times_hold_when_clocks_go_back():
    # At 03:00 on 28 October 2040 they show 02:00: the night has eleven hours.
    assert changes(str(NIGHT), utc(2040, 10, 27, 12), utc(2040, 10, 29, 12)) == [
        *(utc(2040, 10, 27, 18), utc(2040, 10, 28, 5), utc(2040, 10, 28, 19), utc(2040, 10, 29, 5)),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What the clock skips counts at the first instant after the gap.
        ("02:30-04:00 Europe/Zurich", [(3, 25, 1, 0), (3, 25, 2, 0)]),
        ("01:00-02:30 Europe/Zurich", [(3, 25, 0, 0), (3, 25, 1, 0)]),
        # What lies wholly in the gap is not there that day.
        ("02:10-02:50 Europe/Zurich", []),
    ],
)
def test_ends_that_the_clock_skips(text, expected):
    found = changes(text, utc(2040, 3, 24, 22), utc(2040, 3, 25, 22))
    assert found == [utc(2040, *parts) for parts in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What the clock shows twice counts the first time, for both ends.
        ("02:30-04:00 Europe/Zurich", [(10, 28, 0, 30), (10, 28, 3, 0)]),
        ("01:00-02:30 Europe/Zurich", [(10, 27, 23, 0), (10, 28, 0, 30)]),
        ("02:10-02:50 Europe/Zurich", [(10, 28, 0, 10), (10, 28, 0, 50)]),
    ],
)
def test_ends_that_the_clock_shows_twice(text, expected):
    found = changes(text, utc(2040, 10, 27, 20), utc(2040, 10, 28, 20))
    assert found == [utc(2040, *parts) for parts in expected]


def test_weekly_window_that_a_change_of_clocks_skips_opens_a_week_later():
    window = Window.parse("Sun 02:10-02:50 Europe/Zurich")
    assert window.opens_at(utc(2040, 3, 20)) == utc(2040, 4, 1, 0, 10)


@given(
    minutes=st.integers(0, 10 * 366 * 24 * 60),
    text=st.sampled_from(
        (
            "20:00-06:00 Europe/Zurich",
            "Mon-Wed 22:15-03:45; Fri 00:00-24:00 America/New_York",
            "Tue 01:30-02:30 Australia/Lord_Howe",
        )
    ),
)
def test_state_holds_until_the_next_change_and_turns_there(minutes, text):
    window, at = Window.parse(text), T0 + minutes * MINUTE
    state, edge = window.is_open(at), window.next_change(at)
    assert edge is not None
    assert window.is_open(edge) is not state
    assert window.is_open(edge - TICK) is state
    step = max((edge - at) / 16, MINUTE)
    between = [at + n * step for n in range(1, 16)]
    assert {window.is_open(instant) for instant in between if instant < edge} <= {state}
