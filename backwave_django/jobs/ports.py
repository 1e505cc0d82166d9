"""What jobs ask of the rooms above them, as interfaces that the app's configuration wires.

So decorating and enqueueing import neither models nor store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from django.core.exceptions import AppRegistryNotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import ActionAnswer, Actor, WorkflowAnswer
    from backwave_django.core.jobs import Enqueued, NewJob
    from backwave_django.core.limits import Cap
    from backwave_django.core.states import Cause, JobState
    from backwave_django.core.workflows import NewWorkflow, RetryScope


class Intake(Protocol):
    """Where new jobs go."""

    def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Insert ``jobs`` on the jobs' database, in the transaction that is open there."""
        ...

    def start_workflow(self, workflow: NewWorkflow, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Insert a workflow with its jobs, in the same transaction."""
        ...

    def declare_limits(self, limits: Mapping[str, Cap]) -> None:
        """Note the declared numbers of limit keys before jobs under them are inserted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job as it is stored. ``payload`` is left out: it may hold what nobody should see."""

    id: UUID
    wire_name: str
    queue: str
    state: JobState
    cause: Cause | None
    priority: int
    run: int
    spent: int
    due_at: datetime
    deadline: datetime | None
    created_at: datetime
    terminal_at: datetime | None
    tags: dict[str, object] = field(default_factory=dict)
    output: str | None = field(default=None, repr=False)


class Reason(NamedTuple):
    """One thing to know about a job: a stable ``code``, and a sentence for people.

    ``blocks`` says that it keeps the job from running.
    """

    code: str
    text: str
    blocks: bool = True


class Desk(Protocol):
    """Where one job is looked up and acted upon."""

    def read(self, job_id: UUID) -> JobRecord | None:
        """Return the job as it stands, or ``None`` when there is none."""
        ...

    def explain(self, job_id: UUID) -> tuple[Reason, ...]:
        """Return why the job stands where it stands; nothing when there is no such job."""
        ...

    def cancel(self, job_id: UUID, *, actor: Actor) -> ActionAnswer:
        """Cancel the job, or ask its body to stop. Audited."""
        ...


class Kin(Protocol):
    """Where a body looks up the jobs that its own waited for."""

    def parents(self, job_id: UUID) -> tuple[JobRecord, ...]:
        """Return the jobs that this one waited for, in the order in which it named them."""
        ...

    def ancestor(self, job_id: UUID, wanted: UUID) -> JobRecord | None:
        """Return the job ``wanted``, if this one waited for it, directly or through others."""
        ...

    def ancestors_of(self, job_id: UUID, wire_names: Sequence[str]) -> tuple[JobRecord, ...]:
        """Return the ancestors of a type; at most two, for who wants the only one."""
        ...

    def step(self, workflow_id: UUID, name: str) -> UUID | None:
        """Return the job of a named step of a workflow."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRecord:
    """One workflow as it stands: how many members are in each state, and its named steps."""

    id: UUID
    name: str
    created_at: datetime
    counts: Mapping[JobState, int]
    steps: Mapping[str, UUID]


class Flows(Protocol):
    """Where one workflow is looked up and acted upon. Actions are audited."""

    def read(self, workflow_id: UUID) -> WorkflowRecord | None:
        """Return the workflow as it stands, or ``None`` when there is none."""
        ...

    def cancel(self, workflow_id: UUID, *, actor: Actor) -> WorkflowAnswer:
        """Cancel what is left of it."""
        ...

    def retry(self, workflow_id: UUID, *, scope: RetryScope, actor: Actor) -> WorkflowAnswer:
        """Bring failed members back in place."""
        ...

    def restart(self, workflow_id: UUID, *, actor: Actor) -> WorkflowAnswer:
        """Insert it all once more, under new ids."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """One complete wiring. ``now`` is the clock that ``delay`` and ``deadline`` count from."""

    intake: Intake
    desk: Desk
    kin: Kin
    flows: Flows
    now: Callable[[], datetime]


class _Socket:
    """Holds the wiring of this process."""

    def __init__(self) -> None:
        self.ports: Ports | None = None


_socket: Final = _Socket()


def wire(ports: Ports | None) -> Ports | None:
    """Put ``ports`` in place and return what was there, for who wants to put it back."""
    previous, _socket.ports = _socket.ports, ports
    return previous


def wired() -> Ports:
    """Return the wiring. Raises ``AppRegistryNotReady`` before ``django.setup()`` is through."""
    ports = _socket.ports
    if ports is None:
        raise AppRegistryNotReady(
            "jobs can be enqueued once django.setup() has run with 'backwave_django' in "
            "INSTALLED_APPS; at import time, declare them only"
        )
    return ports
