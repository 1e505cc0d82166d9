"""A job on its way into the store, and one on its way out of it.

Payloads, outputs and tags are JSON texts here: the core never looks inside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from backwave_django.core.states import JobState

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class IfDuplicate(StrEnum):
    """What an enqueue under a unique key does when a terminal job holds the key.

    A live holder always answers, except that ``REPLACE`` cancels one that never started.
    """

    ALLOW_AFTER_FAILURE = "allow_after_failure"
    REJECT = "reject"
    ALLOW = "allow"
    REPLACE = "replace"


class EdgeMode(StrEnum):
    """What a dependent wants of its parent."""

    ON_SUCCESS = "on_success"
    ON_ANY = "on_any"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be inserted.

    ``due_at`` of ``None`` means now, by the database's clock. ``priority`` is what a caller
    writes: -100 to 100, high first. ``parents`` pairs the ids this job waits for with a mode.
    Its text leaves the payload out, which may hold what no log or error report should.
    """

    id: UUID
    wire_name: str
    queue: str
    payload: str = field(repr=False)
    payload_version: int = 1
    priority: int = 0
    due_at: datetime | None = None
    deadline: datetime | None = None
    tags: str = "{}"
    limit_key: str | None = None
    unique_key: str | None = None
    if_duplicate: IfDuplicate = IfDuplicate.ALLOW_AFTER_FAILURE
    parents: tuple[tuple[UUID, EdgeMode], ...] = ()
    workflow: UUID | None = None
    schedule: str | None = None
    scheduled_for: datetime | None = None
    trace: str | None = None


class Enqueued(NamedTuple):
    """The store's answer for one new job, in the order of the request.

    ``id`` is the holder's when ``created`` is false: a unique key answered with another job.
    """

    id: UUID
    created: bool
    state: JobState


class LeasedJob(NamedTuple):
    """One job with the lease under which this attempt runs.

    A plain tuple in the order of the claim's columns: thousands of them are built each second.
    ``run`` counts claims, ``spent`` the attempts used up before this one; ``retry`` holds the
    numbers that govern this attempt, as ``Retry.encode`` writes them. Its text leaves the payload
    out, as that of ``NewJob`` does.
    """

    lease_id: UUID
    job_id: UUID
    wire_name: str
    queue: str
    run: int
    spent: int
    payload: str
    payload_version: int
    tags: str
    due_at: datetime
    deadline: datetime | None
    limit_key: str | None
    unroutable_since: datetime | None
    schedule: str | None
    scheduled_for: datetime | None
    workflow: UUID | None
    trace: str | None
    retry: str
    expires_at: datetime

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(lease_id={self.lease_id!s}, job_id={self.job_id!s}, "
            f"wire_name={self.wire_name!r}, run={self.run}, spent={self.spent})"
        )

    @property
    def attempt(self) -> int:
        """The attempt that authors and operators see."""
        return self.spent + 1
