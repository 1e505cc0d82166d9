"""A job type: what is registered under a wire name, and what the decorated name stands for."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, Unpack, cast

from backwave_django.core.errors import InvalidDeclaration, WrongArguments
from backwave_django.jobs.body import Body
from backwave_django.jobs.enqueue import BoundOptions
from backwave_django.jobs.local import local_attempt
from backwave_django.jobs.names import derived_wire_name
from backwave_django.jobs.options import NO_OPTIONS, OptionValues
from backwave_django.jobs.parameters import Call
from backwave_django.jobs.payload import decode_call
from backwave_django.jobs.tags import encode_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import timedelta

    from backwave_django.core.retries import Retry
    from backwave_django.jobs.body import Guard
    from backwave_django.jobs.context import JobContext
    from backwave_django.jobs.handle import JobHandle
    from backwave_django.jobs.limits import Limit
    from backwave_django.jobs.parameters import Parameters
    from backwave_django.jobs.signatures import Signature
    from backwave_django.jobs.tags import TagValue

P = ParamSpec("P")
R = TypeVar("R")

#: Where an upcaster finds positional arguments that have no name: those of ``*args``, and those
#: of a signature with ``/``.
UNNAMED: Final = "*"


class TimeoutMode(StrEnum):
    """What happens to a body when its time-out has passed, beside that its attempt has failed.

    ``signal``: it is asked to stop. ``raise``: it is asked, and ``JobTimedOut`` is raised in it.
    """

    SIGNAL = "signal"
    RAISE = "raise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Everything that a decorator says about a job type. The decorator checked it."""

    wire_name: str | None = None
    aliases: tuple[str, ...] = ()
    queue: str = "default"
    priority: int = 0
    retry: Retry | None = None
    timeout: timedelta | None = None
    limit: Limit | None = None
    tags: Mapping[str, TagValue] = field(default_factory=dict)
    version: int | None = None
    schedulable: bool = False
    timeout_mode: TimeoutMode = TimeoutMode.SIGNAL
    atomic: bool = False


