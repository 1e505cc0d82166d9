from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSimError

from backwave_django.core.cron import Cron, zone_of
from backwave_django.core.errors import InvalidOption

MINUTE = timedelta(minutes=1)
QUARTER = timedelta(minutes=15)


def at(text):
    """An instant in 2027 as ``MM-DD HH:MM`` in UTC."""
    return datetime.strptime(f"2027-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def ticks(expression, zone="UTC", *, after, count):
    return list(islice(Cron(expression, zone).ticks_after(after), count))


def between(expression, zone, *, after, until):
    return list(takewhile(lambda tick: tick <= until, Cron(expression, zone).ticks_after(after)))


# Where clocks are set back


def test_f070_fixed_time_that_is_shown_twice_ticks_the_first_time():
    span = {"after": at("10-30 22:00"), "until": at("10-31 23:00")}
    assert between("30 2 * * *", "Europe/Berlin", **span) == [at("10-31 00:30")]


def test_f070_hourly_rule_ticks_once_each_real_hour():
    # The local day begins at 22:00 UTC and has 25 hours.
    span = {"after": at("10-30 21:59"), "until": at("10-31 22:59")}
    found = between("0 * * * *", "Europe/Berlin", **span)
    assert found == [at("10-30 22:00") + n * 60 * MINUTE for n in range(25)]


def test_f070_quarter_hourly_rule_keeps_its_gaps():
    span = {"after": at("10-30 22:00"), "until": at("10-31 23:00")}
    found = between("*/15 * * * *", "Europe/Berlin", **span)
    assert found == [at("10-30 22:15") + n * QUARTER for n in range(100)]


@pytest.mark.parametrize("start", ["11-07 05:50", "11-07 06:10", "11-07 06:50"])
def test_f073_a_start_around_the_repeated_hour_goes_on_every_five_minutes(start):
    found = ticks("*/5 * * * *", "America/New_York", after=at(start), count=30)
    assert found == [at(start) + 5 * n * MINUTE for n in range(1, 31)]


def test_a_start_between_the_two_showings_brings_no_tick_from_before_it():
    # 02:10 local, shown for the second time: 02:30 was had an hour ago.
    assert ticks("30 2 * * *", "Europe/Berlin", after=at("10-31 01:10"), count=1) == [
        at("11-01 01:30")
    ]


def test_a_start_in_the_first_showing_still_has_its_tick():
    assert ticks("30 2 * * *", "Europe/Berlin", after=at("10-31 00:10"), count=1) == [
        at("10-31 00:30")
    ]


def test_starred_minute_within_a_repeated_hour_ticks_in_both_showings():
    span = {"after": at("10-30 23:00"), "until": at("10-31 03:00")}
    assert between("*/30 2 * * *", "Europe/Berlin", **span) == [
        at("10-31 00:00"),
        at("10-31 00:30"),
        at("10-31 01:00"),
        at("10-31 01:30"),
    ]


def test_half_an_hour_set_back_moves_no_tick():
    # Lord Howe: 02:00 at +11:00 becomes 01:30 at +10:30, on 4 April.
    span = {"after": at("04-03 13:30"), "until": at("04-03 17:00")}
    found = between("*/15 * * * *", "Australia/Lord_Howe", **span)
    assert found == [at("04-03 13:45") + n * QUARTER for n in range(14)]
    assert between("0 * * * *", "Australia/Lord_Howe", **span) == [
        at("04-03 14:00"),
        at("04-03 15:30"),
        at("04-03 16:30"),
    ]
    assert between("*/10 2 * * *", "Australia/Lord_Howe", **span) == [
        at("04-03 15:30") + 10 * n * MINUTE for n in range(6)
    ]


# Where clocks are set forward


def test_fixed_time_that_is_skipped_ticks_when_the_gap_is_over():
    assert ticks("30 2 * * *", "Europe/Berlin", after=at("03-27 12:00"), count=3) == [
        at("03-28 01:00"),
        at("03-29 00:30"),
        at("03-30 00:30"),
    ]


def test_several_skipped_times_make_one_tick():
    assert ticks("0,30 2,3 * * *", "Europe/Berlin", after=at("03-27 12:00"), count=4) == [
        at("03-28 01:00"),
        at("03-28 01:30"),
        at("03-29 00:00"),
        at("03-29 00:30"),
    ]


def test_starred_minute_within_a_skipped_hour_does_not_tick_that_day():
    assert ticks("*/30 2 * * *", "Europe/Berlin", after=at("03-27 12:00"), count=2) == [
        at("03-29 00:00"),
        at("03-29 00:30"),
    ]


def test_f071_missing_midnight_is_no_trap():
    assert ticks("0 0 * * 0", "America/Santiago", after=at("08-30 12:00"), count=5) == [
        at("09-05 04:00"),  # 01:00 local: midnight was skipped
        at("09-12 03:00"),
        at("09-19 03:00"),
        at("09-26 03:00"),
        at("10-03 03:00"),
    ]


def test_f071_half_an_hour_is_skipped():
    assert ticks("0 2 * * *", "Australia/Lord_Howe", after=at("10-01 12:00"), count=3) == [
        at("10-01 15:30"),
        at("10-02 15:30"),  # 02:30 local, the end of the gap
        at("10-03 15:00"),
    ]


def test_missing_midnight_does_not_make_a_starred_rule_tick_at_one():
    assert ticks("*/30 0 * * *", "America/Santiago", after=at("09-04 12:00"), count=2) == [
        at("09-06 03:00"),
        at("09-06 03:30"),
    ]


# Days


def test_f074_either_day_is_enough_when_both_are_restricted():
    found = ticks("0 0 13 * 5", after=at("08-01 00:00"), count=6)
    assert [f"{tick:%m-%d}" for tick in found] == [
        "08-06", "08-13", "08-20", "08-27", "09-03", "09-10",
    ]  # fmt: skip


def test_both_days_have_to_fit_when_one_begins_with_a_star():
    found = ticks("0 0 */2 * 5", after=at("08-01 00:00"), count=3)
    assert [f"{tick:%m-%d}" for tick in found] == ["08-13", "08-27", "09-03"]


def test_f076_29_february():
    leap = Cron("0 9 29 2 *")
    for year, following in ((2024, 2028), (2096, 2104)):
        tick = leap.next_after(datetime(year, 2, 29, 9, tzinfo=UTC))
        assert tick == datetime(following, 2, 29, 9, tzinfo=UTC)
    noon = datetime(2028, 2, 29, 12, tzinfo=UTC)
    assert Cron("0 * * * *").next_after(noon) == noon + 60 * MINUTE
    assert Cron("0 12 * * *", "Europe/Berlin").next_after(noon) == noon + 23 * 60 * MINUTE
    assert Cron("*/5 9 29 2 *", "Europe/Berlin").next_after(noon) == datetime(
        2032, 2, 29, 8, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("days", "names"),
    [
        ("7", ["Sun"]),
        ("0", ["Sun"]),
        ("0,7", ["Sun"]),
        ("5-7", ["Fri", "Sat", "Sun"]),
        ("sat,sun", ["Sat", "Sun"]),
        ("MON-FRI", ["Mon", "Tue", "Wed", "Thu", "Fri"]),
        ("mon,wed-thu", ["Mon", "Wed", "Thu"]),
    ],
)
def test_f079_days_of_the_week(days, names):
    found = between(f"0 0 * * {days}", "UTC", after=at("08-01 12:00"), until=at("08-08 12:00"))
    assert sorted(f"{tick:%a}" for tick in found) == sorted(names)


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("0 0 L * *", "08-31 00:00"),
        ("0 0 LW * *", "08-31 00:00"),
        ("0 0 * * 5L", "08-27 00:00"),
        ("0 0 * * MON#2", "08-09 00:00"),
        ("0 0 * JAN,dec *", "12-01 00:00"),
        ("0 0 1 JUL-SEP *", "09-01 00:00"),
        ("5/20 * * * *", "08-01 12:05"),
        ("10-20/5 14 * * *", "08-01 14:10"),
    ],
)
def test_documented_forms(expression, first):
    assert Cron(expression).next_after(at("08-01 12:00")) == at(first)


