"""``backwave.chain`` and ``backwave.parallel``: workflows of a common shape in one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from asgiref.sync import sync_to_async

from backwave_django.core.errors import InvalidOption
from backwave_django.jobs.flow import Workflow
from backwave_django.jobs.signatures import Signature

if TYPE_CHECKING:
    from backwave_django.jobs.handle import JobHandle
    from backwave_django.jobs.workflow_handle import WorkflowHandle

    Part: TypeAlias = "Signature | Graph"

_HINT: Final = "write calls, chains and groups: chain(fetch.s(1), parse.s())"


class Graph:
    """Calls that run one after the other, or side by side. It may be part of another one.

    It does not change, and may be enqueued any number of times.
    """

    def __init__(self, parts: tuple[Part, ...], *, side_by_side: bool) -> None:
        self._parts = parts
        self._side_by_side = side_by_side

    def __repr__(self) -> str:
        kind = "parallel" if self._side_by_side else "chain"
        return f"{kind}({', '.join(map(repr, self._parts))})"

    def then(self, *parts: Part) -> Graph:
        """Return this, followed by ``parts`` one after the other, each after all before it."""
        return Graph((self, *_checked(parts)), side_by_side=False)

    def place(self, flow: Workflow, after: tuple[JobHandle, ...] = ()) -> tuple[JobHandle, ...]:
        """Add the calls to ``flow``; return the handles that whatever comes next waits for."""
        if not self._side_by_side:
            for part in self._parts:
                after = _placed(part, flow, after)
            return after
        ends = [end for part in self._parts for end in _placed(part, flow, after)]
        return tuple(dict.fromkeys(ends)) or after

    def enqueue(self, *, name: str | None = None) -> WorkflowHandle:
        """Insert all of it, or nothing, in the transaction that is open on the jobs' database.

        ``name`` is for people; without one the workflow is named after what it begins with. Of
        a graph without any call nothing is inserted.
        """
        with Workflow(name or self._name()) as flow:
            self.place(flow)
        return flow.handle

    async def aenqueue(self, *, name: str | None = None) -> WorkflowHandle:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue)(name=name)

    def _name(self) -> str:
        """The first call's wire name, and how many calls follow."""
        first, *others = self.calls() or (None,)
        if first is None:
            return "nothing"
        return f"{first.wire_name} + {len(others)}" if others else first.wire_name

    def calls(self) -> tuple[Signature, ...]:
        """Return every call, in the order in which they are inserted."""
        return tuple(
            call
            for part in self._parts
            for call in (part.calls() if isinstance(part, Graph) else (part,))
        )


def chain(*parts: Part | Iterable[Part]) -> Graph:
    """Return calls that run one after the other, each once the one before it succeeded.

    ``chain(fetch.s(1), parse.s(), store.s()).enqueue()``. Outputs are not handed on as arguments:
    a body reads them, ``ctx.output_of(fetch)``. Raises ``InvalidOption``.
    """
    return Graph(_checked(parts), side_by_side=False)


def parallel(*parts: Part | Iterable[Part]) -> Graph:
    """Return calls that run side by side; ``then`` adds what waits for all of them.

    ``parallel(resize.s(i) for i in ids).then(publish.s()).enqueue()``. Raises ``InvalidOption``.
    """
    return Graph(_checked(parts), side_by_side=True)


def _placed(part: Part, flow: Workflow, after: tuple[JobHandle, ...]) -> tuple[JobHandle, ...]:
    if isinstance(part, Graph):
        return part.place(flow, after)
    return (flow.add(part, after=after),)


def _checked(parts: Iterable[Any]) -> tuple[Part, ...]:
    found: list[Part] = []
    for part in parts:
        if isinstance(part, Signature | Graph):
            found.append(part)
        elif isinstance(part, Iterable) and not isinstance(part, str | bytes):
            found.extend(_checked(part))
        else:
            raise InvalidOption("part", part, _HINT)
    return tuple(found)
