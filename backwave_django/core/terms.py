"""The terms of the storage contract: what its verbs take, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from backwave_django.core.observing import NOBODY
from backwave_django.core.retention import Retention
from backwave_django.core.retries import RetryTable

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import LeasedJob
    from backwave_django.core.observing import Observers
    from backwave_django.core.outcomes import Reported
    from backwave_django.core.states import JobState


class History(StrEnum):
    """How much of each attempt is kept."""

    OFF = "off"
    OUTCOMES = "outcomes"
    DETAIL = "detail"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The numbers a store needs from the settings."""

    unroutable_grace: timedelta = timedelta(minutes=5)
    retention: Retention = field(default_factory=Retention)
    history: History = History.DETAIL
    observers: Observers = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """Lease at most ``limit`` due jobs of ``queues``, in that order, for ``pump_id``.

    ``hinted`` names (queue, priority) lanes that a wake-up hint spoke of; ``key_cursor`` is where
    the rotation over limit keys goes on. Both only steer where a store looks first.
    """

    pump_id: UUID
    queues: tuple[str, ...]
    limit: int
    lease_duration: timedelta
    retries: RetryTable = field(default_factory=RetryTable)
    hinted: tuple[tuple[str, int], ...] = ()
    key_cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimAnswer:
    """The leased jobs in claim order.

    ``short`` says that the store looked everywhere and found less than it was asked for.
    ``next_due`` is advice: the earliest of ``now`` when due work was withheld (a cap, a lock, the
    batch size, an unsettled deadline); the instant of the next token where a rate withholds it;
    the opening of a closed queue in which jobs are scheduled; future due times in served, unpaused
    queues; ``None`` when there is nothing to wait for.
    """

    jobs: tuple[LeasedJob, ...]
    short: bool
    next_due: datetime | None
    clock: datetime
    key_cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAnswer:
    """One row per reported outcome, in order."""

    rows: tuple[Reported, ...]
    clock: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAnswer:
    """How many rows a maintenance command handled; ``full`` asks for another turn."""

    count: int
    full: bool
    clock: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asked for an operator action, and from where.

    ``source`` is ``admin``, ``command``, ``api`` or ``code``; ``user_id`` is the primary key of
    a user as text, when there is one.
    """

    name: str
    source: str = "code"
    user_id: str | None = None
    reason: str = ""


class ActionResult(StrEnum):
    """What came of an operator action on one job."""

    DONE = "done"
    #: The job runs: its body was asked to stop and decides itself when it does.
    REQUESTED = "requested"
    #: The job is in a state that the action does not apply to.
    REFUSED = "refused"
    #: A live job holds the same unique key.
    CONFLICT = "conflict"
    #: The job is not in the database.
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionAnswer:
    """The result for one job, with the state it is in now and a sentence for a person."""

    job_id: UUID
    result: ActionResult
    state: JobState | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAnswer:
    """The result of an operator action on one schedule, with a sentence for a person."""

    name: str
    result: ActionResult
    detail: str = ""
    job_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAnswer:
    """The result of an operator action on one workflow, with a sentence for a person.

    ``jobs`` are those that it moved; ``restarted_as`` is the workflow that a restart made.
    """

    workflow_id: UUID
    result: ActionResult
    detail: str = ""
    jobs: tuple[UUID, ...] = ()
    restarted_as: UUID | None = None
