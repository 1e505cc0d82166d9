"""Unique keys at enqueue: who holds a key, who gets it, and who makes room.

A key is fought for by inserting: ``unique_live`` is unique, an insert that meets a live holder
does nothing, and one that meets another transaction's waits for that. What the holders were is
read before; when an insert did nothing, all is undone and read again.

Rows of holders are locked first, by id, then keys are taken in their order, here and wherever
else keys are taken, so that nobody waits in a circle. So a second try may keep nothing of the
first. One circle is left: holders that make room give up their keys all at once, before the new
ones are inserted, and who looked before those holders came may wait for the one and hold the
other. The server ends it, and the enqueue is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.jobs import IfDuplicate
from backwave_django.core.states import Cause, JobState
from backwave_django.store.inserting import insert_related
from backwave_django.store.names import Statement
from backwave_django.store.settling import append_cancelled, cancel_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import NewJob
    from backwave_django.store.room import Room

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
SELECT j.id FROM {job} j WHERE j.id {any:jobs} AND j.run = 0
  AND j.state IN ('scheduled', 'awaiting')
  AND NOT EXISTS (SELECT 1 FROM {edge} d WHERE d.parent_id = j.id)
ORDER BY j.id {lock:j}
"""
)
_REMOVE: Final = Statement("DELETE FROM {job} WHERE id {any:jobs}")


class HoldersChanged(Exception):
    """Somebody else changed who holds these keys meanwhile: undo it all, and try again."""

    def __init__(self, keys: Iterable[str]) -> None:
        super().__init__(", ".join(sorted(keys)))


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

    def answer_with(self, holder: UUID, *, instead_of: UUID) -> None:
        """Let ``holder`` answer for a new job, and for those that this one was to answer for."""
        self.holders[instead_of] = holder
        for other, answer in self.holders.items():
            if answer == instead_of:
                self.holders[other] = holder

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


def resolve_keys(room: Room, jobs: Sequence[NewJob], *, clock: datetime, last_try: bool) -> Keys:
    """Insert all jobs that get their key, or have none, and say who answers for the others.

    Raises ``HoldersChanged``. On the last try a live holder that came just now answers, also to
    a job that would replace it: as if that job had come first, and had been replaced by it.
    """
    keys = Keys()
    plain = [job for job in jobs if job.unique_key is None]
    if plain:
        insert_related(room, plain, superseded=(), clock=clock)
    keyed = [job for job in jobs if job.unique_key is not None]
    if keyed:
        _resolve(room, keyed, keys, clock=clock, last_try=last_try)
    return keys


def _resolve(
    room: Room, jobs: Sequence[NewJob], keys: Keys, *, clock: datetime, last_try: bool
) -> None:
    live = _live(room, jobs, keys)
    rows: dict[UUID, Any] = {}
    replaceable = _replaceable(jobs, live)
    if replaceable:
        # Under our lock none of them begins; one that just did answers after all.
        rows = _lock(room, replaceable.values())
        live = _live(room, jobs, keys)
        _check_came_later(jobs, live, rows, last_try=last_try)
    plan = _Plan(live, _terminal(room, jobs, keys))
    for job in jobs:
        plan.decide(job)
    gone = [row[0] for job_id, row in rows.items() if job_id in plan.superseded]
    cancel_rows(room, gone, cause=Cause.SUPERSEDED, now=clock)
    keys.superseded = plan.superseded - rows.keys()
    if plan.inserted:
        _insert(room, plan, keys, clock=clock, last_try=last_try)
    keys.holders = plan.holders
    append_cancelled(room, sorted(keys.superseded), cause=Cause.SUPERSEDED, now=clock)


def _insert(room: Room, plan: _Plan, keys: Keys, *, clock: datetime, last_try: bool) -> None:
    won = insert_related(room, plan.inserted, superseded=keys.superseded, clock=clock)
    lost = [job for job in plan.inserted if job.id not in won]
    if lost:
        _yield_to_live(room, plan, lost, keys, last_try=last_try)
    _yield_to_terminal(room, plan, won, keys)


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


def _replaceable(jobs: Sequence[NewJob], live: Mapping[str, tuple[UUID, bool]]) -> dict[str, UUID]:
    """Per key that some job would replace its holder under: the holder, if it may go."""
    replacing = {job.unique_key for job in jobs if job.if_duplicate is IfDuplicate.REPLACE}
    return {key: job_id for key, (job_id, may_go) in live.items() if may_go and key in replacing}


def _lock(room: Room, holders: Iterable[UUID]) -> dict[UUID, Any]:
    """Lock those of the holders that may still be replaced."""
    rows = room.executor.fetch(_MAKE_ROOM, {"jobs": sorted(holders)})
    return {room.executor.values.uuid(row[0]): row for row in rows}


def _check_came_later(
    jobs: Sequence[NewJob],
    live: dict[str, tuple[UUID, bool]],
    locked: Collection[UUID],
    *,
    last_try: bool,
) -> None:
    """Look for holders to be replaced that came after we locked those that we knew."""
    late = {k: job_id for k, job_id in _replaceable(jobs, live).items() if job_id not in locked}
    if late and not last_try:
        raise HoldersChanged(late)
    live.update({key: (job_id, False) for key, job_id in late.items()})


def _yield_to_live(
    room: Room, plan: _Plan, lost: Sequence[NewJob], keys: Keys, *, last_try: bool
) -> None:
    """Give way to holders that came between our look and our insert, if they are still there."""
    live = _live(room, lost, keys)
    changed = {
        key
        for job in lost
        if (key := str(job.unique_key)) not in live
        or (job.if_duplicate is IfDuplicate.REPLACE and not last_try)
    }
    if changed:
        raise HoldersChanged(changed)
    for job in lost:
        plan.answer_with(live[str(job.unique_key)][0], instead_of=job.id)


def _yield_to_terminal(room: Room, plan: _Plan, won: set[UUID], keys: Keys) -> None:
    """Give way to a holder that ended between our look and our insert."""
    mine = [
        job
        for job in plan.inserted
        if job.id in won and plan.winners[str(job.unique_key)] == job.id
    ]
    found = _terminal(room, mine, keys)
    late = []
    for job in mine:
        strict = job.if_duplicate is IfDuplicate.REJECT
        holder = found.get((str(job.unique_key), strict))
        if holder is not None and job.if_duplicate not in {IfDuplicate.ALLOW, IfDuplicate.REPLACE}:
            plan.answer_with(holder, instead_of=job.id)
            late.append(job.id)
    _take_back(room, late)


def _take_back(room: Room, ids: Sequence[UUID]) -> None:
    if ids:
        room.executor.execute(_REMOVE, {"jobs": list(ids)})
