"""What a driver wants done. Imperative: the pump obeys, in order.

Store commands are answered by one event each, ``StoreFaulted`` included; while one is in flight
the driver issues no other. If one faults, the store commands after it in the same tuple are not
tried, and one ``StoreFaulted`` names them all: after a fault leases are renewed first. The rest
are local and have no answer of their own. After ``Exit`` or ``Halt`` nothing more is executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from uuid import UUID

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.core.outcomes import Outcome
    from backwave_django.core.schedules import Decision


class CancelReason(StrEnum):
    """Why a running body is asked to stop."""

    OPERATOR = "operator"
    DRAIN = "drain"
    TIMEOUT = "timeout"
    LEASE_LOST = "lease_lost"
    HALT = "halt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Lease due jobs. Answered by ``Claimed``."""

    request: ClaimRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Apply outcomes under their fences. Answered by ``ReportReturned``.

    When a ``Claim`` follows in the same tuple the shell may merge the two.
    """

    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Hand leases back, unspent, while their bodies still run. Answered by ``ReportReturned``."""

    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Renew these leases. Answered by ``HeartbeatReturned``. The shell adds status and progress."""

    leases: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    """Release what this pump owns in the database and does not hold. Answered by ``Recovered``."""

    held: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispose:
    """End the leases of dead pumps. Answered by ``Disposed``."""

    pumps: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireLeases:
    """Sweep lapsed leases. Answered by ``Expired``."""

    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """Sweep the settle queue and passed deadlines. Answered by ``Settled``."""

    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Delete what is past its retention. Answered by ``Purged``."""

    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSchedules:
    """Read the enabled schedules whose names follow ``after``. Answered by ``SchedulesLoaded``."""

    limit: int
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mint:
    """Apply what was decided about schedules. Answered by ``Minted``."""

    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """Give each job to a free worker. Each is answered by one ``Attempt...`` event."""

    jobs: tuple[LeasedJob, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalStopping:
    """Let every running body see that the pump drains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalCancel:
    """Ask a running body to stop, and let it see why."""

    lease_id: UUID
    reason: CancelReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """The lease of a running body is lost: what it still does counts for nothing."""

    lease_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceSlot:
    """A body ignores its time-out: give its slot to a new worker."""

    lease_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Stop this pump, loudly. Nothing follows."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """Stop this pump: it drained. Nothing follows.

    ``abandoned`` counts bodies that still run, ``unrecorded`` outcomes that no store took.
    """

    abandoned: int
    unrecorded: int


StoreCommand: TypeAlias = (
    Claim
    | Report
    | Release
    | Heartbeat
    | Recover
    | Dispose
    | ExpireLeases
    | Settle
    | Purge
    | LoadSchedules
    | Mint
)
LocalCommand: TypeAlias = (
    Execute | SignalStopping | SignalCancel | Abandon | ReplaceSlot | Halt | Exit
)
Command: TypeAlias = StoreCommand | LocalCommand
