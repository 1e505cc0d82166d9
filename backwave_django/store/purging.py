"""The purge: terminal jobs past their retention, with all that hangs on them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.bounds import PURGE_BATCH
from backwave_django.core.contract import SweepAnswer
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.store.room import Room

_MAY_GO: Final = """
  NOT EXISTS (SELECT 1 FROM {{edge}} d JOIN {{job}} c ON c.id = d.child_id
    WHERE d.parent_id = j.id AND c.state NOT IN {{terminal}})
  AND (j.workflow IS NULL OR NOT EXISTS (SELECT 1 FROM {{job}} w
    WHERE w.workflow = j.workflow AND w.state NOT IN {{terminal}}))
"""
_OLD: Final = (
    """
SELECT j.id, j.terminal_at FROM {{job}} j
WHERE j.state = '{state}' AND j.state IN {{terminal}} AND j.terminal_at < %(horizon)s AND
"""
    + _MAY_GO
    + "ORDER BY j.terminal_at, j.id LIMIT {limit}"
)
# Locked and looked at once more: an operator may have brought one back meanwhile.
_LOCK: Final = Statement(
    "SELECT j.id, j.workflow FROM {job} j WHERE j.id {any:jobs} AND j.state IN {terminal}"
    " ORDER BY j.id {skip_locked:j}"
)
_HANGING_ON: Final = tuple(
    Statement(text)
    for text in (
        "DELETE FROM {outcome} WHERE job_id {any:jobs}",
        "DELETE FROM {edge} WHERE parent_id {any:jobs}",
        "DELETE FROM {edge} WHERE child_id {any:jobs}",
        "DELETE FROM {settle} WHERE parent_id {any:jobs}",
        "DELETE FROM {job} WHERE id {any:jobs}",
    )
)
_WORKFLOWS: Final = Statement(
    "DELETE FROM {workflow} WHERE id {any:flows} AND NOT EXISTS"
    " (SELECT 1 FROM {job} j WHERE j.workflow = {workflow}.id)"
)
_ACTIONS: Final = Statement(
    """
DELETE FROM {action} WHERE id IN (
  SELECT a.id FROM {action} a WHERE a.at < %(horizon)s ORDER BY a.at LIMIT %(most)s)
"""
)
_PUMPS: Final = Statement(
    "DELETE FROM {pump} WHERE seen_at < %(horizon)s"
    " AND NOT EXISTS (SELECT 1 FROM {lease} l WHERE l.pump_id = {pump}.id)"
)


# Mostly there is nothing: one look tells, without a transaction.
_OLD_JOB: Final = (
    "EXISTS (SELECT 1 FROM {{job}} j WHERE j.state = '{state}'"
    " AND j.state IN {{terminal}} AND j.terminal_at < %({state})s)"
)
_OLD_ACTION: Final = "EXISTS (SELECT 1 FROM {action} a WHERE a.at < %(actions)s)"
_OLD_PUMP: Final = "EXISTS (SELECT 1 FROM {pump} p WHERE p.seen_at < %(pumps)s)"


@cache
def _anything(names: tuple[str, ...]) -> Statement:
    texts = {"actions": _OLD_ACTION, "pumps": _OLD_PUMP}
    looks = [texts.get(name) or _OLD_JOB.format(state=name) for name in names]
    return Statement(f"SELECT {' OR '.join(looks) or '{false}'}, {{clock}}")


def _look(room: Room, *, now: datetime) -> tuple[bool, datetime]:
    """Return whether anything is past its retention, with the clock."""
    retention = room.settings.retention
    horizons = {state.value: at for state, at in retention.horizons(now=now)}
    if retention.operator_actions is not None:
        horizons["actions"] = now - retention.operator_actions
    if retention.dead_pumps is not None:
        horizons["pumps"] = now - retention.dead_pumps
    ((found, clock),) = room.executor.fetch(_anything(tuple(horizons)), horizons)
    return bool(found), room.told(clock)


@cache
def _old(state: str, limit: int) -> Statement:
    return Statement(_OLD.format(state=state, limit=limit))


def purge(room: Room, *, limit: int, now: datetime) -> SweepAnswer:
    """Delete what is past its retention; see ``Store.purge``."""
    anything, clock = _look(room, now=now)
    if not anything:
        return SweepAnswer(count=0, full=False, clock=clock)
    with room.executor.transaction():
        room.executor.relax()
        count = _purge_jobs(room, limit=limit, now=now)
        _purge_records(room, now=now)
    return SweepAnswer(count=count, full=count == limit, clock=room.clock())


def _purge_jobs(room: Room, *, limit: int, now: datetime) -> int:
    old: list[tuple[Any, Any]] = []
    for state, horizon in room.settings.retention.horizons(now=now):
        rows = room.executor.fetch(_old(state.value, limit), {"horizon": horizon})
        old += [(room.executor.values.instant(at), job_id) for job_id, at in rows]
    chosen = [job_id for _, job_id in sorted(old)[:limit]]
    if not chosen:
        return 0
    rows = room.executor.fetch(_LOCK, {"jobs": chosen})
    _delete(room, [row[0] for row in rows], [row[1] for row in rows if row[1] is not None])
    return len(rows)


def _delete(room: Room, jobs: Sequence[Any], workflows: Sequence[Any]) -> None:
    for statement in _HANGING_ON:
        room.executor.execute(statement, {"jobs": list(jobs)})
    if workflows:
        room.executor.execute(_WORKFLOWS, {"flows": sorted(set(workflows))})


def _purge_records(room: Room, *, now: datetime) -> None:
    retention = room.settings.retention
    if retention.operator_actions is not None:
        room.executor.execute(
            _ACTIONS, {"horizon": now - retention.operator_actions, "most": PURGE_BATCH}
        )
    if retention.dead_pumps is not None:
        room.executor.execute(_PUMPS, {"horizon": now - retention.dead_pumps})
