"""A workflow from the outside: what has become of it, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from asgiref.sync import sync_to_async

from backwave_django.core.errors import InvalidOption, WorkflowGone
from backwave_django.core.workflows import RetryScope, status_of
from backwave_django.jobs import ports
from backwave_django.jobs.asking import asking
from backwave_django.jobs.handle import JobHandle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from backwave_django.core.contract import WorkflowAnswer
    from backwave_django.core.states import JobState
    from backwave_django.core.workflows import WorkflowStatus
    from backwave_django.jobs.ports import WorkflowRecord


class WorkflowHandle:
    """The id of a workflow with what was last read of it. Make one of any workflow's id."""

    __slots__ = ("_record", "id")

    def __init__(self, workflow_id: UUID | str) -> None:
        self.id = workflow_id if isinstance(workflow_id, UUID) else UUID(workflow_id)
        self._record: WorkflowRecord | None = None

    def __repr__(self) -> str:
        return f"<WorkflowHandle {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkflowHandle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def refresh(self) -> Self:
        """Read the workflow anew and return this handle. Raises ``WorkflowGone``."""
        self._record = ports.wired().flows.read(self.id)
        if self._record is None:
            raise WorkflowGone(self.id)
        return self

    async def arefresh(self) -> Self:
        """``refresh`` for async code."""
        return await sync_to_async(self.refresh)()

    @property
    def record(self) -> WorkflowRecord:
        """All that was last read; read now if nothing was. Raises ``WorkflowGone``."""
        if self._record is None:
            self.refresh()
        assert self._record is not None
        return self._record

    @property
    def name(self) -> str:
        """The name. Raises ``WorkflowGone``."""
        return self.record.name

    @property
    def counts(self) -> Mapping[JobState, int]:
        """How many jobs are in each state, as last read; states without any are left out."""
        return self.record.counts

    @property
    def status(self) -> WorkflowStatus:
        """What the states of the jobs add up to, as last read. Raises ``WorkflowGone``."""
        found = status_of(self.record.counts)
        assert found is not None, "a workflow goes with its last job"
        return found

    @property
    def steps(self) -> Mapping[str, JobHandle]:
        """The jobs of the steps that have a name."""
        return {name: JobHandle(job_id) for name, job_id in self.record.steps.items()}

    def cancel(self, *, actor: str, reason: str = "") -> WorkflowAnswer:
        """Cancel every job that waits, and ask those that run to stop.

        ``actor`` is who asks: a name for the audit trail. The answer says what came of it.
        """
        return ports.wired().flows.cancel(self.id, actor=asking(actor, reason))

    def retry(
        self, scope: RetryScope | str = RetryScope.FAILED, *, actor: str, reason: str = ""
    ) -> WorkflowAnswer:
        """Bring the failed jobs back, with those that were cancelled because of them.

        ``failed_and_below`` also runs again what ran after them, successes included.
        """
        if scope not in tuple(RetryScope):
            raise InvalidOption("scope", scope, "write 'failed' or 'failed_and_below'")
        flows, who = ports.wired().flows, asking(actor, reason)
        return flows.retry(self.id, scope=RetryScope(scope), actor=who)

    def restart(self, *, actor: str, reason: str = "") -> WorkflowAnswer:
        """Insert a workflow that is over once more, whole, under new ids.

        ``restarted_as`` of the answer is the new one's id.
        """
        return ports.wired().flows.restart(self.id, actor=asking(actor, reason))
