from datetime import UTC, date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import cast

import pytest

from backwave_django.core.errors import InvalidOption, PayloadTooLarge, UnserializableValue
from backwave_django.core.jobs import EdgeMode, IfDuplicate
from backwave_django.jobs.handle import JobHandle
from backwave_django.jobs.options import NO_OPTIONS, Options, OptionValues
from backwave_django.jobs.tags import encode_tags
from tests.builders import DAY, HOUR, MINUTE, T0, uid

KATHMANDU = timezone(timedelta(hours=5, minutes=45))
EASTERN = timezone(timedelta(hours=-5))


def options(**given):
    return NO_OPTIONS.with_(cast("OptionValues", given))


def due_at(**given):
    return options(**given).due_at(lambda: T0)


def deadline_at(**given):
    chosen = options(**given)
    return chosen.deadline_at(chosen.due_at(lambda: T0), lambda: T0)


def refusal(**given):
    with pytest.raises(InvalidOption) as caught:
        options(**given)
    return str(caught.value)


def test_without_a_word_a_job_is_due_by_the_databases_clock():
    assert due_at() is None
    assert due_at(delay=timedelta(0)) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"delay": HOUR}, T0 + HOUR),
        ({"due_at": T0}, T0),
        ({"due_at": datetime(2040, 1, 1, 5, 45, tzinfo=KATHMANDU)}, T0),
        ({"due_at": datetime(2039, 12, 31, 19, tzinfo=EASTERN)}, T0),
        ({"due_at": datetime(1970, 1, 1, tzinfo=UTC)}, datetime(1970, 1, 1, tzinfo=UTC)),
        (
            {"due_at": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)},
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ),
    ],
)
def test_f068_due_times_become_instants_in_utc(given, expected):
    found = due_at(**given)
    assert (found, found.tzinfo) == (expected, UTC)


def test_f068_a_naive_due_time_is_refused_by_name_with_what_to_write():
    message = refusal(due_at=datetime(2040, 1, 1))  # noqa: DTZ001 - what is refused
    assert message.startswith("due_at=")
    assert "timezone.now()" in message
    assert "timezone.make_aware(value)" in message


@pytest.mark.parametrize("option", ["due_at", "deadline"])
@pytest.mark.parametrize(
    "value",
    [date(2040, 1, 1), "2040-01-01", 1, datetime(9999, 12, 31, 23, tzinfo=EASTERN)],
)
def test_instants_that_are_none_are_refused(option, value):
    assert refusal(**{option: value}).startswith(f"{option}=")


@pytest.mark.parametrize("value", [5, -MINUTE, "1h", True])
def test_a_delay_is_a_span_of_zero_or_more(value):
    assert "write a timedelta of zero or more" in refusal(delay=value)


def test_a_delay_past_the_calendar_is_refused():
    with pytest.raises(InvalidOption, match="year 9999"):
        due_at(delay=timedelta.max)


def test_delay_and_due_time_together_are_refused():
    assert "give one of them" in refusal(delay=MINUTE, due_at=T0)


def test_the_later_word_on_the_due_time_counts():
    chosen = options(delay=HOUR).with_({"due_at": T0})
    assert chosen.due_at(lambda: T0 + DAY) == T0


def test_a_deadlines_span_counts_from_when_the_job_becomes_due():
    assert deadline_at(deadline=MINUTE) == T0 + MINUTE
    assert deadline_at(deadline=MINUTE, delay=HOUR) == T0 + HOUR + MINUTE
    assert deadline_at(deadline=MINUTE, due_at=T0 + DAY) == T0 + DAY + MINUTE


def test_a_deadline_may_be_an_instant():
    assert deadline_at(deadline=T0 + DAY) == T0 + DAY
    assert deadline_at(deadline=T0 - DAY) == T0 - DAY


def test_a_deadline_before_the_due_time_is_refused():
    with pytest.raises(InvalidOption, match="it would never run"):
        deadline_at(deadline=T0, delay=HOUR)


@pytest.mark.parametrize("value", [timedelta(0), -MINUTE])
def test_a_deadlines_span_is_above_zero(value):
    assert "above zero" in refusal(deadline=value)


