"""``backwave.workflow``: a graph of jobs that is inserted whole, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, overload

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation

from backwave_django.core.bounds import MAX_STEP_CHARS, MAX_WORKFLOW_CHARS
from backwave_django.core.errors import InvalidOption, WorkflowClosed
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.workflows import NewWorkflow
from backwave_django.jobs import ports
from backwave_django.jobs.handle import JobHandle
from backwave_django.jobs.ids import new_id
from backwave_django.jobs.names import check_key
from backwave_django.jobs.options import checked_after
from backwave_django.jobs.signatures import Signature
from backwave_django.jobs.workflow_handle import WorkflowHandle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import TypeAlias
    from uuid import UUID

    from backwave_django.core.jobs import NewJob
    from backwave_django.core.limits import Cap

    After: TypeAlias = "JobHandle | UUID | Sequence[JobHandle | UUID]"

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_STEP_HINT = "write a job type, its options, or a call: flow.add(charge.s(42), after=ok)"


class Callee(Protocol[P, R_co]):
    """A job type, or one with options."""

    def s(self, *args: P.args, **kwargs: P.kwargs) -> Signature[R_co]:
        """Return a call, to be made later."""
        ...


class Workflow:
    """Collects steps inside a ``with`` block, and inserts them together when it ends.

    The insert is part of the transaction that is open on the jobs' database, if one is. When the
    block raises, nothing is inserted; nor is a workflow without steps, which is no error.
    ``async with`` works too.
    """

    def __init__(self, name: str) -> None:
        self.name = check_key("name", name, cap=MAX_WORKFLOW_CHARS)
        self.id = new_id()
        self._jobs: list[NewJob] = []
        self._handles: list[JobHandle] = []
        self._named: dict[str, JobHandle] = {}
        self._limits: dict[str, Cap] = {}
        self._open: bool | None = None

    def __repr__(self) -> str:
        return f"<workflow {self.name!r} {self.id}>"

    def __enter__(self) -> Self:
        if self._open is not None:
            raise WorkflowClosed(f"{self!r} was entered before; make another one")
        self._open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        if kind is None and self._jobs:
            self._insert()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await sync_to_async(self.__exit__)(kind, error, trace)

    @property
    def handle(self) -> WorkflowHandle:
        """What reads the workflow and acts on it once it is inserted."""
        return WorkflowHandle(self.id)

    @property
    def steps(self) -> Mapping[str, JobHandle]:
        """The steps that have a name."""
        return dict(self._named)

    @overload
    def add(
        self,
        step: Signature[R],
        /,
        *,
        after: After = (),
        after_mode: EdgeMode | str = EdgeMode.ON_SUCCESS,
        name: str | None = None,
    ) -> JobHandle[R]: ...
    @overload
    def add(self, step: Callee[P, R], /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]: ...
    @overload
    def add(
        self, step: Callee[..., R], /, *args: Any, after: After, **kwargs: Any
    ) -> JobHandle[R]: ...
    def add(self, step: Any, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Add one step and return its handle, which later steps name in ``after``.

        ``flow.add(charge, order_id, after=ok)``: a job type, or one with options, then the
        arguments of its body and ``after``. ``flow.add(charge.s(order_id), after=ok, name="pay")``:
        a call, then everything about the step; so arguments are typed beside ``after``, and the
        step can have a name for ``ctx.output_of("pay")``. ``after`` may name jobs outside of the
        workflow too. Raises what ``enqueue`` raises for the arguments, and ``InvalidOption``.
        """
        if not self._open:
            raise WorkflowClosed(f"{self!r} takes steps inside its `with` block only")
        if isinstance(step, Signature):
            return self._add(step, *args, **kwargs)
        if not callable(getattr(step, "s", None)):
            raise InvalidOption("step", step, _STEP_HINT)
        given = "after" in kwargs
        after = kwargs.pop("after", ())
        call = step.s(*args, **kwargs)
        if given and call.caller.takes("after"):
            raise InvalidOption(
                "after", after, f"the body of {call} has a parameter of this name; {_STEP_HINT}"
            )
        return self._add(call, after=after)

    def _add(
        self,
        call: Signature[R],
        *,
        after: object = (),
        after_mode: EdgeMode | str = EdgeMode.ON_SUCCESS,
        name: str | None = None,
    ) -> JobHandle[R]:
        mode = _mode(after_mode)
        if name is not None and check_key("name", name, cap=MAX_STEP_CHARS) in self._named:
            raise InvalidOption("name", name, "another step of this workflow has it")
        parents = tuple((parent, mode) for parent in checked_after(after))
        job = call.new_job()
        job = replace(job, workflow=self.id, parents=(*parents, *job.parents))
        if job.limit_key is not None and call.caller.limit is not None:
            self._limits[job.limit_key] = call.caller.limit.cap
        handle: JobHandle[R] = JobHandle(job.id)
        self._jobs.append(job)
        self._handles.append(handle)
        if name is not None:
            self._named[name] = handle
        return handle

    def _insert(self) -> None:
        intake = ports.wired().intake
        steps = {name: handle.id for name, handle in self._named.items()}
        try:
            if self._limits:
                intake.declare_limits(self._limits)
            answers = intake.start_workflow(
                NewWorkflow(id=self.id, name=self.name, steps=steps), self._jobs
            )
        except SynchronousOnlyOperation:
            raise SynchronousOnlyOperation(
                f"inserting {self!r} from async code would block the event loop; use "
                "`async with backwave.workflow(...)`, or await the aenqueue of a chain"
            ) from None
        for handle, answer in zip(self._handles, answers, strict=True):
            handle.answered_with(answer.id, state=answer.state, created=answer.created)


def workflow(name: str) -> Workflow:
    """Return a workflow to add steps to: ``with backwave.workflow("checkout") as flow: ...``.

    ``name`` is for people, 1 to 200 characters, and need not be unique. Raises ``InvalidOption``.
    """
    return Workflow(name)


def _mode(value: object) -> EdgeMode:
    if isinstance(value, str) and value in set(EdgeMode):
        return EdgeMode(value)
    choices = ", ".join(repr(mode.value) for mode in EdgeMode)
    raise InvalidOption("after_mode", value, f"write one of {choices}")
