"""The code of a job type: a function, an async function, or a class with ``run``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from asgiref.sync import async_to_sync

from backwave_django.core.errors import InvalidDeclaration
from backwave_django.jobs import services
from backwave_django.jobs.context import current_context
from backwave_django.jobs.injection import constructor_injections
from backwave_django.jobs.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from backwave_django.jobs.context import JobContext

T = TypeVar("T")


class Guard(Protocol):
    """Stands around the author's code, and around nothing else, while it runs."""

    def run(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns, on this thread."""
        ...

    async def arun(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what awaiting the answer of ``call`` gives, in this task."""
        ...


class Body:
    """One body: how it is called, and with what. Raises ``InvalidDeclaration`` if it is none."""

    def __init__(self, code: Any) -> None:
        called = _called(code)
        self.code: Final = code
        self.called: Final = called
        self.cls: Final[type[Any] | None] = code if inspect.isclass(code) else None
        self.label: Final = f"{code.__module__}.{code.__qualname__}"
        self.is_async: Final = inspect.iscoroutinefunction(called)
        self.parameters: Final = Parameters(called, label=self.label, bound=self.cls is not None)
        self._constructor: Final = (
            {} if self.cls is None else constructor_injections(self.cls, label=self.label)
        )

    def call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        ctx: JobContext,
        guard: Guard | None = None,
    ) -> Any:
        """Call the body as it is written, with ``current()`` answering ``ctx`` inside."""
        token = current_context.set(ctx)
        try:
            called = self._callable(ctx)
            filled = self.parameters.filled(kwargs, ctx)
            if guard is None:
                return called(*args, **filled)
            return guard.run(lambda: called(*args, **filled))
        finally:
            current_context.reset(token)

    async def acall(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        ctx: JobContext,
        guard: Guard | None = None,
    ) -> Any:
        """``call`` for async bodies. Services are closed with it, in the loop that opened them."""
        token = current_context.set(ctx)
        try:
            called = await self._acallable(ctx)
            filled = await self.parameters.afilled(kwargs, ctx)
            if guard is None:
                return await called(*args, **filled)
            return await guard.arun(lambda: called(*args, **filled))
        finally:
            await ctx.close_services()
            current_context.reset(token)

    def run(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        ctx: JobContext,
        guard: Guard | None = None,
    ) -> Any:
        """Run the body to its end on this thread, async or not."""
        if self.is_async:
            return async_to_sync(self.acall)(args, kwargs, ctx, guard)
        result = self.call(args, kwargs, ctx, guard)
        if inspect.iscoroutine(result):
            # An async function under a decorator that is not.
            return async_to_sync(_awaited)(result, guard)
        return result

    def _callable(self, ctx: JobContext) -> Callable[..., Any]:
        if self.cls is None:
            return self._bare()
        if self.cls in services.registry():
            return self._run_of(ctx.services.get(self.cls))
        filled = {name: injection.fill(ctx) for name, injection in self._constructor.items()}
        return self._run_of(self.cls(**filled))

    async def _acallable(self, ctx: JobContext) -> Callable[..., Any]:
        if self.cls is None:
            return self._bare()
        if self.cls in services.registry():
            return self._run_of(await ctx.services.aget(self.cls))
        filled = {n: await injection.afill(ctx) for n, injection in self._constructor.items()}
        return self._run_of(self.cls(**filled))

    def _bare(self) -> Callable[..., Any]:
        function: Callable[..., Any] = self.code
        return function

    @staticmethod
    def _run_of(instance: Any) -> Callable[..., Any]:
        method: Callable[..., Any] = instance.run
        return method


async def _awaited(coroutine: Any, guard: Guard | None) -> Any:
    try:
        return await coroutine if guard is None else await guard.arun(lambda: coroutine)
    finally:
        coroutine.close()  # which a guard may have kept from being begun


def _called(code: Any) -> Callable[..., Any]:
    """The function that runs in the end."""
    if inspect.isclass(code):
        called = inspect.getattr_static(code, "run", None)
        if not inspect.isfunction(called):
            raise InvalidDeclaration(f"{code.__qualname__}: a job class needs a method run(self)")
    elif inspect.isfunction(code):
        called = code
        _refuse_method(code)
    else:
        raise InvalidDeclaration(
            f"{code!r} is no job type: decorate a function, an async function, or a class with run"
        )
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise InvalidDeclaration(
            f"{called.__qualname__} is a generator: calling it would run nothing; "
            "loop in the body, and return a value"
        )
    return called


def _refuse_method(function: Callable[..., Any]) -> None:
    place = function.__qualname__.rpartition(".")[0]
    if place and not place.endswith("<locals>") and _first_of(function) == "self":
        raise InvalidDeclaration(
            f"{function.__qualname__} is a method, and nobody would pass its self: "
            "decorate a class with run, or a function"
        )


def _first_of(function: Callable[..., Any]) -> str:
    return next(iter(inspect.signature(function).parameters), "")
