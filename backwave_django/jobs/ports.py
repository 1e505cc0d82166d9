"""What jobs ask of the rooms above them, as interfaces that the app's configuration wires.

So decorating and enqueueing import neither models nor store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from django.core.exceptions import AppRegistryNotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import ActionAnswer, Actor
    from backwave_django.core.jobs import Enqueued, NewJob
    from backwave_django.core.states import Cause, JobState


class Intake(Protocol):
    """Where new jobs go."""

    def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
        """Insert ``jobs`` on the jobs' database, in the transaction that is open there."""
        ...

    def declare_limits(self, limits: Mapping[str, int]) -> None:
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


class Desk(Protocol):
    """Where one job is looked up and acted upon."""

    def read(self, job_id: UUID) -> JobRecord | None:
        """Return the job as it stands, or ``None`` when there is none."""
        ...

    def cancel(self, job_id: UUID, *, actor: Actor) -> ActionAnswer:
        """Cancel the job, or ask its body to stop. Audited."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """One complete wiring. ``now`` is the clock that ``delay`` and ``deadline`` count from."""

    intake: Intake
    desk: Desk
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
