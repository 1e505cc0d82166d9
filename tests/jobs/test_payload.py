import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from backwave_django.core.errors import UndecodablePayload
from backwave_django.jobs.payload import decode, decode_call, encode, encode_call

WHERE = "argument 'x'"
KATHMANDU = timezone(timedelta(hours=5, minutes=45))
ODD_OFFSET = timezone(timedelta(hours=-3, minutes=-7, seconds=-12, microseconds=-34))


def shape(value):
    """Return ``value`` with the type of every part, so that 1, 1.0 and True differ."""
    match value:
        case dict():
            return dict, {key: shape(item) for key, item in value.items()}
        case list() | tuple():
            return type(value), [shape(item) for item in value]
        case datetime() | time():
            return type(value), value.replace(tzinfo=None, fold=0), value.utcoffset()
        case float() | Decimal():
            return type(value), repr(value)  # 0.10 is not 0.1 and -0.0 is not 0.0
        case _:
            return type(value), value


def round_trip(value):
    return decode(encode(value, where=WHERE))


def through_jsonb(text):
    """Return ``text`` as PostgreSQL prints it from ``jsonb``: numbers as exact plain decimals."""

    def pretty(value):
        match value:
            case Decimal():
                return format(abs(value) if value.is_zero() else value, "f")
            case str() | None | bool() | int():
                return json.dumps(value, ensure_ascii=False)
            case list():
                return f"[{', '.join(map(pretty, value))}]"
            case _:
                pairs = sorted(value.items(), key=lambda pair: (len(pair[0]), pair[0]))
                items = (f"{pretty(key)}: {pretty(item)}" for key, item in pairs)
                return f"{{{', '.join(items)}}}"

    return pretty(json.loads(text, parse_float=Decimal))


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
dollars = st.text("$ab", max_size=4)
offsets = st.timedeltas(
    min_value=timedelta(hours=-23, minutes=-59), max_value=timedelta(hours=23, minutes=59)
).map(timezone)
zones = st.none() | offsets | st.sampled_from([UTC, ZoneInfo("Europe/Berlin")])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**2040, max_value=2**2056).flatmap(lambda n: st.sampled_from([n, -n])),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    dollars,
    st.datetimes(timezones=zones, allow_imaginary=True),
    st.dates(),
    st.times(timezones=st.none() | offsets),
    st.timedeltas(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.uuids(),
    st.binary(max_size=20),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(texts | dollars, inner, max_size=4),
        st.dictionaries(st.sampled_from(["$", "$$", "$uuid", "$tuple", "$int"]), inner, max_size=1),
    ),
    max_leaves=12,
)


@given(values)
def test_every_value_comes_back_with_its_type(value):
    assert shape(round_trip(value)) == shape(value)


@given(values)
def test_every_value_survives_a_jsonb_column(value):
    assert shape(decode(through_jsonb(encode(value, where=WHERE)))) == shape(value)


@given(values)
def test_the_text_can_be_stored_everywhere(value):
    text = encode(value, where=WHERE)
    assert "\0" not in text
    assert "\\u0000" not in text.replace("\\\\", "")
    text.encode()


@given(
    st.lists(values, max_size=4).map(tuple), st.dictionaries(texts | dollars, values, max_size=3)
)
def test_every_call_comes_back(args, kwargs):
    args_back, kwargs_back = decode_call(encode_call(args, kwargs, names=("first", "second")))
    assert shape(args_back) == shape(args)
    assert shape(kwargs_back) == shape(kwargs)


@pytest.mark.parametrize(
    "value",
    [
        UUID("12345678-1234-5678-1234-567812345678"),
        Decimal("0.10"),
        Decimal("-0"),
        Decimal("1E+400"),
        date(2026, 2, 28),
        date.min,
        datetime(2026, 2, 28, 12, 30, 1, 123456, tzinfo=KATHMANDU),
        datetime(2026, 2, 28, 12, 30, 1, 1, tzinfo=ODD_OFFSET),
        datetime(2026, 2, 28, 12, 30),  # noqa: DTZ001 - a naive one must stay naive
        datetime.max,  # noqa: DTZ901 - as far as it goes
        timedelta(0.1),
        timedelta(microseconds=-1),
        timedelta.min,
        timedelta.max,
        time(1, 2),
        time(1, 2, 3, 4, tzinfo=KATHMANDU),
        time(1, 2, tzinfo=timezone(timedelta(microseconds=-1))),
        b"",
        bytes(range(256)),
    ],
    ids=repr,
)
def test_f062_types_that_json_lacks_keep_type_and_value(value):
    assert shape(round_trip(value)) == shape(value)


