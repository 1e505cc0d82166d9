from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject, lazystr
from django.utils.safestring import mark_safe

from backwave_django.core.errors import UnserializableValue
from backwave_django.jobs.payload import MAX_DEPTH, decode, encode, encode_call


class Shade(StrEnum):
    DARK = "dark"


class Level(IntEnum):
    HIGH = 3


class Celsius(float):
    pass


class Stamp(datetime):
    pass


@dataclass
class Address:
    street: str


class Order:
    """As much of a model as is looked at: what its class has."""

    _meta = SimpleNamespace(label="shop.Order")
    pk = 7


class Anonymous:
    is_authenticated = False


class Orders:
    def values_list(self):
        return [7]


Point = namedtuple("Point", "x y")


def refusal(value):
    with pytest.raises(UnserializableValue) as caught:
        encode(value, where="argument 'x'")
    return caught.value


@pytest.mark.parametrize(
    ("value", "named", "hint"),
    [
        ({1}, "set", "pass sorted(value) or list(value)"),
        (frozenset({1}), "frozenset", "pass sorted(value) or list(value)"),
        (Shade.DARK, "Shade", "pass .value"),
        (Level.HIGH, "Level", "pass .value"),
        (Order(), "Order", "pass the primary key (.pk) and load the row in the body"),
        (Anonymous(), "Anonymous", "pass the primary key (.pk), or None for nobody"),
        (Orders(), "Orders", "pass the primary keys: list(queryset.values_list('pk', flat=True))"),
        (lazystr("hello"), "__proxy__", "call str() on it first"),
        (bytearray(b"x"), "bytearray", "pass bytes(value)"),
        (memoryview(b"x"), "memoryview", "pass bytes(value)"),
        (range(3), "range", "pass list(value)"),
        ({}.keys(), "dict_keys", "pass list(value)"),
        (Celsius(20.5), "Celsius", "pass a plain float"),
        (Stamp(2026, 2, 28, tzinfo=UTC), "Stamp", "pass a plain datetime"),
        (Point(1, 2), "Point", "pass a plain tuple"),
        (OrderedDict(a=1), "OrderedDict", "pass a plain dict"),
        (defaultdict(list), "defaultdict", "pass a plain dict"),
        (Address("Main"), "Address", "pass its fields: dataclasses.asdict(value)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_type_that_cannot_come_back_is_refused_with_a_way_out(value, named, hint):
    error = refusal({"a": [0, value]})
    assert (error.path, error.problem, error.hint) == (
        "argument 'x' -> .a[1]",
        f"a value of type {named} cannot be stored",
        hint,
    )


def test_a_request_is_refused_with_a_way_out():
    error = refusal(HttpRequest.__new__(HttpRequest))  # needs no settings: only its type is read
    assert "HttpRequest" in error.problem
    assert "primary key" in error.hint


def test_an_object_of_no_known_kind_is_refused_with_the_list_of_what_is():
    assert "Decimal, UUID or bytes" in refusal(object()).hint


def test_a_lazy_object_is_refused_without_being_evaluated():
    def load():
        raise AssertionError("evaluated")

    error = refusal(SimpleLazyObject(load))
    assert "primary key" in error.hint


def test_a_refusal_is_a_type_error_that_names_the_whole_path():
    with pytest.raises(TypeError, match=r"^argument 'user' -> \.x\[2\]: a value of type set "):
        encode({"x": [0, 1, {2}]}, where="argument 'user'")


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("-Infinity")]
)
def test_a_number_that_is_none_is_refused(value):
    error = refusal({"total": value})
    assert error.path == "argument 'x' -> .total"
    assert str(value) in error.problem


def test_a_signalling_nan_is_refused():
    assert "sNaN" in refusal(Decimal("sNaN")).problem


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a\0b", "argument 'x'"),
        (["x", {"y": "a\0"}], "argument 'x' -> [1].y"),
        ({"k\0": 1}, "argument 'x'"),
        ({"a": {"k\0": 1}}, "argument 'x' -> .a"),
        (mark_safe("a\0b"), "argument 'x'"),
    ],
)
def test_f058_nul_is_refused_by_its_place(value, path):
    error = refusal(value)
    assert error.path == path
    assert "a NUL character at index 1" in error.problem
    assert "\0" not in str(error)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a\ud800", "argument 'x'"),
        (["x", {"y": "é\udcff"}], "argument 'x' -> [1].y"),
        ({"a": {"k\ud800": 1}}, "argument 'x' -> .a"),
    ],
)
def test_f061_a_lone_surrogate_is_refused_by_its_place(value, path):
    error = refusal(value)
    assert error.path == path
    assert "a lone surrogate at index 1" in error.problem
    str(error).encode()


@pytest.mark.parametrize(
    ("key", "kind"), [(1, "int"), (None, "NoneType"), ((1, 2), "tuple"), (Shade.DARK, "Shade")]
)
def test_a_key_that_is_not_text_is_refused(key, kind):
    error = refusal([{key: 1}])
    assert (error.path, error.problem) == ("argument 'x' -> [0]", f"a key is of type {kind}")


def test_a_time_of_day_in_a_zone_with_changing_offset_is_refused():
    error = refusal([time(1, 2, tzinfo=ZoneInfo("Europe/Berlin"))])
    assert (error.path, error.problem) == (
        "argument 'x' -> [0]",
        "the zone of a time has no offset from UTC",
    )


def test_a_path_quotes_a_key_that_is_no_name():
    assert refusal({"two words": {1}}).path == "argument 'x' -> ['two words']"


def test_a_path_shortens_a_long_key():
    assert refusal({"k" * 5000: {1}}).path == "argument 'x' -> ['kkkkkkkkkkkk...kkkkkkkkkkkkk']"


@pytest.mark.parametrize(
    ("args", "kwargs", "path"),
    [
        (({1},), {}, "argument 'user'"),
        ((1, {"x": [0, 0, {1}]}), {}, "argument 'order' -> .x[2]"),
        ((1, 2, {3}), {}, "argument 3"),
        ((), {"user": [{1}]}, "argument 'user' -> [0]"),
        ((), {"k\0": 1}, "keyword arguments"),
        ((), {1: 1}, "keyword arguments"),
    ],
)
def test_f064_a_refused_argument_is_named_by_its_parameter(args, kwargs, path):
    with pytest.raises(UnserializableValue) as caught:
        encode_call(args, kwargs, names=("user", "order"))
    assert caught.value.path == path


def nested(depth, *, leaf=None, wrap=lambda inner: [inner]):
    value = leaf
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "wrap",
    [lambda inner: [inner], lambda inner: (inner,), lambda inner: {"k": inner}],
    ids=["list", "tuple", "dict"],
)
def test_the_deepest_value_comes_back(wrap):
    value = nested(MAX_DEPTH, wrap=wrap)
    assert decode(encode(value, where="argument 'x'")) == value


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 2_000, 10_000])
def test_f110_a_deeper_value_is_refused(depth):
    error = refusal(nested(depth))
    assert "nested deeper than 200 levels" in error.problem
    assert error.path == "argument 'x' -> [0][0][0][0][0][0] ... [0][0][0][0][0][0]"


@pytest.mark.parametrize("depth", [2_000, 10_000])
def test_f110_a_deep_dict_or_tuple_is_refused(depth):
    assert "nested deeper" in refusal(nested(depth, wrap=lambda inner: {"k": inner})).problem
    assert "nested deeper" in refusal(nested(depth, wrap=lambda inner: (inner,))).problem


def test_a_list_that_contains_itself_is_refused():
    value: list[object] = [1]
    value.append(value)
    assert "contains itself" in refusal(value).problem
