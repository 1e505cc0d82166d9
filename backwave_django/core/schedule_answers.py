"""What a store answers about schedules: those it read, what was minted, what was declared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.schedules import LoadedSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulesAnswer:
    """Some of the enabled schedules, by name; ``full`` says that more of them follow."""

    schedules: tuple[LoadedSchedule, ...]
    full: bool
    clock: datetime


class MintResult(StrEnum):
    """What the store did with one decision about a schedule."""

    MINTED = "minted"
    #: The tick was skipped, because an earlier job of the schedule is not over.
    OVERLAPPED = "overlapped"
    #: There was nothing to mint; the rest of the decision was applied.
    NOTED = "noted"
    #: The row is not as it was seen, or another transaction holds it: nothing was applied.
    STALE = "stale"


class MintRow(NamedTuple):
    """The answer for one decision. ``job_id`` is the job of a tick that was minted."""

    name: str
    result: MintResult
    job_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MintAnswer:
    """One row per decision, in order."""

    rows: tuple[MintRow, ...]
    clock: datetime


class DeclareMode(StrEnum):
    """How far a declaration of schedules goes: each mode does what those before it do."""

    CREATE = "create"
    UPDATE = "update"
    #: Whatever the owner does not declare any more is retired.
    SYNC = "sync"


class DeclareResult(StrEnum):
    """What came of one declared schedule."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    UPDATED = "updated"
    #: The row differs from the declaration, and the mode leaves it so.
    DRIFTED = "drifted"
    RETIRED = "retired"
    #: It belongs to somebody else, or a newer release has written it.
    REFUSED = "refused"


class DeclareRow(NamedTuple):
    """The answer for one schedule; ``detail`` names what differs, or why it is refused."""

    name: str
    result: DeclareResult
    detail: str = ""