@pytest.mark.parametrize("value", [-101, 101, 1.0, True, "1"])
def test_a_priority_is_a_whole_number_in_its_range(value):
    assert "from -100 to 100" in refusal(priority=value)


@pytest.mark.parametrize("value", [-100, 0, 100])
def test_priorities_in_range_are_taken(value):
    assert options(priority=value).priority == value


@pytest.mark.parametrize("value", ["", " ", "a b", "é", "-a", "a" * 101, 3, "a\0", "a\n"])
def test_a_queue_has_a_plain_name(value):
    assert refusal(queue=value).startswith("queue=")


@pytest.mark.parametrize("value", ["default", "a", "a" * 100, "mail.eu-west:1", "9"])
def test_plain_queue_names_are_taken(value):
    assert options(queue=value).queue == value


@pytest.mark.parametrize("value", ["", "a" * 256, "a\0b", "\ud800", 42])
def test_a_unique_key_is_a_text_that_can_be_stored(value):
    assert refusal(unique=value).startswith("unique=")


def test_duplicate_policies_go_by_name():
    assert options(unique="k", if_duplicate="replace").if_duplicate is IfDuplicate.REPLACE
    assert options(unique="k").if_duplicate is IfDuplicate.ALLOW_AFTER_FAILURE
    assert "'replace'" in refusal(unique="k", if_duplicate="replaced")


def test_a_policy_without_a_key_would_do_nothing_and_is_refused():
    assert "give unique=" in refusal(if_duplicate="reject")
    assert options(unique="k").with_({"if_duplicate": "reject"}).unique == "k"


def test_parents_are_handles_or_ids():
    handle = JobHandle(uid(1))
    assert options(after=handle).after == (uid(1),)
    assert options(after=[handle, uid(2), uid(1)]).after == (uid(1), uid(2))
    assert options(after=(), after_mode="on_any").after == ()
    assert options(after=handle, after_mode="on_any").after_mode is EdgeMode.ON_ANY


@pytest.mark.parametrize("value", ["abc", ["abc"], 3, [None]])
def test_other_parents_are_refused(value):
    assert "handles" in refusal(after=value)


def test_a_mode_without_parents_would_do_nothing_and_is_refused():
    assert "give after=" in refusal(after_mode="on_any")
    assert "'on_any'" in refusal(after=uid(1), after_mode="any")


def test_an_unknown_option_is_refused_with_the_nearest_name():
    assert "did you mean queue?" in refusal(queu="x")
    assert "there are delay, due_at" in refusal(zzzz=1)


def test_none_means_not_given():
    assert options(queue=None, delay=None, due_at=T0, tags=None) == Options(due=T0)


def test_tags_add_up_and_the_later_word_counts():
    first = options(tags={"tenant": "acme", "size": 1})
    assert first.with_({"tags": {"size": 2, "vip": True}}).tags == {
        "tenant": "acme",
        "size": 2,
        "vip": True,
    }
    assert first.tags == {"tenant": "acme", "size": 1}


def test_options_keep_no_hold_of_what_they_were_given():
    tags = {"tenant": "acme"}
    chosen = options(tags=MappingProxyType(tags))
    tags["tenant"] = "other"
    assert chosen.tags == {"tenant": "acme"}


@pytest.mark.parametrize(
    "tags",
    ["x", ["x"], {1: "x"}, {"": "x"}, {"x": None}, {"x": []}, {"x": float("nan")}, {"x": T0}],
)
def test_other_tags_are_refused(tags):
    assert refusal(tags=tags).startswith("tags")


def test_tags_that_no_database_stores_are_refused_by_path():
    with pytest.raises(UnserializableValue, match=r"tags -> .tenant.*NUL"):
        encode_tags({"tenant": "a\0b"})


def test_tags_have_a_cap_in_bytes():
    assert encode_tags({"x": "é" * 2_043}) == '{"x":"' + "é" * 2_043 + '"}'
    with pytest.raises(PayloadTooLarge, match="tags is 4,098 bytes"):
        encode_tags({"x": "é" * 2_045})
