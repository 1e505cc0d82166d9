"""Calling the decorated name: the body, here and now."""

import asyncio
import gc
from typing import Any

import pytest
import svcs

import backwave_django as backwave
from backwave_django.core.commands import CancelReason
from backwave_django.core.errors import Cancelled, InvalidDeclaration
from backwave_django.jobs import services

pytestmark = pytest.mark.usefixtures("services_of_this_test")


class Gateway:
    """A service that knows whether it is open."""

    is_open = True


class Storage:
    """A service that an async factory opens."""

    is_open = True


opened: list[Gateway | Storage] = []


def open_gateway():
    opened.append(Gateway())
    yield opened[-1]
    opened[-1].is_open = False


async def open_storage():
    opened.append(Storage())
    yield opened[-1]
    await asyncio.sleep(0)
    opened[-1].is_open = False


@pytest.fixture
def services_of_this_test(settings):
    opened.clear()
    settings.BACKWAVE = {**settings.BACKWAVE, "SERVICES": f"{__name__}.register"}


def register(registry: svcs.Registry) -> None:
    registry.register_factory(Gateway, open_gateway)
    registry.register_factory(Storage, open_storage)


@backwave.job("tests.calls.charge")
def charge(
    order_id: int,
    ctx: backwave.JobContext = backwave.context(),
    gateway: Gateway = backwave.service(),
) -> tuple[int, backwave.JobContext, Gateway, bool]:
    """Take a context and a service."""
    return order_id, ctx, gateway, gateway.is_open


@backwave.job("tests.calls.push")
async def push(
    message_id: int,
    storage: "Storage" = backwave.service(),
    ctx: backwave.JobContext = backwave.context(),
) -> tuple[int, Storage, bool, bool]:
    """Take an async service."""
    await asyncio.sleep(0)
    return message_id, storage, storage.is_open, backwave.current() is ctx


class Report:
    """Its constructor takes services and the context, by annotation or by mark."""

    def __init__(
        self,
        gateway: Gateway,
        ctx: backwave.JobContext,
        marked: Gateway = backwave.service(Gateway),
        size: int = 3,
    ) -> None:
        self.gateway, self.ctx, self.marked, self.size = gateway, ctx, marked, size

    def run(self, month: str) -> "tuple[Report, str, bool]":
        """Return everything."""
        return self, month, self.gateway.is_open


class Registered:
    """A class that the services have a factory for."""

    def __init__(self, made_by: str) -> None:
        self.made_by = made_by

    def run(self) -> str:
        """Tell who made it."""
        return self.made_by


# As decorators would: mypy takes a decorated class for the class itself.
build_report = backwave.job("tests.calls.report")(Report)
registered = backwave.job("tests.calls.registered")(Registered)


def test_a_call_runs_the_body_with_a_context_and_services_of_its_own():
    order_id, ctx, gateway, was_open = charge(42)
    assert (order_id, was_open) == (42, True)
    assert (ctx.wire_name, ctx.attempt, ctx.queue) == ("tests.calls.charge", 1, "default")
    assert not gateway.is_open
    assert charge(42)[2] is not gateway


def test_what_is_passed_is_not_filled_in():
    mine = Gateway()
    assert charge(1, gateway=mine)[2] is mine
    assert opened == []


def test_services_close_when_the_body_raises():
    @backwave.job("tests.calls.failing")
    def failing(gateway: Gateway = backwave.service()) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        failing()
    assert [each.is_open for each in opened] == [False]


def test_a_class_is_made_from_the_services_and_run():
    instance, month, was_open = build_report("2026-11")
    assert isinstance(instance, Report)
    assert build_report.cls is Report
    assert (month, was_open, instance.size) == ("2026-11", True, 3)
    assert instance.marked is instance.gateway
    assert isinstance(instance.ctx, backwave.JobContext)
    assert build_report("2026-11")[0] is not instance


def test_a_registered_factory_makes_the_instances_of_a_job_class():
    services.registry().register_factory(Registered, lambda: Registered("the factory"))
    assert registered() == "the factory"


def test_an_async_body_gives_a_coroutine_and_closes_what_it_opened():
    message_id, storage, was_open, has_context = asyncio.run(push(7))
    assert (message_id, was_open, has_context) == (7, True, True)
    assert not storage.is_open


def test_current_answers_inside_of_a_body_only():
    seen: list[Any] = []

    @backwave.job("tests.calls.inner")
    def inner() -> None:
        seen.append(backwave.current())

    @backwave.job("tests.calls.outer")
    def outer() -> None:
        seen.append(backwave.current())
        inner()
        seen.append(backwave.current())

    outer()
    before, within, after = (each.wire_name for each in seen)
    assert (before, within, after) == (
        "tests.calls.outer",
        "tests.calls.inner",
        "tests.calls.outer",
    )
    assert backwave.current() is None


def test_a_body_called_by_another_stops_with_it():
    @backwave.job("tests.calls.stopping")
    def stopping(ctx: backwave.JobContext = backwave.context()) -> None:
        ctx.raise_if_cancelled()

    @backwave.job("tests.calls.asked")
    def asked(ctx: backwave.JobContext = backwave.context()) -> None:
        ctx.signals.cancel(CancelReason.OPERATOR)
        stopping()

    with pytest.raises(Cancelled):
        asked()


def test_a_type_that_only_the_checker_knows_is_explained():
    @backwave.job("tests.calls.unknown")
    def unknown(
        gateway: "Nowhere" = backwave.service(),  # type: ignore[name-defined]  # noqa: F821
    ) -> None:
        """Its annotation cannot be resolved."""

    @backwave.job("tests.calls.untyped")
    def untyped(gateway=backwave.service()):
        """It has none."""

    with pytest.raises(InvalidDeclaration, match=r"'gateway'.*Nowhere.*service\(TheType\)"):
        unknown()
    with pytest.raises(InvalidDeclaration, match=r"'gateway'.*annotate it"):
        untyped()


def test_another_unresolvable_annotation_does_not_matter():
    @backwave.job("tests.calls.half_known")
    def half_known(
        order: "Nowhere" = None,  # type: ignore[name-defined]  # noqa: F821
        gateway: "Gateway" = backwave.service(),
    ) -> bool:
        return gateway.is_open

    assert half_known() is True


def test_a_call_before_django_is_ready_needs_no_name():
    def body() -> str:
        return "ran"

    from backwave_django.jobs.job_type import Declaration, JobType  # noqa: PLC0415

    assert JobType(body, Declaration())() == "ran"


def test_nothing_is_left_open():
    charge(1)
    gc.collect()
    assert not any(each.is_open for each in opened)
