"""Unique keys at enqueue: who holds a key, who gets it, and who makes room.

A key is fought for by inserting: ``unique_live`` is unique, an insert that meets a live holder
does nothing, and one that meets another transaction's waits for that. What the holders were is
read before, and read again when an insert did nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.errors import StoreUnavailable
from backwave_django.core.jobs import IfDuplicate
from backwave_django.core.states import Cause, JobState
from backwave_django.store.inserting import insert_related
from backwave_django.store.names import Statement
from backwave_django.store.settling import append_cancelled, cancel_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import NewJob
    from backwave_django.store.room import Room

#: A holder can be gone each time we look for the one that was in our way.
_TRIES: Final = 3

_LIVE: Final = Statement(
    """
SELECT j.unique_live, j.id, j.run, EXISTS (SELECT 1 FROM {edge} d WHERE d.parent_id = j.id),
  j.state FROM {job} j WHERE j.unique_live {any:keys}
"""
)
_TERMINAL: Final = Statement(
    """
SELECT j.unique_key, j.id, j.state FROM {job} j
WHERE j.unique_key {any:keys} AND j.state IN {terminal}
  AND (j.state = 'succeeded' OR j.unique_key {any:strict})
"""
)
_MAKE_ROOM: Final = Statement(
    """
SELECT j.id, j.spent FROM {job} j WHERE j.id {any:jobs} AND j.run = 0
  AND j.state IN ('scheduled', 'awaiting')
  AND NOT EXISTS (SELECT 1 FROM {edge} d WHERE d.parent_id = j.id)
