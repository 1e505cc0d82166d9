"""What a driver is told. Past tense: each of these has happened.

The instant of an event comes with ``step``, not with the event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.core.commands import Command
    from backwave_django.core.contract import ClaimAnswer, ReportAnswer, SweepAnswer
    from backwave_django.core.leases import BeatAnswer
    from backwave_django.core.outcomes import Failure, Unroutable
    from backwave_django.core.schedule_answers import MintAnswer, SchedulesAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """Time has passed; ``Driver.wake_at`` was reached, or nearly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEmpty:
    """Nothing else waits to be told, and no round trip is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueHinted:
    """Something may be due in ``queue`` at ``priority``. Only a hint: it may be wrong."""

    queue: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelHinted:
    """A cancellation may have been requested for a job that this pump runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The store answered a claim."""

    answer: ClaimAnswer


class AttemptSucceeded(NamedTuple):
    """The body returned. ``output`` and ``tags`` are JSON texts."""

    lease_id: UUID
    started_at: datetime
    finished_at: datetime
    output: str | None = None
    tags: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    """The body raised. ``retry_after`` replaces the policy's wait; ``gave_up`` ends all tries."""

    lease_id: UUID
    started_at: datetime
    finished_at: datetime
    failure: Failure
    retry_after: timedelta | None = None
    gave_up: bool = False
    tags: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutputRefused:
    """The body returned something that cannot be kept: over the cap, or not a JSON value."""

    lease_id: UUID
    started_at: datetime
    finished_at: datetime
    failure: Failure
    tags: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCancelled:
    """The body raised ``Cancelled``. What that means depends on the signal it was given."""

    lease_id: UUID
    started_at: datetime
    finished_at: datetime
    tags: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSnoozed:
    """The body asked to be run again after ``delay``."""

    lease_id: UUID
    started_at: datetime
    finished_at: datetime
    delay: timedelta
    tags: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUnroutable:
    """No body was begun: this process does not know how."""

    lease_id: UUID
    started_at: datetime
    reason: Unroutable
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUndecodable:
    """No body was begun: the payload is no payload."""

    lease_id: UUID
    started_at: datetime
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReleased:
    """No body was begun: the worker saw the drain first; or an atomic body rolled back."""

    lease_id: UUID
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCommitted:
    """An atomic body returned, and its success was committed with what it wrote."""

    lease_id: UUID


@dataclass(frozen=True, slots=True)
class AttemptsEnded:
    """Several bodies have ended, in this order, before the driver was told of the first."""

    ends: tuple[AttemptEnded, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReturned:
    """The store answered a report or a release."""

    answer: ReportAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReturned:
    """The store answered a heartbeat."""

    answer: BeatAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """Leases whose claim was never answered are released."""

    answer: SweepAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposed:
    """The leases of dead pumps are ended."""

    answer: SweepAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """A sweep for lapsed leases was answered."""

    answer: SweepAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A sweep of the settle queue and of deadlines was answered."""

    answer: SweepAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """A purge was answered."""

    answer: SweepAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulesLoaded:
    """The store answered with schedules, some or all of them."""

    answer: SchedulesAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """The store answered a mint."""

    answer: MintAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFaulted:
    """``commands`` got no answer. ``fatal`` when time will not heal it."""

    commands: tuple[Command, ...]
    problem: str
    fatal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadPumpsFound:
    """The shell knows that these pumps are dead: their process is gone."""

    pumps: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequested:
    """Finish what runs, claim nothing more."""


#: Ends whose outcome is the driver's to report.
AttemptReported: TypeAlias = (
    AttemptSucceeded
    | AttemptFailed
    | AttemptOutputRefused
    | AttemptCancelled
    | AttemptSnoozed
    | AttemptUnroutable
    | AttemptUndecodable
    | AttemptReleased
)
AttemptEnded: TypeAlias = AttemptReported | AttemptCommitted

StoreAnswer: TypeAlias = (
    Claimed
    | ReportReturned
    | HeartbeatReturned
    | Recovered
    | Disposed
    | Expired
    | Settled
    | Purged
    | SchedulesLoaded
    | Minted
    | StoreFaulted
)

Event: TypeAlias = (
    AttemptEnded
    | AttemptsEnded
    | Ticked
    | InboxEmpty
    | DueHinted
    | CancelHinted
    | Claimed
    | ReportReturned
    | HeartbeatReturned
    | Recovered
    | Disposed
    | Expired
    | Settled
    | Purged
    | SchedulesLoaded
    | Minted
    | StoreFaulted
    | DeadPumpsFound
    | DrainRequested
)


def together(events: Iterable[Event]) -> list[Event]:
    """Return events in order, each run of attempts that ended as one event.

    What is to be done about ends depends on all of them, and to find it out once is enough.
    """
    told: list[Event] = []
    ends: list[AttemptEnded] = []
    for event in events:
        if isinstance(event, AttemptEnded):
            ends.append(event)
            continue
        if ends:
            told.append(AttemptsEnded(tuple(ends)))
            ends = []
        told.append(event)
    if ends:
        told.append(AttemptsEnded(tuple(ends)))
    return told