@pytest.mark.parametrize(
    "value",
    [
        *("1", "null", '{"a": 1}', "", None, True, 0, [], 2**63, -(2**63) - 1, 10**30, 1e308),
        *((), {}, False, 0.0, -0.0, 1.0, 1e16, 5e-324, "$tuple", '{"$tuple": [1]}', '"$'),
    ],
    ids=repr,
)
def test_f065_plain_values_keep_type_and_value(value):
    assert shape(round_trip(value)) == shape(value)


@pytest.mark.parametrize("value", [10**5000, -(10**5000)], ids=["positive", "negative"])
def test_an_int_beyond_the_conversion_limit_stays_exact(value):
    assert round_trip(value) == value


def test_bool_and_int_stay_apart():
    assert shape(round_trip([True, 1, False, 0])) == shape([True, 1, False, 0])


def test_tuples_and_lists_stay_apart_at_every_level():
    value = ([1, (2, [3])], (), [()])
    assert shape(round_trip(value)) == shape(value)


@pytest.mark.parametrize(
    "value",
    [
        {"$": 1},
        {"$$": 1},
        {"$uuid": "not one"},
        {"$$uuid": {"$uuid": [{"$tuple": 1}]}},
        {"$tuple": (1, 2)},
        {"$int": 1, "other": 2},
    ],
    ids=repr,
)
def test_a_dict_that_looks_like_a_tag_comes_back_as_it_was(value):
    assert shape(round_trip(value)) == shape(value)


def test_a_zone_becomes_its_offset_at_that_instant():
    berlin = ZoneInfo("Europe/Berlin")
    second_pass = datetime(2027, 10, 31, 2, 30, fold=1, tzinfo=berlin)
    back = round_trip(second_pass)
    assert (back.utcoffset(), back.astimezone(UTC)) == (
        timedelta(hours=1),
        second_pass.astimezone(UTC),
    )


@pytest.mark.parametrize(
    "text", ["naïve", "日本", "🎉", "\u2028", "\x01\x1f\x7f", '"\\/', "\ufeff", "\\u0000"]
)
def test_text_of_any_script_comes_back(text):
    assert round_trip({text: text}) == {text: text}


def test_the_text_is_compact_and_not_escaped():
    assert encode({"name": "Zoë", "n": [1, 2.5, None]}, where=WHERE) == (
        '{"name":"Zoë","n":[1,2.5,null]}'
    )


def test_safe_text_is_stored_as_plain_text():
    safe = mark_safe("<b>")
    assert shape(round_trip({safe: safe})) == shape({"<b>": "<b>"})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.0001, "0.0001"),
        (1e15, "1000000000000000.0"),
        (1e16, '{"$float":"1e+16"}'),
        (1e308, '{"$float":"1e+308"}'),
        (1e-05, '{"$float":"1e-05"}'),
        (-0.0, '{"$float":"-0.0"}'),
    ],
)
def test_a_float_is_tagged_when_jsonb_would_change_it(value, text):
    assert encode(value, where=WHERE) == text


def test_a_call_is_stored_as_its_arguments():
    assert encode_call((42, "a"), {"tenant": "acme"}, names=("order_id", "kind")) == (
        '{"args":[42,"a"],"kwargs":{"tenant":"acme"}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        "7",
        "null",
        "[]",
        "{}",
        '{"args":[]}',
        '{"args":[],"kwargs":[]}',
        '{"args":{},"kwargs":{}}',
        '{"args":[],"kwargs":{},"more":1}',
        '{"args":{"$tuple":[]},"kwargs":{}}',
        '{"$tuple":[]}',
    ],
)
def test_f067_json_that_is_no_call_is_undecodable(text):
    with pytest.raises(UndecodablePayload, match='expected an object of "args"'):
        decode_call(text)
