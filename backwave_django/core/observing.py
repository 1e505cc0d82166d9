"""Reactions: what observers are told of an outcome, and how a store asks who observes it.

An observer is a job that the store inserts in the transaction that records the outcome. So it can
never change the outcome, and it is there exactly if the outcome is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from backwave_django.core.outcomes import Unroutable
from backwave_django.core.states import TERMINAL, Cause, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import NewJob
    from backwave_django.core.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeEvent:
    """How a job ended, as its observers see it.

    ``attempt`` is the one that ended it, or the next one for a job that ended without; ``run`` is
    ``None`` then. ``error_class`` and ``message`` are there when a body failed; the message is cut.
    """

    job_id: UUID
    wire_name: str
    queue: str
    state: JobState
    cause: Cause
    attempt: int
    run: int | None
    finished_at: datetime
    error_class: str | None = None
    message: str | None = None
    tags: Mapping[str, object] = field(default_factory=dict)


class Ended(NamedTuple):
    """The end of a job, as a store knows it. ``tags`` is a JSON text."""

    job_id: UUID
    wire_name: str
    queue: str
    state: JobState
    cause: Cause
    attempt: int
    run: int | None
    finished_at: datetime
    error_class: str | None = None
    message: str | None = None
    tags: str = "{}"


class Observers(Protocol):
    """Who wants to know of which ends. A store asks with every end that it records."""

    @property
    def states(self) -> frozenset[JobState]:
        """The terminal states that anybody wants to know of."""
        ...

    def jobs(self, ended: Ended) -> tuple[NewJob, ...]:
        """Return a job for each observer of this end, without unique key and parents.

        There is none for the end of an observer's own job.
        """
        ...


class Nobody:
    """No observer at all."""

    @property
    def states(self) -> frozenset[JobState]:
        """None."""
        return frozenset()

    def jobs(self, ended: Ended) -> tuple[NewJob, ...]:
        """Return nothing."""
        assert ended.state in TERMINAL, f"{ended.state} is no end"
        return ()


NOBODY = Nobody()


def may_concern(outcome: Outcome, states: frozenset[JobState]) -> bool:
    """Tell whether the store may end up in one of ``states`` when it applies ``outcome``.

    It may be another state than the outcome's: see ``Store.report``.
    """
    if outcome.state in states:
        return True
    if outcome.state is JobState.SUCCEEDED:
        # The database may refuse its output.
        return False
    if JobState.CANCELLED in states:
        return True
    hand_back = isinstance(outcome.unroutable, Unroutable)
    return hand_back and JobState.QUARANTINED in states
