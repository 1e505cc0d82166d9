"""What a pump says when it renews its leases, and what it hears back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID


class LeaseHealth(StrEnum):
    """The fate of one lease in a heartbeat."""

    RENEWED = "renewed"
    LOST = "lost"
    #: Another transaction holds the row: the lease is kept and asked about again.
    BUSY = "busy"


class Renewal(NamedTuple):
    """The answer for one listed lease."""

    lease_id: UUID
    health: LeaseHealth
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpInfo:
    """One pump as the registry knows it from its start.

    ``boot_id`` and ``pid_namespace`` say where ``pid`` means anything, so that a starting node
    can tell which pumps of its own host are dead. ``wire_names`` pairs every wire name the pump
    can run (aliases too) with the newest payload version it understands.
    """

    id: UUID
    group: str
    node: str
    hostname: str
    pid: int
    boot_id: str
    pid_namespace: str
    version: str
    queues: tuple[str, ...]
    pool_size: int
    lease_duration: timedelta
    wire_names: tuple[tuple[str, int], ...]
    started_at: datetime


class PumpHealth(StrEnum):
    """What a pump says of itself."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DRAINING = "draining"
    HALTED = "halted"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PumpStatus:
    """What changes about a pump, carried by each heartbeat."""

    health: PumpHealth = PumpHealth.HEALTHY
    executing: int = 0
    abandoned: int = 0
    succeeded: int = 0
    failed: int = 0
    memory_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a running body says it is."""

    lease_id: UUID
    done: int
    total: int | None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One heartbeat: the leases to renew and the news that rides along."""

    pump_id: UUID
    leases: tuple[UUID, ...]
    lease_duration: timedelta
    status: PumpStatus = field(default_factory=PumpStatus)
    progress: tuple[Progress, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatAnswer:
    """What became of each listed lease, in order of the request.

    ``unlisted`` are leases that the database says this pump owns, and that it did not list.
    ``registered`` is false when the pump's registry row is gone and must be written anew.
    """

    renewals: tuple[Renewal, ...]
    unlisted: tuple[UUID, ...]
    drain_requested: bool
    registered: bool
    clock: datetime
