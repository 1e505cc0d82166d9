"""Enqueue: unique keys first, then edges and births, parents before their children."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backwave_django.core.dependencies import birth, is_over, parents_first
from backwave_django.core.errors import UnknownParent
from backwave_django.core.jobs import Enqueued, IfDuplicate
from backwave_django.core.memory.rows import EdgeRow, JobRow
from backwave_django.core.states import TERMINAL, Cause, JobState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import EdgeMode, NewJob
    from backwave_django.core.memory.tables import Tables


@dataclass(slots=True, kw_only=True)
class _Keys:
    """What unique keys make of a batch, decided before anything is written.

    ``holders`` maps a new job to the job that answers in its place; ``superseded`` are live
    holders, of the store or of this batch, that a replacing job cancels.
    """

    holders: dict[UUID, UUID] = field(default_factory=dict)
    superseded: set[UUID] = field(default_factory=set)
    taken: dict[str, UUID] = field(default_factory=dict)

    def resolve(self, job_id: UUID) -> UUID:
        return self.holders.get(job_id, job_id)


def enqueue(tables: Tables, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
    """Insert ``jobs``; see the contract."""
    batch = {job.id: job for job in jobs}
    assert len(batch) == len(jobs), "a job id comes twice"
    assert tables.jobs.keys().isdisjoint(batch), "a job id is taken"
    _refuse_unknown_parents(tables, batch)
    keys = _decide_keys(tables, jobs)
    edges = {job.id: _resolved_edges(job, keys) for job in jobs if keys.resolve(job.id) == job.id}
    order = parents_first(tuple(edges), parents=edges)
    at = tables.clock()
    for holder in sorted(keys.superseded - batch.keys()):
        _supersede(tables, tables.jobs[holder], at=at)
    for job_id in order:
        _insert(tables, batch[job_id], edges[job_id], keys, at=at)
    return tuple(_answer(tables, keys, job.id) for job in jobs)


def _refuse_unknown_parents(tables: Tables, batch: dict[UUID, NewJob]) -> None:
    named = dict.fromkeys(parent for job in batch.values() for parent, _ in job.parents)
    missing = [parent for parent in named if parent not in batch and parent not in tables.jobs]
    if missing:
        raise UnknownParent(missing)


def _decide_keys(tables: Tables, jobs: Sequence[NewJob]) -> _Keys:
    keys = _Keys()
    for job in jobs:
        if job.unique_key is not None:
            holder = _holder(tables, job, job.unique_key, keys)
            if holder is None:
                keys.taken[job.unique_key] = job.id
            else:
                keys.holders[job.id] = holder
    return keys


def _holder(tables: Tables, job: NewJob, key: str, keys: _Keys) -> UUID | None:
    """Return the job that answers under the key; note the one that has to make room."""
    live = keys.taken.get(key) or tables.live_keys.get(key)
    if live is None:
        return _terminal_holder(tables, key, job.if_duplicate)
    if job.if_duplicate is IfDuplicate.REPLACE and _never_started(tables, live):
        keys.superseded.add(live)
        return None
    return live


def _never_started(tables: Tables, holder: UUID) -> bool:
    """Whether a live holder may make room: never claimed, and nobody waits for it."""
    row = tables.jobs.get(holder)
    return not tables.children.get(holder) and (row is None or row.run == 0)


def _terminal_holder(tables: Tables, key: str, policy: IfDuplicate) -> UUID | None:
    blocking = {
        IfDuplicate.ALLOW_AFTER_FAILURE: frozenset({JobState.SUCCEEDED}),
        IfDuplicate.REJECT: TERMINAL,
    }.get(policy, frozenset())
    holders = (
        job.id
        for state in blocking
        for job in tables.by_state[state].values()
        if job.new.unique_key == key
    )
    return max(holders, default=None)


def _resolved_edges(job: NewJob, keys: _Keys) -> dict[UUID, EdgeMode]:
    """Return the job's parents, each once (the first mention counts), holders put in place."""
    edges: dict[UUID, EdgeMode] = {}
    for parent, mode in job.parents:
        edges.setdefault(keys.resolve(parent), mode)
    return edges


def _supersede(tables: Tables, row: JobRow, *, at: datetime) -> None:
    tables.end_waiting(row, JobState.CANCELLED, cause=Cause.SUPERSEDED, at=at)


def _insert(
    tables: Tables, job: NewJob, edges: dict[UUID, EdgeMode], keys: _Keys, *, at: datetime
) -> None:
    states = {parent: tables.state_of(parent) for parent in edges}
    born = birth((mode, states[parent]) for parent, mode in edges.items())
    row = JobRow(
        new=job,
        created_at=at,
        due_at=job.due_at or at,
        deadline=job.deadline,
        tags=job.tags,
        pending_parents=born.pending,
    )
    for parent, mode in edges.items():
        over = is_over(states[parent])
        tables.add_edge(EdgeRow(parent=parent, child=job.id, mode=mode, settled=over))
        if not over:
            tables.settle_queue[parent] = None
    if job.id in keys.superseded:
        _supersede(tables, row, at=at)
    elif born.state is JobState.CANCELLED:
        tables.end_waiting(row, born.state, cause=Cause.PARENT, at=at)
    else:
        tables.move(row, born.state, at=at)


def _answer(tables: Tables, keys: _Keys, job_id: UUID) -> Enqueued:
    holder = keys.resolve(job_id)
    state = tables.jobs[holder].state
    assert state is not None
    return Enqueued(holder, holder == job_id, state)
