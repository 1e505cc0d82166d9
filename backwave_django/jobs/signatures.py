"""A call that is to be made later, or often: a job type with options and arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol

from backwave_django.core.errors import InvalidOption
from backwave_django.core.schedules import CatchUp, Rule, ScheduleSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import TypeVar

    from backwave_django.core.jobs import NewJob
    from backwave_django.jobs.handle import JobHandle
    from backwave_django.jobs.limits import Limit

    # A bare ``Signature`` is one of any output.
    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)


class Caller(Protocol):
    """A job type with options: what enqueues."""

    @property
    def label(self) -> str:
        """The dotted path of the code."""

    @property
    def wire_name(self) -> str:
        """The name that its jobs are stored under."""

    @property
    def job_type(self) -> object:
        """The job type itself."""

    @property
    def limit(self) -> Limit | None:
        """The limit that its jobs count against."""

    def takes(self, parameter: str) -> bool:
        """Tell whether the body has a parameter of this name."""

    def one_off_option(self) -> str | None:
        """Name an option that can hold for one job only, if one is given."""

    def new_job(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
        """Return the job of a call. Raises what ``enqueue`` raises before it writes."""

    def enqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Insert the job of a call."""


@dataclass(frozen=True, slots=True)
class Signature(Generic[R_co]):
    """One call: ``cleanup.s(30)``. It does not change, and may be enqueued any number of times."""

    caller: Caller
    args: tuple[Any, ...] = field(repr=False)
    kwargs: Mapping[str, Any] = field(repr=False)

    def enqueue(self) -> JobHandle[R_co]:
        """Make the call once; see ``BoundOptions.enqueue``."""
        return self.caller.enqueue(*self.args, **self.kwargs)

    def new_job(self) -> NewJob:
        """Return a job of the call, which is not stored. Raises what ``enqueue`` raises."""
        return self.caller.new_job(self.args, self.kwargs)

    @property
    def wire_name(self) -> str:
        """The wire name of the job type."""
        return self.caller.wire_name

    def check_schedulable(self) -> None:
        """Raise ``InvalidOption`` for an option that no job of a schedule can have."""
        option = self.caller.one_off_option()
        if option is not None:
            raise InvalidOption(
                "job", option, "a schedule's job can have queue, priority and tags of its own only"
            )

    def schedule_spec(
        self, name: str | None, *, rule: Rule, catch_up: CatchUp, no_overlap: bool
    ) -> ScheduleSpec:
        """Return the schedule of this call; its name is the wire name unless one is given.

        Raises what an enqueue would raise: for arguments that do not bind, or are no JSON.
        """
        job = self.caller.new_job(self.args, self.kwargs)
        return ScheduleSpec(
            name=job.wire_name if name is None else name,
            rule=rule,
            wire_name=job.wire_name,
            queue=job.queue,
            payload=job.payload,
            payload_version=job.payload_version,
            priority=job.priority,
            tags=job.tags,
            limit_key=job.limit_key,
            catch_up=catch_up,
            no_overlap=no_overlap,
        )
