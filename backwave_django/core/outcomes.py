"""How attempts end, and what the store answers when it is told.

``Outcome`` is what a pump reports; the state in it is the driver's verdict, which the store
changes in two cases only: a cancellation that was requested meanwhile, and a hand-back whose
grace is over.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from backwave_django.core.states import Cause, JobState

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class OutcomeKind(StrEnum):
    """What happened to an attempt, or to a job that ended without one."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    GAVE_UP = "gave_up"
    LAPSED = "lapsed"
    OUTPUT_REFUSED = "output_refused"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"
    RELEASED = "released"
    UNROUTABLE = "unroutable"
    UNDECODABLE = "undecodable"
    # Ends without a lease:
    EXPIRED = "expired"


#: Kinds that use up an attempt, whatever state follows.
SPENDING = frozenset(
    {
        OutcomeKind.FAILED,
        OutcomeKind.TIMED_OUT,
        OutcomeKind.GAVE_UP,
        OutcomeKind.LAPSED,
        OutcomeKind.OUTPUT_REFUSED,
    }
)

#: Kinds whose attempt never began a body.
BODILESS = frozenset({OutcomeKind.UNROUTABLE, OutcomeKind.UNDECODABLE, OutcomeKind.EXPIRED})


class Unroutable(StrEnum):
    """Why a worker could not begin a body."""

    UNKNOWN_TYPE = "unknown_type"
    NEWER_VERSION = "newer_version"
    ARGUMENTS = "arguments"


class Failure(NamedTuple):
    """Failure detail: what a person needs to find the cause. Cut and cleaned by its maker."""

    error_class: str
    message: str
    traceback: str = ""
    fingerprint: str = ""


class Outcome(NamedTuple):
    """The end of one attempt, under the lease it was produced under.

    ``state`` is ``SCHEDULED`` with ``due_at``, or terminal with ``cause``. ``tags`` is a JSON
    object to be merged into the job's; ``output`` is kept on success only. Its text leaves out
    what may hold secrets: the output, the failure's words and the log.
    """

    lease_id: UUID
    job_id: UUID
    kind: OutcomeKind
    state: JobState
    started_at: datetime
    finished_at: datetime
    cause: Cause | None = None
    due_at: datetime | None = None
    output: str | None = None
    tags: str | None = None
    failure: Failure | None = None
    unroutable: Unroutable | None = None
    log: str | None = None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(lease_id={self.lease_id!s}, job_id={self.job_id!s}, "
            f"kind={self.kind.value!r}, state={self.state.value!r})"
        )

    @property
    def spends(self) -> bool:
        """Whether this end uses up an attempt."""
        return self.kind in SPENDING


class Verdict(StrEnum):
    """What the store did with one reported outcome."""

    APPLIED = "applied"
    STALE = "stale"
    BUSY = "busy"


class Reported(NamedTuple):
    """The answer for one reported outcome. ``state`` is the state applied, if any was."""

    lease_id: UUID
    verdict: Verdict
    state: JobState | None = None
