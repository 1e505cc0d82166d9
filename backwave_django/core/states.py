"""The states of a job, what may follow what, and why a job ended.

This module is the authority: no other place may move a job along an edge that is not here.
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. The last five are terminal: they do not change by themselves."""

    SCHEDULED = "scheduled"
    AWAITING = "awaiting"
    LEASED = "leased"
    SUCCEEDED = "succeeded"
    DEAD_LETTERED = "dead_lettered"
    QUARANTINED = "quarantined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Cause(StrEnum):
    """Why a job is terminal. Every terminal job has one; no other job does."""

    RETURNED = "returned"
    ATTEMPTS = "attempts"
    GAVE_UP = "gave_up"
    TIMEOUT = "timeout"
    OUTPUT = "output"
    DEADLINE = "deadline"
    UNDECODABLE = "undecodable"
    UNROUTABLE = "unroutable"
    OPERATOR = "operator"
    PARENT = "parent"
    SUPERSEDED = "superseded"
    JOB = "job"


TERMINAL = frozenset(
    {
        JobState.SUCCEEDED,
        JobState.DEAD_LETTERED,
        JobState.QUARANTINED,
        JobState.EXPIRED,
        JobState.CANCELLED,
    }
)

#: Terminal states that an operator may requeue. A success is run again as a new job.
REQUEUEABLE = TERMINAL - {JobState.SUCCEEDED}

#: States from which an operator may cancel without waiting for a body.
CANCELLABLE = frozenset({JobState.SCHEDULED, JobState.AWAITING})

TRANSITIONS: dict[JobState | None, frozenset[JobState]] = {
    None: frozenset({JobState.SCHEDULED, JobState.AWAITING, JobState.CANCELLED}),
    JobState.SCHEDULED: frozenset(
        {JobState.LEASED, JobState.EXPIRED, JobState.DEAD_LETTERED, JobState.CANCELLED}
    ),
    JobState.AWAITING: frozenset({JobState.SCHEDULED, JobState.CANCELLED}),
    JobState.LEASED: frozenset(
        {
            JobState.SCHEDULED,
            JobState.SUCCEEDED,
            JobState.DEAD_LETTERED,
            JobState.QUARANTINED,
            JobState.CANCELLED,
        }
    ),
    # Only a workflow's retry in place may bring a success back, with all that hangs below it.
    JobState.SUCCEEDED: frozenset({JobState.SCHEDULED, JobState.AWAITING}),
    JobState.DEAD_LETTERED: frozenset({JobState.SCHEDULED, JobState.AWAITING}),
    JobState.QUARANTINED: frozenset({JobState.SCHEDULED, JobState.AWAITING}),
    JobState.EXPIRED: frozenset({JobState.SCHEDULED, JobState.AWAITING}),
    JobState.CANCELLED: frozenset({JobState.SCHEDULED, JobState.AWAITING}),
}


def is_legal(before: JobState | None, after: JobState) -> bool:
    """Tell whether a job may go from ``before`` (``None``: not there yet) to ``after``."""
    return after in TRANSITIONS[before]
