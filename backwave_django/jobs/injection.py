"""Parameters of a body that the attempt fills in, not the caller."""

from __future__ import annotations

import inspect
import types
import typing
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from backwave_django.core.errors import InvalidDeclaration
from backwave_django.jobs.context import JobContext

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

Parameter = inspect.Parameter

_STARRED: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class _ContextDefault:
    """Stands as a default where the body wants its context."""

    def __repr__(self) -> str:
        return "context()"


class _ServiceDefault:
    """Stands as a default where the body wants a service, of ``kind`` or as annotated."""

    def __init__(self, kind: object) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return "service()"


def context() -> JobContext:
    """As the default of a parameter: the attempt's ``JobContext`` is passed there."""
    return cast("JobContext", _ContextDefault())


@overload
def service() -> Any: ...
@overload
def service(kind: type[T], /) -> T: ...
def service(kind: object = None, /) -> Any:
    """As the default of a parameter: a service of the attempt's container is passed there.

    Which one is said by the parameter's annotation, or by ``kind``.
    """
    return _ServiceDefault(kind)


class Injection:
    """How one parameter is filled from an attempt: by a service, or by the context itself."""

    def __init__(self, find_kind: Callable[[], Any] | None) -> None:
        # Annotations may name classes that are defined further down: looked up at first use.
        self._find_kind = find_kind
        self._kind: Any = None

    def fill(self, ctx: JobContext) -> Any:
        """Return the value for this attempt."""
        return ctx if self._find_kind is None else ctx.services.get(self.kind)

    async def afill(self, ctx: JobContext) -> Any:
        """``fill`` for async bodies: their factories may be async too."""
        return ctx if self._find_kind is None else await ctx.services.aget(self.kind)

    @property
    def kind(self) -> Any:
        """The type of the service; ``JobContext`` for the context. ``InvalidDeclaration``."""
        if self._find_kind is None:
            return JobContext
        if self._kind is None:
            self._kind = self._find_kind()
        return self._kind


def injection_of(
    parameter: Parameter, function: Callable[..., Any], *, label: str
) -> Injection | None:
    """Return how the attempt fills ``parameter``, or ``None`` when the caller passes it."""
    default = parameter.default
    if isinstance(default, _ContextDefault):
        return Injection(None)
    if not isinstance(default, _ServiceDefault):
        return None
    if default.kind is not None:
        kind = default.kind
        return Injection(lambda: kind)
    return Injection(lambda: _annotated_type(parameter, function, label=label))


def constructor_injections(cls: type[Any], *, label: str) -> dict[str, Injection]:
    """Return how the parameters of a job class's constructor are filled.

    Nobody passes them: those without a default are services by their annotation.
    """
    if cls.__init__ is object.__init__:
        return {}
    filled: dict[str, Injection] = {}
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        injection = injection_of(parameter, cls.__init__, label=label)
        if injection is None and wants_context(parameter):
            injection = Injection(None)
        if injection is None and parameter.default is Parameter.empty:
            injection = _by_annotation(parameter, cls.__init__, label=label)
        if injection is not None:
            filled[parameter.name] = injection
    return filled


def wants_context(parameter: Parameter) -> bool:
    """Tell whether ``parameter`` is annotated as a ``JobContext``."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == JobContext.__name__
    return annotation is JobContext


def not_injectable(label: str, parameter: str, problem: str) -> InvalidDeclaration:
    """Return the error for a parameter that no attempt can fill."""
    return InvalidDeclaration(f"parameter {parameter!r} of {label}: {problem}")


def _by_annotation(
    parameter: Parameter, function: Callable[..., Any], *, label: str
) -> Injection | None:
    if parameter.kind in _STARRED:
        return None
    return Injection(lambda: _annotated_type(parameter, function, label=label))


def _annotated_type(parameter: Parameter, function: Callable[..., Any], *, label: str) -> Any:
    annotation = parameter.annotation
    if annotation is Parameter.empty:
        raise not_injectable(label, parameter.name, "annotate it with the type of the service")
    # Only this annotation: another one may name what exists for the type checker alone.
    alone = types.SimpleNamespace(__annotations__={parameter.name: annotation})
    try:
        names = inspect.unwrap(function).__globals__
        return typing.get_type_hints(alone, globalns=names)[parameter.name]
    except NameError as error:
        raise not_injectable(
            label,
            parameter.name,
            f"{error}; import the type at run time, or write service(TheType) as its default",
        ) from None
