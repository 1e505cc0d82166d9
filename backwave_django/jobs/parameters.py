"""The signature of a body, and what of it a caller passes."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from backwave_django.core.errors import WrongArguments
from backwave_django.jobs.injection import injection_of, not_injectable, wants_context

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from backwave_django.jobs.context import JobContext

Parameter = inspect.Parameter

_ORDERED: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMED: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Call(NamedTuple):
    """The arguments of one call, without what the attempt fills in."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Parameters:
    """Binds what callers pass, and fills in what they do not.

    Arguments are kept by name wherever they have one, so that a payload outlives a change of
    their order. Defaults are not kept: the body that runs later uses its own.
    """

    def __init__(self, function: Callable[..., Any], *, label: str, bound: bool = False) -> None:
        listed = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
        self.injected: Final = {
            parameter.name: injection
            for parameter in listed
            if (injection := injection_of(parameter, function, label=label)) is not None
        }
        _refuse_unfillable(listed, self.injected.keys(), label=label)
        passed = [parameter for parameter in listed if parameter.name not in self.injected]
        self.signature: Final = inspect.Signature(passed)
        #: What positional arguments are called, in order.
        self.ordered: Final = tuple(p.name for p in passed if p.kind in _ORDERED)
        self._allowed = frozenset(p.name for p in passed if p.kind in _NAMED)
        self._required = frozenset(
            p.name for p in passed if p.kind in _NAMED and p.default is Parameter.empty
        )
        self._plain = all(parameter.kind in _NAMED for parameter in passed)

    def bind(self, wire_name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Return the call, by names where there are any. Raises ``WrongArguments``."""
        if self._plain and len(args) <= len(self.ordered):
            by_name = {**dict(zip(self.ordered, args, strict=False)), **kwargs}
            # Nothing given twice, nothing unknown, nothing missing: the usual call ends here.
            if (
                len(by_name) == len(args) + len(kwargs)
                and by_name.keys() <= self._allowed
                and self._required <= by_name.keys()
            ):
                return Call((), by_name)
        return self._bind_slowly(wire_name, args, kwargs)

    def _bind_slowly(
        self, wire_name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Call:
        for name in self.injected.keys() & kwargs.keys():
            raise WrongArguments(
                wire_name, f"{name!r} is filled in when the job runs and cannot be passed"
            )
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise WrongArguments(wire_name, f"{error}; it takes {self.shown}") from None
        return self._by_name(bound)

    @property
    def shown(self) -> str:
        """The names that a caller passes, as in a signature: no annotations, no values."""
        bare = [
            p.replace(
                annotation=Parameter.empty,
                default=p.default if p.default is Parameter.empty else _GIVEN,
            )
            for p in self.signature.parameters.values()
        ]
        return str(inspect.Signature(bare))

    def _by_name(self, bound: inspect.BoundArguments) -> Call:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        kinds = {name: self.signature.parameters[name].kind for name in bound.arguments}
        overflows = Parameter.VAR_POSITIONAL in kinds.values()
        for name, value in bound.arguments.items():
            match kinds[name]:
                case Parameter.VAR_POSITIONAL:
                    positional.extend(value)
                case Parameter.VAR_KEYWORD:
                    named.update(value)
                case Parameter.POSITIONAL_ONLY:
                    positional.append(value)
                case Parameter.POSITIONAL_OR_KEYWORD if overflows:
                    positional.append(value)
                case _:
                    named[name] = value
        return Call(tuple(positional), named)

    def filled(self, kwargs: Mapping[str, Any], ctx: JobContext) -> dict[str, Any]:
        """Return ``kwargs`` with what the attempt fills in, unless it was passed."""
        if not self.injected:
            return dict(kwargs)
        missing = [(name, i) for name, i in self.injected.items() if name not in kwargs]
        return {**{name: injection.fill(ctx) for name, injection in missing}, **kwargs}

    async def afilled(self, kwargs: Mapping[str, Any], ctx: JobContext) -> dict[str, Any]:
        """``filled`` for async bodies."""
        missing = [(name, i) for name, i in self.injected.items() if name not in kwargs]
        return {**{name: await injection.afill(ctx) for name, injection in missing}, **kwargs}


class _Given:
    def __repr__(self) -> str:
        return "..."


_GIVEN: Final = _Given()


def _refuse_unfillable(listed: list[Parameter], injected: Collection[str], *, label: str) -> None:
    takes_more = any(p.kind is Parameter.VAR_POSITIONAL for p in listed)
    for parameter in listed:
        by_position = parameter.kind is Parameter.POSITIONAL_ONLY or (
            takes_more and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
        )
        if parameter.name not in injected and wants_context(parameter):
            hint = "write backwave.context() as its default"
            raise not_injectable(label, parameter.name, hint)
        if parameter.name in injected and by_position:
            raise not_injectable(label, parameter.name, "make it keyword-only, after '*'")
