"""Settling: the edges of ended parents are marked, once each, and their children move.

Children that somebody else holds, and those past the bound of one transaction, are left; their
parent's id goes into the settle queue.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from backwave_django.core.bounds import MAX_SETTLED_IN_REPORT
from backwave_django.core.contract import History
from backwave_django.core.dependencies import is_dead, released_due
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.states import Cause, JobState
from backwave_django.store.hints import announce
from backwave_django.store.names import Statement
from backwave_django.store.observing import observe_ends

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.store.room import Room

# Whatever the planner believes of the tables, edges are looked up parent by parent, and jobs by
# their keys. Parents come as given, the children of each by id. On PostgreSQL two comparisons stand
# for one "=": with that, the order were by child alone, and while there are few edges a plan that
# walks over all of them in that order looks as good, and is kept.
_OPEN_COLUMNS: Final = """
SELECT d.id, o.id, d.child_id, d.mode, (SELECT p.state FROM {{job}} p WHERE p.id = o.id),
  (SELECT c.id FROM {{job}} c WHERE c.id = d.child_id)
"""
_OPEN: Final = {
    "postgresql": """
FROM {{ids:parents}} CROSS JOIN LATERAL (
  SELECT e.id, e.child_id, e.mode FROM {{edge}} e
  WHERE e.parent_id >= o.id AND e.parent_id <= o.id AND {{open:e}}
  ORDER BY e.parent_id, e.child_id LIMIT {limit}) d
ORDER BY o.place, d.child_id LIMIT {limit}
""",
    "sqlite": """
FROM {{ids:parents}} CROSS JOIN {{edge}} d ON d.parent_id = o.id AND {{open:d}}
ORDER BY o.place, d.child_id LIMIT {limit}
""",
}
_CHILDREN: Final = Statement(
    """
SELECT j.id, j.state, j.pending_parents, j.due_at, j.queue, j.priority FROM {job} j
WHERE j.id {any:children} ORDER BY j.id {skip_locked:j}
"""
)
# A child's row is locked by now; whoever marked an edge before us has committed. In these words the
# condition is not that of the index of open edges, which would be walked over for a few keys.
_MARK: Final = Statement(
    "UPDATE {edge} SET settled = {true} WHERE id {any:edges} AND settled IS NOT TRUE RETURNING id"
)
_COUNT: Final = Statement(
    "UPDATE {job} SET pending_parents = pending_parents - %(settled)s WHERE id {any:jobs}"
)
_RELEASE: Final = Statement(
    "UPDATE {job} SET state = 'scheduled', due_at = %(due)s WHERE id {any:jobs}"
)
# A row that is there spares another one only if it stays until we commit, so it is locked; one that
# somebody else has may be on its way out.
_QUEUE_ALL: Final = """
INSERT INTO {settle} (parent_id) SELECT o.id FROM {ids:parents}
WHERE NOT EXISTS (SELECT 1 FROM {settle} s WHERE s.parent_id = o.id {skip_locked:s})
"""
_AND_OPEN: Final = """
AND (SELECT d.id FROM {edge} d WHERE d.parent_id = o.id AND {open:d} LIMIT 1) IS NOT NULL
"""
_QUEUE: Final = Statement(_QUEUE_ALL)
_QUEUE_OPEN: Final = Statement(_QUEUE_ALL + _AND_OPEN)
_CANCEL: Final = Statement(
    """
UPDATE {job} SET state = 'cancelled', cause = %(cause)s, terminal_at = %(now)s, unique_live = NULL
WHERE id {any:jobs}
"""
)
_APPEND: Final = Statement(
    """
INSERT INTO {outcome} (job_id, attempt, kind, state, cause, finished_at)
SELECT j.id, j.spent + 1, 'cancelled', 'cancelled', CAST(%(cause)s AS varchar), {instant:now}
FROM {job} j WHERE j.id {any:jobs} ORDER BY j.id
"""
)


class _Edge(NamedTuple):
    """An unsettled edge whose parent is over, as the database writes it."""

    id: int
    parent: Any
    child: Any
    mode: str
    parent_state: str | None
    child_found: Any


@cache
def _open(vendor: str, limit: int) -> Statement:
    return Statement((_OPEN_COLUMNS + _OPEN[vendor]).format(limit=limit))


def settle_dependents(
    room: Room,
    parents: Sequence[UUID],
    *,
    now: datetime,
    bound: int = MAX_SETTLED_IN_REPORT,
) -> None:
    """Settle what waits for ``parents``, which are over, and for what is cancelled thereby."""
    level: list[Any] = list(parents)
    while level:
        # One more than may be settled tells whether any is left.
        found = _open_edges(room, level, bound + 1)
        edges = found[:bound]
        bound -= len(edges)
        locked = _locked(room, edges)
        free = [e for e in edges if e.child_found is None or e.child in locked]
        mine = _marked(room, free)
        if len(free) < len(found):
            # Of some there are more than may be settled here, of others somebody holds a child.
            room.executor.execute(_QUEUE_OPEN, {"parents": level})
        level = _move_children(room, mine, locked, now=now)


# A row that somebody else has, who links a child in an open transaction, is left to the sweep.
_LEAVE: Final = Statement(
    """
