"""What an edge between two jobs means: births, satisfaction, and the order of a graph.

Both the reference store and the databases' stores ask here, so that a dependent's fate does not
depend on where it is kept. ``None`` as a parent's state says that the parent is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from backwave_django.core.errors import InvalidOption
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.states import TERMINAL, JobState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """The state in which a job begins, and how many parents it waits for."""

    state: JobState
    pending: int


def is_over(parent: JobState | None) -> bool:
    """Tell whether a parent in this state gates nothing any more."""
    return parent is None or parent in TERMINAL


def is_dead(mode: EdgeMode, parent: JobState | None) -> bool:
    """Tell whether the edge can never be satisfied: a wanted success did not come."""
    return mode is EdgeMode.ON_SUCCESS and is_over(parent) and parent is not JobState.SUCCEEDED


def birth(edges: Iterable[tuple[EdgeMode, JobState | None]]) -> Birth:
    """Return how a job with these incoming edges begins."""
    known = tuple(edges)
    pending = sum(not is_over(parent) for _, parent in known)
    if any(is_dead(mode, parent) for mode, parent in known):
        return Birth(state=JobState.CANCELLED, pending=pending)
    state = JobState.AWAITING if pending else JobState.SCHEDULED
    return Birth(state=state, pending=pending)


def released_due(due_at: datetime, *, now: datetime) -> datetime:
    """Return when a job is due that just stopped waiting: as asked, but not in the past."""
    return max(due_at, now)


def parents_first(
    ids: Sequence[UUID], *, parents: Mapping[UUID, Collection[UUID]]
) -> tuple[UUID, ...]:
    """Return ``ids`` with every parent before its children.

    Ties keep the order of ``ids``. Parents that are not among them are left out of account, and
    repeated ids are named once.
    Raises ``InvalidOption`` for jobs that wait for each other in a circle.
    """
    chosen = dict.fromkeys(ids)
    sorter: TopologicalSorter[UUID] = TopologicalSorter()
    # All of them before any edge: so ties keep the caller's order.
    for child in chosen:
        sorter.add(child)
    for child in chosen:
        sorter.add(child, *(parent for parent in parents.get(child, ()) if parent in chosen))
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        circle = [str(member) for member in error.args[1]]
        raise InvalidOption(
            "parents", circle, "these jobs wait for each other; break the circle"
        ) from error
