from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backwave_django.core.errors import InvalidOption
from backwave_django.core.rates import Rate, rate_or_none, rate_view
from tests.builders import HOUR, MINUTE, SECOND, T0

TEN = Rate.parse("10/second")
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "written", "interval"),
    [
        ("10/second", "10/second", SECOND / 10),
        (" 100 / 5minutes ", "100/5 minutes", 3 * SECOND),
        ("1/30 seconds", "1/30 seconds", 30 * SECOND),
        ("2/hours", "2/hour", 30 * MINUTE),
        ("1/366 day", "1/366 days", timedelta(days=366)),
        ("3/second", "3/second", timedelta(microseconds=333_334)),
        ("1000000/second", "1000000/second", TICK),
    ],
)
def test_rate_is_read_and_written_in_one_spelling(text, written, interval):
    rate = Rate.parse(text)
    assert (str(rate), rate.interval) == (written, interval)
    assert Rate.parse(written) == rate


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("10", "write starts and a period"),
        ("10/week", "write starts and a period"),
        ("-1/second", "write starts and a period"),
        ("1.5/second", "write starts and a period"),
        ("\N{ARABIC-INDIC DIGIT ONE}/second", "write starts and a period"),
        (10, "write starts and a period"),
        (None, "write starts and a period"),
        ("0/second", "write 1 to 1,000,000 starts"),
        ("1000001/second", "write 1 to 1,000,000 starts"),
        ("1/0 seconds", "write a period of 1 second to 366 days"),
        ("1/367 days", "write a period of 1 second to 366 days"),
    ],
)
def test_what_is_no_rate_is_named_with_what_to_write(text, hint):
    with pytest.raises(InvalidOption, match=hint) as refusal:
        Rate.parse(text)
    assert refusal.value.value == text


def test_bucket_is_full_at_first_and_empty_after_its_number():
    assert TEN.tokens(None, now=T0) == 10
    full_at = TEN.taken(None, 10, now=T0)
    assert full_at == T0 + SECOND
    assert (TEN.tokens(full_at, now=T0), TEN.next_token(full_at, now=T0)) == (0, T0 + SECOND / 10)


def test_tokens_come_at_their_instant_and_not_before():
    full_at = TEN.taken(None, 10, now=T0)
    next_at = TEN.next_token(full_at, now=T0)
    assert [TEN.tokens(full_at, now=at) for at in (next_at - TICK, next_at)] == [0, 1]
    assert [TEN.tokens(full_at, now=T0 + n * SECOND / 4) for n in range(6)] == [0, 2, 5, 7, 10, 10]


def test_many_starts_at_once_take_what_they_take_one_by_one():
    rate, full_at = Rate.parse("7/minute"), None
    for left in reversed(range(7)):
        full_at = rate.taken(full_at, 1, now=T0)
        assert rate.tokens(full_at, now=T0) == left
    assert full_at == rate.taken(None, 7, now=T0)
    # A minute is no whole multiple of the interval: its last token is as late as that makes it.
    assert full_at == T0 + MINUTE + 3 * TICK


def test_next_token_is_now_while_there_is_one():
    full_at = TEN.taken(None, 9, now=T0)
    assert TEN.next_token(full_at, now=T0) == T0
    assert TEN.next_token(None, now=T0) == T0


def test_clock_that_goes_back_finds_no_more_than_before_and_waits_no_longer_than_for_an_empty_one():
    full_at = TEN.taken(None, 4, now=T0)
    assert TEN.tokens(full_at, now=T0 - SECOND / 2) == 1
    assert TEN.tokens(full_at, now=T0 - HOUR) == 0
    assert TEN.next_token(full_at, now=T0 - HOUR) == T0 - HOUR + SECOND + SECOND / 10


def test_faster_rate_does_not_wait_for_the_bucket_of_the_slower_one():
    full_at = Rate.parse("1/day").taken(None, 1, now=T0)
    assert TEN.next_token(full_at, now=T0) == T0 + SECOND + SECOND / 10


def test_stored_rate_may_be_none():
    assert (rate_or_none(None), rate_or_none("10/second")) == (None, TEN)
    assert (rate_view(None), rate_view(TEN)) == ({"rate": None}, {"rate": "10/second"})


@given(
    rate=st.builds(
        Rate, st.integers(1, 50), st.integers(1, 90), st.sampled_from(("second", "minute"))
    ),
    steps=st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 60)), max_size=40),
)
def test_no_span_of_time_sees_more_starts_than_the_bucket_and_what_flows_into_it(rate, steps):
    now, full_at, starts = T0, None, []
    for microseconds, wanted in steps:
        now += timedelta(microseconds=microseconds)
        count = min(wanted, rate.tokens(full_at, now=now))
        if count:
            full_at = rate.taken(full_at, count, now=now)
            starts.append((now, count))
        assert (rate.next_token(full_at, now=now) == now) is (rate.tokens(full_at, now=now) > 0)
    for first, (began, _) in enumerate(starts):
        total = 0
        for at, count in starts[first:]:
            total += count
            assert total <= rate.number + (at - began) // rate.interval