DELETE FROM {settle} WHERE id IN (SELECT s.id FROM {settle} s WHERE s.id {any:rows}
  {skip_locked:s})
"""
)


def leave_queue(room: Room, rows: Sequence[int]) -> None:
    """Take rows out of the settle queue, in the transaction that settles their parents."""
    room.executor.execute(_LEAVE, {"rows": list(rows)})


def queue_parents(room: Room, parents: Sequence[UUID]) -> None:
    """Leave the edges of ``parents`` to the sweep."""
    if parents:
        room.executor.execute(_QUEUE, {"parents": list(parents)})


def _open_edges(room: Room, parents: Sequence[Any], limit: int) -> list[_Edge]:
    statement = _open(room.executor.vendor, limit)
    rows = room.executor.fetch(statement, {"parents": list(parents)})
    return [_Edge._make(row) for row in rows]


def _locked(room: Room, edges: Sequence[_Edge]) -> dict[Any, tuple[Any, ...]]:
    children = sorted({edge.child for edge in edges})
    if not children:
        return {}
    return {row[0]: row for row in room.executor.fetch(_CHILDREN, {"children": children})}


def _marked(room: Room, edges: Sequence[_Edge]) -> list[_Edge]:
    if not edges:
        return []
    rows = room.executor.fetch(_MARK, {"edges": [edge.id for edge in edges]})
    marked = {row[0] for row in rows}
    return [edge for edge in edges if edge.id in marked and edge.child_found is not None]


def _move_children(
    room: Room, edges: Sequence[_Edge], locked: dict[Any, tuple[Any, ...]], *, now: datetime
) -> list[Any]:
    """Count the marked edges off their children; return the children that were cancelled."""
    settled: dict[Any, int] = {}
    doomed: set[Any] = set()
    for edge in edges:
        settled[edge.child] = settled.get(edge.child, 0) + 1
        state = None if edge.parent_state is None else JobState(edge.parent_state)
        if is_dead(EdgeMode(edge.mode), state):
            doomed.add(edge.child)
    room.executor.execute_many(_COUNT, _grouped("settled", settled))
    awaiting = [locked[child] for child in settled if locked[child][1] == JobState.AWAITING]
    cancelled = [row for row in awaiting if row[0] in doomed]
    free = [row for row in awaiting if row[0] not in doomed and row[2] == settled[row[0]]]
    due = {row[0]: released_due(room.executor.values.instant(row[3]), now=now) for row in free}
    room.executor.execute_many(_RELEASE, _grouped("due", due))
    announce(room, [(row[4], -row[5]) for row in free if due[row[0]] <= now])
    doomed_now = [row[0] for row in cancelled]
    cancel_rows(room, doomed_now, cause=Cause.PARENT, now=now)
    return doomed_now


def _grouped(name: str, values: Mapping[Any, object]) -> list[dict[str, object]]:
    """Return one line of parameters for each value, with the jobs that it is for."""
    jobs: dict[object, list[Any]] = {}
    for job, value in values.items():
        jobs.setdefault(value, []).append(job)
    return [{name: value, "jobs": found} for value, found in jobs.items()]


def cancel_rows(room: Room, jobs: Sequence[Any], *, cause: Cause, now: datetime) -> None:
    """Cancel locked jobs that no lease holds."""
    if jobs:
        parameters = {"jobs": list(jobs), "cause": cause.value, "now": now}
        room.executor.execute(_CANCEL, parameters)
        append_cancelled(room, jobs, cause=cause, now=now)


def append_cancelled(room: Room, jobs: Sequence[Any], *, cause: Cause, now: datetime) -> None:
    """Write down that jobs were cancelled without a lease, and react to it."""
    if jobs:
        observe_ends(room, jobs, among=(JobState.CANCELLED,), now=now)
        if room.settings.history is not History.OFF:
            parameters = {"jobs": list(jobs), "cause": cause.value, "now": now}
            room.executor.execute(_APPEND, parameters)
