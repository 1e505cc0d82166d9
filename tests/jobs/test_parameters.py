import inspect
import re

import pytest

import backwave_django as backwave
from backwave_django.core.errors import InvalidDeclaration, WrongArguments
from backwave_django.jobs.parameters import Call, Parameters


def parameters(function):
    return Parameters(function, label="shop.jobs.body")


def bind(function, *args, **kwargs):
    return parameters(function).bind("shop.body", args, kwargs)


def simple(order_id, currency="CHF", *, notify=True):
    """Nothing but names."""


def positional(order_id, /, currency="CHF", *, notify=True):
    """One parameter without a name."""


def variadic(order_id, currency="CHF", *more, notify=True, **extra):
    """Takes anything after the first."""


def filled(order_id, ctx=backwave.context(), *, shop=backwave.service(), note=""):
    """Two that the attempt fills."""


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1,), {}),
        ((1, "EUR"), {}),
        ((1,), {"currency": "EUR", "notify": False}),
        ((), {"order_id": 1}),
        ((), {"currency": "EUR", "order_id": 1}),
    ],
)
def test_arguments_are_kept_by_name_and_defaults_are_not_kept(args, kwargs):
    assert bind(simple, *args, **kwargs) == Call(
        (), inspect.signature(simple).bind(*args, **kwargs).arguments
    )


def test_arguments_without_a_name_are_kept_by_position():
    assert bind(positional, 1, "EUR", notify=False) == Call(
        (1,), {"currency": "EUR", "notify": False}
    )


def test_arguments_before_further_ones_are_kept_by_position():
    assert bind(variadic, 1, "EUR", 2, 3, notify=False, colour="red") == Call(
        (1, "EUR", 2, 3), {"notify": False, "colour": "red"}
    )
    assert bind(variadic, 1, colour="red") == Call((), {"order_id": 1, "colour": "red"})


@pytest.mark.parametrize("function", [simple, positional, variadic, filled])
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1, 2), {"currency": 3}),
        ((1,), {"order_id": 2}),
        ((1, 2, 3, 4), {}),
        ((1,), {"colour": "red"}),
    ],
)
def test_what_python_refuses_is_refused_and_nothing_else(function, args, kwargs):
    passed = parameters(function).signature
    problem = refused_by_python(passed, args, kwargs)
    if problem is None:
        call = bind(function, *args, **kwargs)
        assert passed.bind(*call.args, **call.kwargs) == passed.bind(*args, **kwargs)
    else:
        with pytest.raises(WrongArguments, match=re.escape(problem)):
            bind(function, *args, **kwargs)


def refused_by_python(signature, args, kwargs):
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None


def test_the_refusal_names_job_problem_and_parameters_but_no_value():
    with pytest.raises(WrongArguments) as refusal:
        bind(simple, "hunter2", "hunter2", "hunter2")
    assert str(refusal.value) == (
        "job 'shop.body': too many positional arguments; "
        "it takes (order_id, currency=..., *, notify=...)"
    )


@pytest.mark.parametrize("name", ["ctx", "shop"])
def test_what_the_attempt_fills_in_cannot_be_passed(name):
    with pytest.raises(WrongArguments, match=f"'{name}' is filled in when the job runs"):
        bind(filled, 1, **{name: object()})


def test_positions_skip_what_the_attempt_fills_in():
    def body(ctx=backwave.context(), order_id=0):
        """The mark comes first."""

    assert bind(body, 7) == Call((), {"order_id": 7})


def test_a_context_without_its_mark_is_a_wrong_declaration():
    def body(order_id: int, ctx: backwave.JobContext) -> None:
        """Forgot the default."""

    def with_text(order_id: int, ctx: "backwave.JobContext") -> None:
        """The annotation is a text."""

    for function in (body, with_text):
        with pytest.raises(InvalidDeclaration, match=r"'ctx'.*write backwave.context"):
            parameters(function)


def test_a_mark_that_no_name_reaches_is_a_wrong_declaration():
    def positional_only(ctx=backwave.context(), /):
        """Cannot be filled by name."""

    def before_more(ctx=backwave.context(), *more):
        """Would take the first of what follows."""

    def after_more(*more, ctx=backwave.context()):
        """This is how."""

    for function in (positional_only, before_more):
        with pytest.raises(InvalidDeclaration, match="make it keyword-only"):
            parameters(function)
    assert parameters(after_more).bind("x", (1, 2), {}) == Call((1, 2), {})