# What is refused


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("0 0 31 2 *", "the day-of-month field cannot be '31'"),
        ("0 0 30,31 2 *", "the day-of-month field cannot be '30,31'"),
        ("61 * * * *", "the minute field cannot be '61'"),
        ("0 24 * * *", "the hour field cannot be '24'"),
        ("0 0 0 * *", "the day-of-month field cannot be '0'"),
        ("0 0 * 13 *", "the month field cannot be '13'"),
        ("0 0 * * 8", "the day-of-week field cannot be '8'"),
        ("* * * *", "minute, hour, day of month, month, day of week; these are 4"),
        ("0 0 0 * * *", "these are 6"),
        ("", "these are 0"),
        ("@reboot", "write five fields"),
        ("@daily", 'like "0 0 * * *"'),
        ("*/0 * * * *", "the minute field cannot be '*/0'"),
        ("5-1 * * * *", "the minute field cannot be '5-1'"),
        ("*/90 * * * *", "use an interval"),
        ("0 */25 * * *", "use an interval"),
        ("0 0 * * MON-SUN", "the day-of-week field cannot be 'MON-SUN'"),
        ("0 0 * * sat-sun", "sat,sun instead of sat-sun"),
        ("0 0 * * 6-1", "the day-of-week field cannot be '6-1'"),
        ("0 0 L/2 * *", "the day-of-month field cannot be 'L/2'"),
        ("L 0 * * *", "the minute field cannot be 'L'"),
        ("0 0 ? * *", "the day-of-month field cannot be '?'"),
        ("0 0 ٣ * *", "the day-of-month field cannot be"),
        ("1,,2 * * * *", "the minute field cannot be '1,,2'"),
        ("1 * * * * # often", "these are 7"),
        (",".join("12345") * 60 + " * * * *", "write five fields"),
    ],
)  # fmt: skip
def test_f077_what_cannot_be_is_refused_by_the_name_of_its_field(expression, named):
    with pytest.raises(InvalidOption) as refusal:
        Cron(expression)
    assert refusal.value.option == "cron"
    assert named in refusal.value.hint


