"""Every expression that the docs show, for a year, in five zones, against a plain reading of it."""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from backwave_django.core.cron import Cron

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
QUARTER = timedelta(minutes=15)
START = datetime(2028, 1, 1, tzinfo=UTC)  # a leap year
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
)
FIELD = r"[0-9A-Z*/,#-]+"
EXPRESSION = re.compile(rf"[`\"]((?:{FIELD} ){{4}}{FIELD})[`\"]")
IMPOSSIBLE = {"0 0 31 2 *"}
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def expressions():
    pages = ("how-to/schedules.md", "reference/cron.md")
    found = {text for page in pages for text in EXPRESSION.findall((DOCS / page).read_text())}
    return sorted(found - IMPOSSIBLE)


def number(text, names):
    return names.index(text) if text in names else int(text)


def values(field, low, high, names=()):
    """The numbers that a field allows: lists, ranges and steps."""
    found = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            begin, end = low, high
        else:
            begin = number(first, names)
            end = number(last, names) if last else (high if step else begin)
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def fits_date(field, day):
    last = monthrange(day.year, day.month)[1]
    if field == "L":
        return day.day == last
    if field == "LW":
        weekdays = [d for d in range(1, last + 1) if day.replace(day=d).weekday() < 5]
        return day.day == weekdays[-1]
    return day.day in values(field, 1, 31)


def fits_weekday(field, day):
    today = (day.weekday() + 1) % 7
    if field.endswith("L"):
        left = monthrange(day.year, day.month)[1] - day.day
        return today == int(field[:-1]) % 7 and left < 7
    if "#" in field:
        name, which = field.split("#")
        return today == number(name, DAYS) % 7 and (day.day - 1) // 7 + 1 == int(which)
    return today in {one % 7 for one in values(field, 0, 7, DAYS)}


def plain_reading(expression):
    """Tell of a wall clock time whether the expression names it."""
    minute, hour, date, month, weekday = expression.split()
    minutes, hours, months = values(minute, 0, 59), values(hour, 0, 23), values(month, 1, 12)
    both = date.startswith("*") or weekday.startswith("*")
    days = {}

    def fits(wall):
        if wall.minute not in minutes or wall.hour not in hours or wall.month not in months:
            return False
        day = wall.date()
        if day not in days:
            by_date, by_weekday = fits_date(date, day), fits_weekday(weekday, day)
            days[day] = (by_date and by_weekday) if both else (by_date or by_weekday)
        return days[day]

    return fits


def expected(expression, shown):
    """What ticks, looking at every quarter of an hour in turn."""
    fits = plain_reading(expression)
    minute, hour, *_ = expression.split()
    if minute.startswith("*") or hour.startswith("*"):
        return [instant for instant, wall in shown[1:] if fits(wall)]
    found, had = [], {shown[0][1]}
    for (_, earlier), (instant, wall) in pairwise(shown):
        skipped = [earlier + n * QUARTER for n in range(1, int((wall - earlier) / QUARTER))]
        if any(fits(one) for one in skipped) or (fits(wall) and wall not in had):
            found.append(instant)
        had.add(wall)
    return found


def test_the_docs_show_expressions():
    assert len(expressions()) >= 12
    assert "0 2 * * *" in expressions()


@pytest.mark.parametrize("zone", ZONES)
def test_a_year_of_every_expression_of_the_docs_in(zone):
    info = ZoneInfo(zone)
    instants = [START + n * QUARTER for n in range(366 * 96)]
    shown = [(instant, instant.astimezone(info).replace(tzinfo=None)) for instant in instants]
    for expression in expressions():
        ticks = Cron(expression, zone).ticks_after(START)
        found = list(takewhile(lambda tick: tick <= instants[-1], ticks))
        assert found == expected(expression, shown), expression
        assert found, expression
