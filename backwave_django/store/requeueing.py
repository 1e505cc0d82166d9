"""Requeue: terminal jobs other than successes come back, parents before their children."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.contract import ActionAnswer, ActionResult
from backwave_django.core.dependencies import birth, is_dead, is_over, parents_first
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.states import REQUEUEABLE, JobState
from backwave_django.core.workflows import Edge
from backwave_django.store.audit import Audit
from backwave_django.store.faults import is_duplicate
from backwave_django.store.hints import announce
from backwave_django.store.names import Statement
from backwave_django.store.operators import answers_to, gone, lock_jobs, refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import Actor
    from backwave_django.store.operators import Locked
    from backwave_django.store.room import Room

_EDGES: Final = Statement(
    "SELECT parent_id, child_id, mode FROM {edge} WHERE child_id {any:jobs} ORDER BY id"
)
_HOLDER: Final = Statement("SELECT id FROM {job} WHERE unique_live = %(key)s")
_BRING_BACK: Final = Statement(
    """
UPDATE {job} SET state = %(state)s, spent = 0, due_at = %(now)s, deadline = NULL, cause = NULL,
  terminal_at = NULL, unroutable_since = NULL, output = NULL, pending_parents = %(pending)s,
  unique_live = unique_key WHERE id = %(job)s
"""
)
_REOPEN: Final = Statement(
    """
UPDATE {edge} SET settled = CASE WHEN %(over)s THEN {true} ELSE {false} END
WHERE parent_id = %(parent)s AND child_id = %(child)s
"""
)


@dataclass(slots=True)
class Comeback:
    """The jobs concerned, their parents, and what state each is in by now.

    What comes back is in the database once ``write`` has been called.
    """

    room: Room
    now: datetime
    jobs: dict[UUID, Locked]
    edges: dict[UUID, list[Edge]]
    states: dict[UUID, JobState]
    #: What nobody can refuse: it is written in one go.
    _jobs_left: list[dict[str, Any]] = field(default_factory=list)
    _edges_left: list[dict[str, Any]] = field(default_factory=list)

    def requeue(self, job_id: UUID) -> tuple[ActionResult, str]:
        """Bring one job back, or say why not."""
        job = self.jobs[job_id]
        if self.states[job_id] not in REQUEUEABLE:
            return refused(self.states[job_id], "requeued")
        edges = self.edges.get(job_id, [])
        failed = [e.parent for e in edges if is_dead(e.mode, self.states.get(e.parent))]
        if failed:
            names = ", ".join(sorted(map(str, failed)))
            return ActionResult.REFUSED, f"requeue its parent first: {names}"
        holder = self.holder(job) or self.bring_back(job)
        if holder is not None:
            return ActionResult.CONFLICT, f"job {holder} holds its unique key"
        return ActionResult.DONE, ""

    def holder(self, job: Locked) -> UUID | None:
        """Return the live job that holds the job's unique key, if there is one."""
        if job.unique_key is None:
            return None
        rows = self.room.executor.fetch(_HOLDER, {"key": job.unique_key})
        return self.room.executor.values.uuid(rows[0][0]) if rows else None

    def bring_back(self, job: Locked) -> UUID | str | None:
        """Write the job anew; return who took its key in between, if somebody did."""
        edges = self.edges.get(job.id, [])
        born = birth((edge.mode, self.states.get(edge.parent)) for edge in edges)
        executor = self.room.executor
        row = {"job": job.id, "state": born.state.value, "pending": born.pending, "now": self.now}
        if job.unique_key is None:
            self._jobs_left.append(row)
        else:
            try:
                with executor.transaction():
                    executor.execute(_BRING_BACK, row)
            except Exception as error:
                if not is_duplicate(error):
                    raise
                return self.holder(job) or "that is gone again"
        self._edges_left += [
            {"parent": e.parent, "child": job.id, "over": is_over(self.states.get(e.parent))}
            for e in edges
        ]
        self.states[job.id] = born.state
        return None

    def write(self) -> None:
        """Write what is left to write."""
        self.room.executor.execute_many(_BRING_BACK, self._jobs_left)
        self.room.executor.execute_many(_REOPEN, self._edges_left)
        self._jobs_left, self._edges_left = [], []


def requeue(
    room: Room, job_ids: Sequence[UUID], *, actor: Actor, now: datetime
) -> tuple[ActionAnswer, ...]:
    """Bring terminal jobs back; see ``Store.requeue``."""
    with room.executor.transaction():
        edges = edges_into(room, job_ids)
        parents = {child: [edge.parent for edge in found] for child, found in edges.items()}
        # Parents too: one that ends while we look would leave the job waiting for nobody.
        concerned = {parent for found in parents.values() for parent in found} | set(job_ids)
        jobs = lock_jobs(room, concerned)
        order = parents_first(in_key_order(job_ids, jobs), parents=parents)
        desk = Comeback(room, now, jobs, edges, {job.id: job.state for job in jobs.values()})
        audit = Audit(room, actor, now)
        answers = {job_id: _one(desk, job_id, audit) for job_id in order}
        desk.write()
        audit.write()
        due = (jobs[job_id] for job_id, a in answers.items() if a.state is JobState.SCHEDULED)
        announce(room, [(job.queue, -job.priority) for job in due])
    return answers_to(job_ids, answers)


def in_key_order(job_ids: Sequence[UUID], jobs: Mapping[UUID, Locked]) -> list[UUID]:
    """Return ids in the order in which keys are taken everywhere; those of one key as given."""
    return sorted(job_ids, key=lambda each: (each in jobs and jobs[each].unique_key) or "")


def edges_into(room: Room, job_ids: Sequence[UUID]) -> dict[UUID, list[Edge]]:
    """Return the incoming edges of each job that has some, in the order of their making."""
    uuid = room.executor.values.uuid
    found: dict[UUID, list[Edge]] = {}
    for parent, child, mode in room.executor.fetch(_EDGES, {"jobs": list(job_ids)}):
        found.setdefault(uuid(child), []).append(Edge(uuid(parent), uuid(child), EdgeMode(mode)))
    return found


def _one(desk: Comeback, job_id: UUID, audit: Audit) -> ActionAnswer:
    target = ("job", str(job_id))
    if job_id not in desk.jobs:
        audit.note("requeue", target, {}, {}, ActionResult.GONE)
        return gone(job_id)
    before = {"state": str(desk.states[job_id])}
    result, detail = desk.requeue(job_id)
    state = desk.states[job_id]
    audit.note("requeue", target, before, {"state": str(state)}, result)
    return ActionAnswer(job_id=job_id, result=result, state=state, detail=detail)
