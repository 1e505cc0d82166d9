"""Workflows: what is stored of one, what its members add up to, and what a retry brings back.

A workflow is a name over jobs that dependencies tie together. Its members are inserted at once and
never change; its status is always derived from theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from backwave_django.core.dependencies import is_dead, parents_first
from backwave_django.core.states import TERMINAL, Cause, JobState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from backwave_django.core.jobs import EdgeMode


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflow:
    """A workflow to be inserted with its jobs. ``steps`` names those of them that have a name."""

    id: UUID
    name: str
    steps: Mapping[str, UUID] = field(default_factory=dict)


class WorkflowStatus(StrEnum):
    """What the states of a workflow's members add up to.

    ``FAILING``: something failed or was cancelled, and something is still to come. ``FAILED``:
    all is over and at least one member was dead-lettered, quarantined or expired. ``CANCELLED``:
    all is over, nothing failed, and at least one member was cancelled.
    """

    RUNNING = "running"
    FAILING = "failing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


#: Ends that somebody has to look at.
FAILURES = frozenset({JobState.DEAD_LETTERED, JobState.QUARANTINED, JobState.EXPIRED})


def status_of(counts: Mapping[JobState, int]) -> WorkflowStatus | None:
    """Return the status of a workflow with so many members in each state; ``None`` with none."""
    present = {state for state, count in counts.items() if count}
    if not present:
        return None
    failed, cancelled = bool(present & FAILURES), JobState.CANCELLED in present
    if not present <= TERMINAL:
        return WorkflowStatus.FAILING if failed or cancelled else WorkflowStatus.RUNNING
    if failed:
        return WorkflowStatus.FAILED
    return WorkflowStatus.CANCELLED if cancelled else WorkflowStatus.SUCCEEDED


class RetryScope(StrEnum):
    """What a retry in place brings back.

    ``FAILED``: the failures, with the members that were cancelled because of them.
    ``FAILED_AND_BELOW``: also whatever ran after them, successes included.
    """

    FAILED = "failed"
    FAILED_AND_BELOW = "failed_and_below"


class Standing(NamedTuple):
    """The state of a job and why it is in it."""

    state: JobState
    cause: Cause | None


class Edge(NamedTuple):
    """``child`` waits, or waited, for ``parent``."""

    parent: UUID
    child: UUID
    mode: EdgeMode


def to_retry(
    members: Mapping[UUID, Standing],
    edges: Sequence[Edge],
    outside: Mapping[UUID, JobState],
    *,
    scope: RetryScope,
) -> tuple[UUID, ...]:
    """Return the members that a retry brings back, parents before their children.

    ``outside`` holds the states of parents that are no members. A cancelled member comes along if
    everything that dooms it does: one that is doomed by another parent too stays cancelled.
    """
    into: dict[UUID, list[Edge]] = {}
    for edge in edges:
        into.setdefault(edge.child, []).append(edge)
    ordered = parents_first(
        sorted(members), parents={child: [e.parent for e in found] for child, found in into.items()}
    )
    chosen: set[UUID] = set()
    for job_id in ordered:
        found = into.get(job_id, ())
        doomed = any(
            is_dead(e.mode, _state(e.parent, members, outside))
            for e in found
            if e.parent not in chosen
        )
        below = any(e.parent in chosen for e in found)
        if not doomed and _comes_along(members[job_id], below=below, scope=scope):
            chosen.add(job_id)
    return tuple(job_id for job_id in ordered if job_id in chosen)


def _comes_along(member: Standing, *, below: bool, scope: RetryScope) -> bool:
    if member.state in FAILURES:
        return True
    if not below or member.state not in TERMINAL or member.cause is Cause.SUPERSEDED:
        return False
    cascaded = member.state is JobState.CANCELLED and member.cause is Cause.PARENT
    return cascaded or scope is RetryScope.FAILED_AND_BELOW


def _state(
    job_id: UUID, members: Mapping[UUID, Standing], outside: Mapping[UUID, JobState]
) -> JobState | None:
    member = members.get(job_id)
    return outside.get(job_id) if member is None else member.state


def tally(states: Iterable[JobState]) -> dict[JobState, int]:
    """Return how many of ``states`` there are of each, in the order of ``JobState``."""
    counts = dict.fromkeys(JobState, 0)
    for state in states:
        counts[state] += 1
    return {state: count for state, count in counts.items() if count}


#: What a person is told when there was nothing to do, or it could not be done.
NOTHING_TO_CANCEL = "every job of it has ended"
NOTHING_TO_RETRY = "no job of it failed"
STILL_ALIVE = "it is not over; cancel what is left of it first"


def partly_purged(count: int, size: int) -> str:
    """Say that a workflow cannot be had whole any more."""
    return f"{count:,} of its {size:,} jobs were purged after their retention"


def key_is_held(job_id: UUID, holder: UUID | str) -> str:
    """Say which unique key is in the way."""
    return f"job {holder} holds the unique key of job {job_id}"


def shared_key(keys: Iterable[tuple[UUID, str | None]]) -> tuple[UUID, UUID] | None:
    """Return the first job whose unique key an earlier one has too, and that one; if any has."""
    seen: dict[str, UUID] = {}
    for job_id, key in keys:
        if key is not None and seen.setdefault(key, job_id) != job_id:
            return job_id, seen[key]
    return None
