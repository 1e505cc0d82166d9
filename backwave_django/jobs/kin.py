"""The jobs that a body may read: those that its own waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from backwave_django.core.errors import NotAnAncestor
from backwave_django.jobs import ports
from backwave_django.jobs.handle import JobHandle

if TYPE_CHECKING:
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.jobs.ports import JobRecord

R_co = TypeVar("R_co", covariant=True)

_HINT = "only a job that it waits for has surely ended: name it with after=..."


class OfType(Protocol[R_co]):
    """A job type, for who wants the one ancestor of it."""

    @property
    def wire_name(self) -> str:
        """The name that its jobs are stored under."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Names that jobs may still be stored under."""

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:
        """Run the body."""


class StoredKin:
    """The ancestors of a job that a pump runs. Every question is one round trip or two."""

    def __init__(self, job: LeasedJob) -> None:
        self._job = job

    def parents(self) -> tuple[JobHandle, ...]:
        """Return the direct parents, as read now."""
        found = ports.wired().kin.parents(self._job.job_id)
        return tuple(JobHandle(record.id).read_as(record) for record in found)

    def find(self, wanted: JobHandle | OfType[Any] | UUID | str) -> JobHandle:
        """Return an ancestor, as read now. Raises ``NotAnAncestor``."""
        record = self._find(wanted)
        return JobHandle(record.id).read_as(record)

    def _find(self, wanted: JobHandle | OfType[Any] | UUID | str) -> JobRecord:
        if isinstance(wanted, JobHandle):
            return self._by_id(wanted.id, f"job {wanted.id}")
        if isinstance(wanted, UUID):
            return self._by_id(wanted, f"job {wanted}")
        if isinstance(wanted, str):
            return self._by_name(wanted)
        return self._by_type((wanted.wire_name, *wanted.aliases))

    def _by_id(self, job_id: UUID, what: str) -> JobRecord:
        record = ports.wired().kin.ancestor(self._job.job_id, job_id)
        if record is None:
            raise NotAnAncestor(
                f"{what} is no ancestor of this {self._job.wire_name} job {self._job.job_id}; "
                f"{_HINT}"
            )
        return record

    def _by_name(self, name: str) -> JobRecord:
        if self._job.workflow is not None:
            step = ports.wired().kin.step(self._job.workflow, name)
            if step is not None:
                return self._by_id(step, f"step {name!r}, job {step},")
        return self._by_type((name,))

    def _by_type(self, wire_names: tuple[str, ...]) -> JobRecord:
        found = ports.wired().kin.ancestors_of(self._job.job_id, wire_names)
        if len(found) == 1:
            return found[0]
        if found:
            raise NotAnAncestor(
                f"more than one ancestor of this job is a {wire_names[0]}: name the step, or read "
                "ctx.parents"
            )
        raise NotAnAncestor(
            f"no ancestor of this {self._job.wire_name} job is a step or a job type "
            f"{wire_names[0]!r}; {_HINT}"
        )


class NoKin:
    """What a body that is called as plain Python may read: any job that it has the id of."""

    def __init__(self, job: LeasedJob) -> None:
        self._job = job

    def parents(self) -> tuple[JobHandle, ...]:
        """Return nothing: nobody waited."""
        return ()

    def find(self, wanted: JobHandle | OfType[Any] | UUID | str) -> JobHandle:
        """Return a job by its id, as read now. Raises ``JobGone`` and ``NotAnAncestor``."""
        if isinstance(wanted, JobHandle | UUID):
            job_id = wanted.id if isinstance(wanted, JobHandle) else wanted
            return JobHandle(job_id).refresh()
        raise NotAnAncestor(
            f"{self._job.wire_name} was called as plain Python and waited for nothing: give "
            "output_of the handle of a job"
        )
