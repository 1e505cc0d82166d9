"""Enqueueing jobs with unique keys and parents: keys first, then edges and births."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.dependencies import Birth, birth, is_over, parents_first
from backwave_django.core.errors import StoreUnavailable, UnknownParent
from backwave_django.core.jobs import EdgeMode, Enqueued
from backwave_django.core.states import Cause, JobState
from backwave_django.store.dialects.sqlite import TAKE_WRITE_LOCK
from backwave_django.store.keys import HoldersChanged, Keys, resolve_keys
from backwave_django.store.names import Statement
from backwave_django.store.settling import cancel_rows, queue_parents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import NewJob
    from backwave_django.store.room import Room

Edges = dict["UUID", EdgeMode]

_STATES: Final = Statement("SELECT id, state FROM {job} WHERE id {any:jobs}")
_LINK: Final = Statement(
    """
INSERT INTO {edge} (parent_id, child_id, mode, settled)
VALUES (%(parent)s, %(child)s, %(mode)s, %(settled)s)
"""
)
_SETTLED: Final = Statement(
    "UPDATE {edge} SET settled = {true} WHERE parent_id = %(parent)s AND child_id = %(child)s"
)
_BORN: Final = Statement(
    """
UPDATE {job} SET state = CASE WHEN state = 'cancelled' THEN state ELSE %(state)s END,
  pending_parents = %(pending)s WHERE id = %(job)s
"""
)


def enqueue_related(room: Room, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
    """Insert jobs of which some have a key or a parent; see ``Store.enqueue``."""
    try:
        return room.tried(
            lambda last_try: _enqueue(room, jobs, last_try=last_try), again_on=HoldersChanged
        )
    except HoldersChanged as changed:
        raise StoreUnavailable(f"holders of these unique keys come and go: {changed}") from changed


def _enqueue(room: Room, jobs: Sequence[NewJob], *, last_try: bool) -> tuple[Enqueued, ...]:
    if room.executor.vendor == "sqlite":
        # In a transaction of the caller's that has only read so far.
        room.executor.execute(TAKE_WRITE_LOCK, {})
    clock = room.clock()
    known = _known_parents(room, jobs)
    keys = resolve_keys(room, jobs, clock=clock, last_try=last_try)
    edges = {job.id: _edges(job, keys) for job in jobs if job.id not in keys.holders}
    order = parents_first(
        tuple(edges), parents={child: tuple(found) for child, found in edges.items()}
    )
    keys.states = known | keys.states
    states = _link(room, edges, order, keys, clock=clock)
    return tuple(_answer(job, keys, states) for job in jobs)


def _known_parents(room: Room, jobs: Sequence[NewJob]) -> dict[UUID, JobState]:
    """Return the states of parents outside of the batch. Raises ``UnknownParent``."""
    batch = {job.id for job in jobs}
    named = dict.fromkeys(parent for job in jobs for parent, _ in job.parents)
    outside = [parent for parent in named if parent not in batch]
    known = read_states(room, outside)
    missing = [parent for parent in outside if parent not in known]
    if missing:
        raise UnknownParent(missing)
    return known


def read_states(room: Room, ids: Iterable[UUID]) -> dict[UUID, JobState]:
    """Return the states of those jobs that exist."""
    wanted = list(ids)
    if not wanted:
        return {}
    uuid = room.executor.values.uuid
    rows = room.executor.fetch(_STATES, {"jobs": wanted})
    return {uuid(job_id): JobState(state) for job_id, state in rows}


def _edges(job: NewJob, keys: Keys) -> Edges:
    """The job's parents, each once (the first mention counts), holders of keys put in place."""
    edges: Edges = {}
    for parent, mode in job.parents:
        edges.setdefault(keys.holders.get(parent, parent), EdgeMode(mode))
    return edges


def _link(
    room: Room,
    edges: Mapping[UUID, Edges],
    order: Sequence[UUID],
    keys: Keys,
    *,
    clock: datetime,
) -> dict[UUID, JobState]:
    """Insert the edges, then look at the parents, and decide how each job begins."""
    lines = [
        {"parent": parent, "child": child, "mode": mode.value, "settled": False}
        for child, found in edges.items()
        for parent, mode in found.items()
    ]
    room.executor.execute_many(_LINK, lines)
    # Looked at after the edges are written: a parent that ends from here on is found again by
    # way of the settle queue, because its report cannot see these edges.
    outside = {parent for found in edges.values() for parent in found} - edges.keys()
    # What has been purged since we first saw it is what it was then.
    states = keys.states | read_states(room, outside | set(keys.holders.values()))
    births: dict[UUID, Birth] = {}
    for job_id in order:
        births[job_id] = birth((mode, states.get(parent)) for parent, mode in edges[job_id].items())
        superseded = job_id in keys.superseded
        states[job_id] = JobState.CANCELLED if superseded else births[job_id].state
    _write_births(room, edges, births, states, keys, clock=clock)
    live = {
        parent for found in edges.values() for parent in found if not is_over(states.get(parent))
    }
    queue_parents(room, sorted(live))
    return states


def _write_births(
    room: Room,
    edges: Mapping[UUID, Edges],
    births: Mapping[UUID, Birth],
    states: Mapping[UUID, JobState],
    keys: Keys,
    *,
    clock: datetime,
) -> None:
    settled = [
        {"parent": parent, "child": child}
        for child, found in edges.items()
        for parent in found
        if is_over(states.get(parent))
    ]
    room.executor.execute_many(_SETTLED, settled)
    doomed = [
        job_id
        for job_id, born in births.items()
        if born.state is JobState.CANCELLED and job_id not in keys.superseded
    ]
    changed: list[dict[str, Any]] = [
        {
            "job": job_id,
            # A job without a parent began as scheduled; one to be cancelled is so below.
            "state": JobState.AWAITING.value if job_id in doomed else born.state.value,
            "pending": born.pending,
        }
        for job_id, born in births.items()
        if edges[job_id]
    ]
    room.executor.execute_many(_BORN, changed)
    cancel_rows(room, doomed, cause=Cause.PARENT, now=clock)


def _answer(job: NewJob, keys: Keys, states: Mapping[UUID, JobState]) -> Enqueued:
    holder = keys.holders.get(job.id, job.id)
    return Enqueued(holder, holder == job.id, states[holder])
