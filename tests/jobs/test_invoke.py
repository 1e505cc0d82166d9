"""Running a body to its end, as a pump does."""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any

import pytest
import svcs

import backwave_django as backwave
from backwave_django.jobs import services
from backwave_django.jobs.job_type import Declaration, JobType
from backwave_django.jobs.local import local_attempt

request_id: ContextVar[int] = ContextVar("request_id", default=0)


class Gateway:
    """A service that an async factory opens."""

    is_open = True


async def open_gateway() -> AsyncIterator[Gateway]:
    gateway = Gateway()
    yield gateway
    await asyncio.sleep(0)
    gateway.is_open = False


def register(registry: svcs.Registry) -> None:
    registry.register_factory(Gateway, open_gateway)
    registry.register_value(int, 7)


@pytest.fixture(autouse=True)
def services_of_this_test(settings):
    settings.BACKWAVE = {**settings.BACKWAVE, "SERVICES": f"{__name__}.register"}


def invoke(code: Any, *args: Any, **kwargs: Any) -> Any:
    """What a pump does with a leased job, on this thread."""
    job_type: JobType[..., Any] = JobType(code, Declaration(wire_name="tests.invoke.body"))
    call = job_type.parameters.bind(job_type.wire_name, args, kwargs)
    with local_attempt(job_type.wire_name, queue="default") as ctx:
        return job_type.invoke(call, ctx)


def test_a_function_returns_what_it_returns():
    def body(
        order_id: int,
        *more: int,
        ctx: backwave.JobContext = backwave.context(),
        number: int = backwave.service(),
    ) -> object:
        return order_id, more, number, ctx is backwave.current()

    assert invoke(body, 1) == (1, (), 7, True)
    assert invoke(body, 1, 2, 3) == (1, (2, 3), 7, True)
    assert backwave.current() is None


def test_what_a_body_raises_comes_out():
    def body() -> None:
        raise KeyError("order")

    with pytest.raises(KeyError, match="order"):
        invoke(body)
    assert backwave.current() is None


def test_an_async_body_runs_to_its_end_with_async_services():
    seen: list[Gateway] = []

    async def body(gateway: "Gateway" = backwave.service(Gateway)) -> object:
        await asyncio.sleep(0)
        seen.append(gateway)
        return gateway.is_open, backwave.current() is not None

    assert invoke(body) == (True, True)
    assert [gateway.is_open for gateway in seen] == [False]


def test_async_services_close_when_the_body_raises():
    seen: list[Gateway] = []

    async def body(gateway: Gateway = backwave.service(Gateway)) -> None:
        seen.append(gateway)
        raise KeyError("order")

    with pytest.raises(KeyError, match="order"):
        invoke(body)
    assert [gateway.is_open for gateway in seen] == [False]


def test_f106_context_variables_of_an_async_body_end_with_it():
    async def body() -> int:
        request_id.set(request_id.get() + 1)
        await asyncio.sleep(0)
        return request_id.get()

    with_fresh_context = [_in_a_fresh_context(lambda: invoke(body)) for _ in range(2)]
    assert with_fresh_context == [1, 1]


def _in_a_fresh_context(work: Callable[[], Any]) -> Any:
    return copy_context().run(work)


class Report:
    """A class with an async body and an async service."""

    def __init__(self, gateway: Gateway, number: int = 3) -> None:
        self.gateway, self.number = gateway, number

    async def run(self, month: str) -> object:
        """Return all it has."""
        await asyncio.sleep(0)
        return month, self.gateway.is_open, self.number


def test_an_async_class_is_made_from_async_services():
    assert invoke(Report, "2026-11") == ("2026-11", True, 3)


def test_a_registered_factory_makes_the_instances_of_an_async_class():
    async def make() -> Report:
        return Report(Gateway(), number=9)

    services.registry().register_factory(Report, make)
    assert invoke(Report, month="2026-11") == ("2026-11", True, 9)


def test_an_async_function_under_a_plain_decorator_is_awaited():
    def logged(
        function: Callable[..., Coroutine[Any, Any, int]],
    ) -> Callable[..., Coroutine[Any, Any, int]]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, int]:
            return function(*args, **kwargs)

        return inner

    @logged
    async def body(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    assert not inspect.iscoroutinefunction(body)
    assert invoke(body, 1) == 2


def test_marks_read_as_they_are_written():
    def body(
        ctx: backwave.JobContext = backwave.context(),
        number: int = backwave.service(),
    ) -> None:
        """Nothing."""

    shown = [repr(each.default) for each in inspect.signature(body).parameters.values()]
    assert shown == ["context()", "service()"]


def test_a_constructor_may_take_anything_more():
    class Lenient:
        """Its constructor is ready for whatever comes."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.given = args, kwargs

        def run(self) -> object:
            """Tell what came."""
            return self.given

    assert invoke(Lenient) == ((), {})