class JobType(Generic[P, R]):
    """A body with its wire name and defaults.

    Calling it runs the body here and now, as plain Python. ``retry`` and ``timeout`` of ``None``
    leave the matter to the worker group. ``label`` is the dotted path of the code. Of those that
    are ``schedulable`` people may make schedules in the admin.
    """

    def __init__(self, code: Callable[P, R] | type[Any], declaration: Declaration) -> None:
        self._body = Body(code)
        if declaration.atomic and self._body.is_async:
            raise InvalidDeclaration(
                f"{self._body.label} is async, and atomic=True: a transaction of Django's belongs "
                "to a thread; write a plain def, and async_to_sync for what it awaits"
            )
        self._declared = declaration
        self._wire_name = declaration.wire_name
        self._upcasters: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self.version = 1 if declaration.version is None else declaration.version
        self.aliases: Final = declaration.aliases
        self.queue: Final = declaration.queue
        self.priority: Final = declaration.priority
        self.retry: Final = declaration.retry
        self.timeout: Final = declaration.timeout
        self.timeout_mode: Final = declaration.timeout_mode
        self.limit: Final = declaration.limit
        self.atomic: Final = declaration.atomic
        self.tags: Final = declaration.tags
        self.schedulable: Final = declaration.schedulable
        self.encoded_tags: Final = encode_tags(declaration.tags)
        self.label: Final = self._body.label
        self.is_async: Final = self._body.is_async
        self.cls: Final = self._body.cls
        self._plain: Final[BoundOptions[P, R]] = BoundOptions(self)
        # Tools that ask for the signature want the call's: of a class, that is not the
        # constructor's, which they would find through ``__wrapped__``.
        functools.update_wrapper(self, self._body.called, updated=())
        self.__name__, self.__qualname__ = code.__name__, code.__qualname__
        self.__doc__ = code.__doc__

    def __repr__(self) -> str:
        return f"<job type {self._wire_name or self.label}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body here and now, with a scope of its own; nothing is stored.

        ``context()`` and ``service()`` parameters may be passed, and are filled in otherwise. An
        async body gives a coroutine to await.
        """
        if self.is_async:
            return cast("R", self._acall(args, kwargs))
        with local_attempt(self._wire_name or self.label, queue=self.queue) as ctx:
            return cast("R", self._body.call(args, kwargs, ctx))

    async def _acall(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        with local_attempt(self._wire_name or self.label, queue=self.queue) as ctx:
            return await self._body.acall(args, kwargs, ctx)

    @property
    def is_named(self) -> bool:
        """Whether the wire name is known yet: given, or derived before."""
        return self._wire_name is not None

    @property
    def wire_name(self) -> str:
        """The identity in storage.

        Raises ``AppRegistryNotReady`` for a derived name while Django is starting, and
        ``InvalidDeclaration`` when none can be derived.
        """
        if self._wire_name is None:
            self._wire_name = derived_wire_name(self._body.code)
        return self._wire_name

    @property
    def parameters(self) -> Parameters:
        """What the body takes."""
        return self._body.parameters

    def options(self, **given: Unpack[OptionValues]) -> BoundOptions[P, R]:
        """Return what enqueues with these options. Raises ``InvalidOption``."""
        return BoundOptions(self, NO_OPTIONS.with_(given))

    def s(self, *args: P.args, **kwargs: P.kwargs) -> Signature[R]:
        """Return the call, to be made later; see ``BoundOptions.s``."""
        return self._plain.s(*args, **kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Insert one job; see ``BoundOptions.enqueue``."""
        return self._plain.enqueue(*args, **kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """``enqueue`` for async code."""
        return await self._plain.aenqueue(*args, **kwargs)

    def enqueue_many(
        self, calls: Iterable[tuple[Any, ...] | list[Any] | Mapping[str, Any]]
    ) -> list[JobHandle[R]]:
        """Insert one job per call; see ``BoundOptions.enqueue_many``."""
        return self._plain.enqueue_many(calls)

    async def aenqueue_many(
        self, calls: Iterable[tuple[Any, ...] | list[Any] | Mapping[str, Any]]
    ) -> list[JobHandle[R]]:
        """``enqueue_many`` for async code."""
        return await self._plain.aenqueue_many(calls)

    def on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Insert one job at the commit; see ``BoundOptions.on_commit``."""
        return self._plain.on_commit(*args, **kwargs)

    def upcast(
        self, *, from_version: int
    ) -> Callable[
        [Callable[[dict[str, Any]], dict[str, Any]]], Callable[[dict[str, Any]], dict[str, Any]]
    ]:
        """Declare how arguments stored under ``from_version`` become those of the next version.

        The decorated function gets the arguments by name, decoded, and returns them brought
        forward. New payloads are stored under the version after the newest upcaster.
        """
        self._check_upcast(from_version)

        def declare(
            upcaster: Callable[[dict[str, Any]], dict[str, Any]],
        ) -> Callable[[dict[str, Any]], dict[str, Any]]:
            self._upcasters[from_version] = upcaster
            self.version = max(self.version, from_version + 1)
            return upcaster

        return declare

    def _check_upcast(self, from_version: object) -> None:
        if type(from_version) is not int or from_version < 1:
            raise InvalidDeclaration(
                f"{self.label}: from_version={from_version!r}; write a whole number of 1 or more"
            )
        if from_version in self._upcasters:
            raise InvalidDeclaration(f"{self.label}: two upcasters from version {from_version}")
        declared = self._declared.version
        if declared is not None and from_version >= declared:
            raise InvalidDeclaration(
                f"{self.label}: an upcaster from version {from_version} makes version "
                f"{from_version + 1}, but version={declared} is declared; raise it"
            )

    def decode(self, payload: str, version: int) -> Call:
        """Return the arguments that were stored as ``payload`` under ``version``.

        Raises ``UndecodablePayload`` when it is none, ``WrongArguments`` when the arguments,
        brought forward, do not bind to the body's signature.
        """
        args, kwargs = decode_call(payload)
        if version < self.version and self._upcasters:
            args, kwargs = self._brought_forward(args, kwargs, version)
        return self._body.parameters.bind(self.wire_name, args, kwargs)

    def _brought_forward(
        self, args: tuple[object, ...], kwargs: dict[str, object], version: int
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values: dict[str, Any] = {UNNAMED: list(args), **kwargs} if args else kwargs
        for step in range(version, self.version):
            upcaster = self._upcasters.get(step)
            if upcaster is not None:
                values = self._upcast(upcaster, values, step)
        return tuple(values.pop(UNNAMED, ())), values

    def _upcast(
        self,
        upcaster: Callable[[dict[str, Any]], dict[str, Any]],
        values: dict[str, Any],
        step: int,
    ) -> dict[str, Any]:
        try:
            return dict(upcaster(values))
        except Exception as error:
            raise WrongArguments(
                self.wire_name,
                f"the upcaster from version {step} raised {type(error).__name__}: {error}",
            ) from error

    def invoke(self, call: Call, ctx: JobContext, guard: Guard | None = None) -> object:
        """Run the body to its end on this thread; what it returns or raises comes out.

        The container of ``ctx`` stays open, except that of an async body. ``guard`` stands around
        the author's code alone: not around what fills its parameters or closes its services.
        """
        return self._body.run(call.args, call.kwargs, ctx, guard)