ORDER BY j.id {lock:j}
"""
)
_REMOVE: Final = Statement("DELETE FROM {job} WHERE id {any:jobs}")


@dataclass(slots=True)
class Keys:
    """What unique keys make of a batch.

    ``holders`` maps a new job to the job that answers in its place; ``superseded`` are new jobs
    that a later one of the same batch replaced. ``states`` are what holders were when they were
    looked at: one that has ended may be purged at any moment.
    """

    holders: dict[UUID, UUID] = field(default_factory=dict)
    superseded: set[UUID] = field(default_factory=set)
    states: dict[UUID, JobState] = field(default_factory=dict)


@dataclass(slots=True)
class _Plan:
    """Decisions about the keys that are still open, made on what was read."""

    live: dict[str, tuple[UUID, bool]]
    terminal: dict[tuple[str, bool], UUID]
    holders: dict[UUID, UUID] = field(default_factory=dict)
    winners: dict[str, UUID] = field(default_factory=dict)
    superseded: set[UUID] = field(default_factory=set)
    inserted: list[NewJob] = field(default_factory=list)

    def decide(self, job: NewJob) -> None:
        """Find out who answers for ``job``, or let it be inserted."""
        key = job.unique_key
        assert key is not None
        holder = self._holder(job, key)
        if holder is not None:
            self.holders[job.id] = holder
        else:
            self.winners[key] = job.id
            self.inserted.append(job)

    def _holder(self, job: NewJob, key: str) -> UUID | None:
        replaces = job.if_duplicate is IfDuplicate.REPLACE
        mine = self.winners.get(key)
        live, may_go = (mine, True) if mine else self.live.get(key, (None, False))
        if live is None:
            return self._terminal_holder(job, key)
        if replaces and may_go:
            self.superseded.add(live)
            return None
        return live

    def _terminal_holder(self, job: NewJob, key: str) -> UUID | None:
        if job.if_duplicate in {IfDuplicate.ALLOW, IfDuplicate.REPLACE}:
            return None
        return self.terminal.get((key, job.if_duplicate is IfDuplicate.REJECT))


def resolve_keys(room: Room, jobs: Sequence[NewJob], *, clock: datetime) -> Keys:
    """Insert all jobs that get their key, or have none, and say who answers for the others."""
    keys = Keys()
    plain = [job for job in jobs if job.unique_key is None]
    if plain:
        insert_related(room, plain, superseded=(), clock=clock)
    waiting = [job for job in jobs if job.unique_key is not None]
    for _ in range(_TRIES):
        if not waiting:
            return keys
        waiting = _try(room, waiting, keys, clock=clock)
    if waiting:
        names = ", ".join(sorted({str(job.unique_key) for job in waiting}))
        raise StoreUnavailable(f"holders of these unique keys come and go: {names}")
    return keys


def _try(room: Room, jobs: Sequence[NewJob], keys: Keys, *, clock: datetime) -> list[NewJob]:
    """Decide and insert; return the jobs whose keys somebody else changed meanwhile."""
    plan = _Plan(_live(room, jobs, keys), _terminal(room, jobs, keys))
    for job in jobs:
        plan.decide(job)
    new = {job.id for job in plan.inserted}
    lost = _make_room(room, plan.superseded - new, plan, clock=clock)
    wanted = [job for job in plan.inserted if job.unique_key not in lost]
    inside = plan.superseded & new
    won = insert_related(room, wanted, superseded=inside, clock=clock) if wanted else set()
    lost |= {str(job.unique_key) for job in wanted if job.id not in won}
    _yield_to_terminal(room, wanted, won, plan, keys)
    _take_back(room, [job.id for job in wanted if job.unique_key in lost and job.id in won])
    for job in jobs:
        if job.unique_key not in lost and job.id in plan.holders:
            keys.holders[job.id] = plan.holders[job.id]
    kept = {job.id for job in wanted if job.unique_key not in lost} & inside
    keys.superseded |= kept
    append_cancelled(
        room, [(job_id, 0) for job_id in sorted(kept)], cause=Cause.SUPERSEDED, now=clock
    )
    return [job for job in jobs if job.unique_key in lost]


def _live(room: Room, jobs: Sequence[NewJob], keys: Keys) -> dict[str, tuple[UUID, bool]]:
    """Per key its live holder, and whether that one never started and nobody waits for it."""
    found: dict[str, tuple[UUID, bool]] = {}
    for key, raw, run, awaited, state in room.executor.fetch(_LIVE, {"keys": _names(jobs)}):
        job_id = room.executor.values.uuid(raw)
        keys.states[job_id] = JobState(state)
        found[key] = job_id, run == 0 and not awaited
    return found


def _terminal(room: Room, jobs: Sequence[NewJob], keys: Keys) -> dict[tuple[str, bool], UUID]:
    """The newest terminal holder per key: of those that succeeded, and (strictly) of all."""
    asked = [j for j in jobs if j.if_duplicate not in {IfDuplicate.ALLOW, IfDuplicate.REPLACE}]
    if not asked:
        return {}
    strict = [job for job in asked if job.if_duplicate is IfDuplicate.REJECT]
    parameters = {"keys": _names(asked), "strict": _names(strict)}
    found: dict[tuple[str, bool], UUID] = {}
    for key, raw, state in room.executor.fetch(_TERMINAL, parameters):
        job_id = room.executor.values.uuid(raw)
        keys.states[job_id] = JobState(state)
        for strictly in (True, False) if state == "succeeded" else (True,):
            found[key, strictly] = max(found.get((key, strictly), job_id), job_id)
    return found


def _names(jobs: Sequence[NewJob]) -> list[str]:
    return sorted({job.unique_key for job in jobs if job.unique_key is not None})


def _make_room(room: Room, holders: set[UUID], plan: _Plan, *, clock: datetime) -> set[str]:
    """Cancel live holders that are to be replaced; return the keys of those that began."""
    if not holders:
        return set()
    rows: list[Any] = room.executor.fetch(_MAKE_ROOM, {"jobs": sorted(holders)})
    cancel_rows(room, rows, cause=Cause.SUPERSEDED, now=clock)
    gone = {room.executor.values.uuid(row[0]) for row in rows}
    return {key for key, (job_id, _) in plan.live.items() if job_id in holders - gone}


def _yield_to_terminal(
    room: Room, jobs: Sequence[NewJob], won: set[UUID], plan: _Plan, keys: Keys
) -> None:
    """Give way to a holder that ended between our look and our insert."""
    mine = [job for job in jobs if job.id in won and plan.winners[str(job.unique_key)] == job.id]
    found = _terminal(room, mine, keys)
    late = []
    for job in mine:
        strict = job.if_duplicate is IfDuplicate.REJECT
        holder = found.get((str(job.unique_key), strict))
        if holder is not None and job.if_duplicate not in {IfDuplicate.ALLOW, IfDuplicate.REPLACE}:
            plan.holders[job.id] = holder
            late.append(job.id)
            for other, answer in plan.holders.items():
                if answer == job.id:
                    plan.holders[other] = holder
    _take_back(room, late)


def _take_back(room: Room, ids: Sequence[UUID]) -> None:
    if ids:
        room.executor.execute(_REMOVE, {"jobs": list(ids)})