def test_a_day_that_never_comes_is_refused():
    # Each field can be, and the month is long enough; but February has no fifth Monday that
    # is not the 29th.
    with pytest.raises(InvalidOption, match="no day of the next 50 years is like that"):
        Cron("0 0 */30 2 MON#5")


def test_words_of_the_walker_that_we_do_not_know_are_passed_on(monkeypatch):
    def refuse(*_args):
        raise CronSimError("Bad moon")

    monkeypatch.setattr("backwave_django.core.cron.CronSim", refuse)
    with pytest.raises(InvalidOption, match="Bad moon"):
        Cron("* * * * *")


@pytest.mark.parametrize(
    "name",
    ["Europe/Zürich", "", "America", "../etc/passwd", "/etc/localtime", "right/UTC", "localtime",
     "posix/UTC", "posixrules", "Factory", "x" * 300, "\0", "\ud800", "Mars/Olympus"],
)  # fmt: skip
def test_what_is_no_zone_is_refused(name):
    with pytest.raises(InvalidOption) as refusal:
        Cron("* * * * *", name)
    assert refusal.value.option == "timezone"
    assert refusal.value.value == name


def test_utc_needs_no_zone_data():
    assert zone_of("UTC") is UTC
    assert zone_of("Asia/Kathmandu") == ZoneInfo("Asia/Kathmandu")


# Questions


def test_ticks_end_with_the_calendar():
    assert Cron("* * * * *").next_after(datetime(9950, 1, 1, tzinfo=UTC)) is None
    assert list(Cron("0 0 29 2 *").ticks_after(datetime(9999, 12, 31, tzinfo=UTC))) == []


def test_the_rarest_of_rules_come_round():
    # A leap day that is a Monday comes every 28 years; but 2100 has none.
    rule = Cron("0 0 */28 2 MON#5")
    assert rule.next_after(datetime(2027, 1, 1, tzinfo=UTC)) == datetime(2044, 2, 29, tzinfo=UTC)
    assert Cron("* 0 */28 2 MON#5", "Europe/Berlin").next_after(
        datetime(2073, 1, 1, tzinfo=UTC)
    ) == datetime(2112, 2, 28, 23, tzinfo=UTC)


@pytest.mark.parametrize("rule", [Cron("* * * * *"), Cron("0 0 * * *")])
def test_ticks_end_where_the_walker_gives_up(rule, monkeypatch):
    walls = [at(day).replace(tzinfo=None) for day in ("08-02 00:00", "08-03 00:00")]
    monkeypatch.setattr("backwave_django.core.cron.CronSim", lambda *_args: iter(walls))
    assert list(rule.ticks_after(at("08-01 12:00"))) == [at("08-02 00:00"), at("08-03 00:00")]


def test_last_tick_is_found_however_long_ago():
    rule = Cron("0 2 1 * *", "Europe/Berlin")
    assert rule.last_by(at("08-20 00:00"), since=at("01-01 00:00")) == at("08-01 00:00")
    assert rule.last_by(at("08-01 00:00"), since=at("01-01 00:00")) == at("08-01 00:00")
    assert rule.last_by(at("08-01 00:01"), since=at("08-01 00:00")) is None
    assert rule.last_by(at("08-20 00:00"), since=at("08-01 00:00")) is None
    minutely = Cron("* * * * *")
    assert minutely.last_by(at("08-20 00:00"), since=at("01-01 00:00")) == at("08-20 00:00")


def test_ticks_are_counted_up_to_a_bound():
    rule = Cron("0 * * * *")
    span = {"since": at("08-01 00:00"), "before": at("08-02 00:00")}
    assert rule.count(**span, most=100) == 23
    assert rule.count(**span, most=10) == 10
    assert rule.count(since=at("08-01 00:00"), before=at("08-01 00:30"), most=10) == 0


def test_parts_of_a_second_are_no_ticks():
    start = at("08-01 00:00") + timedelta(microseconds=1)
    assert Cron("* * * * *").next_after(start) == at("08-01 00:01")
    assert Cron("* * * * *").next_after(start - timedelta(microseconds=2)) == at("08-01 00:00")


def test_a_rule_says_what_it_means():
    assert Cron("*/15 8-17 * * MON-FRI").describe() == (
        "Every 15th minute from 08:00 through 17:59 on Monday through Friday"
    )
