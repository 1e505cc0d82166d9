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
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from backwave_django.store.endings import APPEND, END, ending
from backwave_django.store.hints import announce
from backwave_django.store.names import Statement
from backwave_django.store.observing import observe_ends

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.store.room import Room

# No joins: whatever the planner believes of the tables, jobs are looked up by their keys.
_OPEN: Final = """
SELECT d.id, d.parent_id, d.child_id, d.mode, (SELECT p.state FROM {{job}} p
  WHERE p.id = d.parent_id), (SELECT c.id FROM {{job}} c WHERE c.id = d.child_id)
FROM {{edge}} d WHERE d.parent_id {{any:parents}} AND NOT d.settled
ORDER BY d.parent_id, d.child_id LIMIT {limit}
"""
_CHILDREN: Final = Statement(
    """
SELECT j.id, j.state, j.pending_parents, j.due_at, j.spent, j.queue, j.priority FROM {job} j
WHERE j.id {any:children} ORDER BY j.id {skip_locked:j}
"""
)
# A child's row is locked by now; whoever marked an edge before us has committed.
_MARK: Final = Statement(
    "UPDATE {edge} SET settled = {true} WHERE id {any:edges} AND NOT settled RETURNING id"
)
_COUNT: Final = Statement(
    "UPDATE {job} SET pending_parents = pending_parents - %(settled)s WHERE id = %(job)s"
)
_RELEASE: Final = Statement(
    "UPDATE {job} SET state = 'scheduled', due_at = %(due)s WHERE id = %(job)s"
)
_QUEUE: Final = Statement(
    """
INSERT INTO {settle} (parent_id) SELECT {uuid:parent}
WHERE NOT EXISTS (SELECT 1 FROM {settle} s WHERE s.parent_id = %(parent)s)
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
def _open(limit: int) -> Statement:
    return Statement(_OPEN.format(limit=limit))


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
        edges, left = _open_edges(room, level, bound)
        bound -= len(edges)
        locked = _locked(room, edges)
        mine = _marked(room, [e for e in edges if e.child_found is None or e.child in locked])
        held = [e.parent for e in edges if e.child_found is not None and e.child not in locked]
        queue_parents(room, [*left, *held])
        level = _move_children(room, mine, locked, now=now)


_LEAVE: Final = Statement("DELETE FROM {settle} WHERE id {any:rows}")


def leave_queue(room: Room, rows: Sequence[int]) -> None:
    """Take rows out of the settle queue, in the transaction that settles their parents."""
    room.executor.execute(_LEAVE, {"rows": list(rows)})


def _open_edges(room: Room, parents: Sequence[Any], bound: int) -> tuple[list[_Edge], list[Any]]:
    """Return at most ``bound`` unsettled edges, and the parents that have more of them.

    If there are more, parents come as given, the children of each by id.
    """
    # One more than may be settled tells whether any is left.
    edges = _fetch_open(room, parents, bound + 1)
    if len(edges) <= bound:
        return edges, []
    found: list[_Edge] = []
    left = []
    for parent in parents:
        edges = _fetch_open(room, [parent], bound - len(found) + 1)
        if len(edges) > bound - len(found):
            left.append(parent)
        found += edges[: bound - len(found)]
    return found, left


def queue_parents(room: Room, parents: Sequence[Any]) -> None:
    """Leave the edges of ``parents`` to the sweep."""
    rows = [{"parent": parent} for parent in dict.fromkeys(parents)]
    room.executor.execute_many(_QUEUE, rows)


def _fetch_open(room: Room, parents: Sequence[Any], limit: int) -> list[_Edge]:
    rows = room.executor.fetch(_open(limit), {"parents": list(parents)})
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
    room.executor.execute_many(
        _COUNT, [{"job": child, "settled": count} for child, count in settled.items()]
    )
    awaiting = [locked[child] for child in settled if locked[child][1] == JobState.AWAITING]
    cancelled = [row for row in awaiting if row[0] in doomed]
    free = [row for row in awaiting if row[0] not in doomed and row[2] == settled[row[0]]]
    due = {row[0]: released_due(room.executor.values.instant(row[3]), now=now) for row in free}
    room.executor.execute_many(_RELEASE, [{"job": job, "due": at} for job, at in due.items()])
    announce(room, [(row[5], -row[6]) for row in free if due[row[0]] <= now])
    cancel_rows(room, [(row[0], row[4]) for row in cancelled], cause=Cause.PARENT, now=now)
    return [row[0] for row in cancelled]


def cancel_rows(
    room: Room, jobs: Sequence[tuple[Any, int]], *, cause: Cause, now: datetime
) -> None:
    """Cancel locked jobs that no lease holds: pairs of an id and what is spent."""
    room.executor.execute_many(END, _lines(jobs, cause=cause, now=now))
    append_cancelled(room, jobs, cause=cause, now=now)


def append_cancelled(
    room: Room, jobs: Sequence[tuple[Any, int]], *, cause: Cause, now: datetime
) -> None:
    """Write down that jobs were cancelled without a lease, and react to it."""
    ended = [job_id for job_id, _spent in jobs]
    observe_ends(room, ended, among=(JobState.CANCELLED,), now=now)
    if room.settings.history is not History.OFF:
        room.executor.execute_many(APPEND, _lines(jobs, cause=cause, now=now))


def _lines(
    jobs: Sequence[tuple[Any, int]], *, cause: Cause, now: datetime
) -> list[dict[str, object]]:
    return [
        ending(
            job=job_id,
            spent=spent,
            kind=OutcomeKind.CANCELLED.value,
            state=JobState.CANCELLED.value,
            cause=cause.value,
            at=now,
        )
        for job_id, spent in jobs
    ]
