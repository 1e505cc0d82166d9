import inspect
from datetime import timedelta
from typing import Any

import pytest

import backwave_django as backwave
from backwave_django.core.errors import DuplicateWireName, InvalidDeclaration, InvalidOption
from backwave_django.jobs.registry import registry
from tests.jobs import declared


def body(order_id: int) -> int:
    """Double the order."""
    return order_id * 2


def test_the_bare_decorator_derives_the_wire_name_from_app_and_function():
    assert declared.bare.wire_name == "shop.bare"
    assert declared.bare_class.wire_name == "shop.Bare"
    assert registry.get("shop.bare") is declared.bare


def test_outside_of_installed_apps_a_name_has_to_be_given():
    def local() -> None:
        """Not at the top of its module."""

    with pytest.raises(InvalidDeclaration, match=r"is in no installed app.*@backwave.job\("):
        backwave.job(body)
    with pytest.raises(InvalidDeclaration, match="not at the top of its module"):
        backwave.job(local)
    with pytest.raises(InvalidDeclaration, match="not at the top of its module"):
        backwave.job(queue="mail")(lambda: None)


def test_all_options_are_kept():
    retry = backwave.Retry(max_attempts=5)
    limit = backwave.Limit("decorators-gateway", 5)
    declared_with_all = backwave.job(
        "tests.decorators.all",
        queue="billing",
        priority=10,
        retry=retry,
        timeout=timedelta(minutes=2),
        timeout_mode="raise",
        limit=limit,
        aliases=("tests.decorators.old",),
        tags={"team": "billing"},
        version=3,
        atomic=True,
    )(body)
    assert declared_with_all.wire_name == "tests.decorators.all"
    assert declared_with_all.queue == "billing"
    assert declared_with_all.priority == 10
    assert declared_with_all.retry is retry
    assert declared_with_all.timeout == timedelta(minutes=2)
    assert declared_with_all.timeout_mode == "raise"
    assert declared_with_all.limit is limit
    assert declared_with_all.tags == {"team": "billing"}
    assert declared_with_all.version == 3
    assert declared_with_all.atomic
    assert declared_with_all.label == "tests.jobs.test_decorators.body"
    assert not declared_with_all.is_async
    assert registry.find("tests.decorators.old") is declared_with_all


def test_the_decorated_name_looks_like_what_it_stands_for():
    double = backwave.job("tests.decorators.double")(body)
    assert (double.__name__, double.__doc__) == ("body", "Double the order.")
    assert inspect.signature(double) == inspect.signature(body)
    assert repr(double) == "<job type tests.decorators.double>"


@pytest.mark.parametrize("name", ["", "a b", "é.x", ".x", "x" * 201, "a\n", "orders.*"])
def test_wire_names_are_plain(name):
    with pytest.raises(InvalidOption, match=r"wire name=.*orders.send_receipt"):
        backwave.job(name)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("queue", "a b"),
        ("queue", None),
        ("priority", 101),
        ("retry", 5),
        ("timeout", 5),
        ("timeout", timedelta(0)),
        ("timeout_mode", "kill"),
        ("timeout_mode", None),
        ("timeout_mode", ["raise"]),
        ("timeout_mode", "raise"),  # without timeout=
        ("limit", 5),
        ("aliases", "orders.charge_card"),
        ("tags", {"x": None}),
        ("version", 0),
        ("version", True),
        ("atomic", 1),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(option, value):
    with pytest.raises(InvalidOption, match=option):
        backwave.job("tests.decorators.refused", **{option: value})
    assert registry.find("tests.decorators.refused") is None


def test_an_alias_is_as_plain_as_a_wire_name():
    with pytest.raises(InvalidOption, match="wire name="):
        backwave.job("tests.decorators.refused", aliases=["a b"])


def test_an_option_that_does_not_exist_is_refused():
    options: dict[str, Any] = {"transactional": True}
    with pytest.raises(TypeError, match="transactional"):
        backwave.job("tests.decorators.refused", **options)


def test_an_async_body_cannot_be_atomic():
    async def work() -> None: ...

    with pytest.raises(InvalidDeclaration, match=r"work is async, and atomic=True.*plain def"):
        backwave.job("tests.decorators.refused", atomic=True)(work)
    assert registry.find("tests.decorators.refused") is None


def test_two_codes_cannot_share_a_wire_name():
    backwave.job("tests.decorators.taken", aliases=("tests.decorators.taken_before",))(body)

    def other() -> None:
        """Wants the same name."""

    for name in ("tests.decorators.taken", "tests.decorators.taken_before"):
        with pytest.raises(DuplicateWireName) as refusal:
            backwave.job(name)(other)
        assert "tests.jobs.test_decorators.body" in str(refusal.value)
        assert "other" in str(refusal.value)


def test_a_module_that_is_loaded_anew_replaces_what_it_declared():
    backwave.job("tests.decorators.again")(body)
    second = backwave.job("tests.decorators.again")(body)
    assert registry.get("tests.decorators.again") is second


def generator():
    """Would run nothing."""
    yield 1


async def async_generator():
    """Would run nothing either."""
    yield 1


class NoRun:
    """No body."""


class StaticRun:
    """Nobody would pass self, but a place for it is needed."""

    @staticmethod
    def run(month):
        """No method."""


class Shop:
    """A class whose method is no job."""

    def refund(self, order_id):
        """Nobody would pass self."""


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (generator, "is a generator"),
        (async_generator, "is a generator"),
        (NoRun, "needs a method run"),
        (StaticRun, "needs a method run"),
        (Shop.refund, "is a method"),
        (Shop().refund, "is no job type"),
        (print, "is no job type"),
        (3, "is no job type"),
    ],
)
def test_what_cannot_be_a_body_is_refused(code, problem):
    with pytest.raises(InvalidDeclaration, match=problem):
        backwave.job("tests.decorators.refused")(code)
    assert registry.find("tests.decorators.refused") is None


def test_a_decorated_object_cannot_take_options_beside_its_body():
    options: dict[str, Any] = {"queue": "x"}
    with pytest.raises(InvalidDeclaration, match=r"@backwave.job\(name, option=...\)"):
        backwave.job(body, **options)


def test_one_key_has_one_number():
    backwave.job("tests.decorators.five", limit=backwave.Limit("decorators-key", 5))(body)
    with pytest.raises(InvalidDeclaration, match=r"with 5 by .* and with 6 by .*: write the same"):
        backwave.job("tests.decorators.six", limit=backwave.Limit("decorators-key", 6))(
            generator_free
        )


def generator_free() -> None:
    """Another body."""


@pytest.mark.parametrize("number", [0, -1, True, 1.0, 2**31])
def test_a_limit_is_a_whole_number_of_one_or_more(number):
    with pytest.raises(InvalidOption, match="1 or more"):
        backwave.Limit("key", number)


@pytest.mark.parametrize("key", ["", "k" * 201, 3, None, "a\0"])
def test_a_limit_key_is_a_text(key):
    with pytest.raises(InvalidOption, match="limit="):
        backwave.Limit(key, 5)
