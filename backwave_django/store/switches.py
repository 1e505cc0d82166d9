"""Operator actions on queues and pumps: pause, resume, drain."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from backwave_django.core.contract import ActionResult
from backwave_django.store.audit import Audit
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import Actor
    from backwave_django.store.room import Room

ADD_QUEUE: Final = Statement(
    "INSERT INTO {queue} (name, paused) VALUES (%(queue)s, {false}) ON CONFLICT (name) DO NOTHING"
)
_QUEUE: Final = Statement(
    "SELECT q.paused, q.paused_until FROM {queue} q WHERE q.name = %(queue)s {lock:q}"
)
_PAUSE: Final = Statement(
    """
UPDATE {queue} SET paused = {true}, paused_at = %(now)s, paused_until = %(until)s,
  paused_by = %(who)s, pause_reason = %(reason)s WHERE name = %(queue)s
"""
)
_RESUME: Final = Statement(
    """
UPDATE {queue} SET paused = {false}, paused_at = NULL, paused_until = NULL, paused_by = NULL,
  pause_reason = NULL WHERE name = %(queue)s
"""
)
_PUMP: Final = Statement(
    """
SELECT p.drain_requested, p.seen_at, p.lease_seconds FROM {pump} p
WHERE p.id = %(pump)s AND p.stopped_at IS NULL {lock:p}
"""
)
_DRAIN: Final = Statement("UPDATE {pump} SET drain_requested = {true} WHERE id = %(pump)s")


def pause(room: Room, queue: str, *, until: datetime | None, actor: Actor, now: datetime) -> None:
    """Stop claims from ``queue``; see ``Store.pause``."""
    with room.executor.transaction():
        before = _queue_view(room, queue)
        room.executor.execute(
            _PAUSE,
            {
                "queue": queue,
                "until": until,
                "who": actor.name,
                "reason": actor.reason,
                "now": now,
            },
        )
        _audit_queue(room, "pause", queue, before, actor=actor, now=now)


def resume(room: Room, queue: str, *, actor: Actor, now: datetime) -> None:
    """Let ``queue`` be claimed again; see ``Store.resume``."""
    with room.executor.transaction():
        before = _queue_view(room, queue)
        room.executor.execute(_RESUME, {"queue": queue})
        _audit_queue(room, "resume", queue, before, actor=actor, now=now)


def _audit_queue(
    room: Room, action: str, queue: str, before: dict[str, object], *, actor: Actor, now: datetime
) -> None:
    audit = Audit(room, actor, now)
    audit.note(action, ("queue", queue), before, _queue_view(room, queue))
    audit.write()


def _queue_view(room: Room, queue: str) -> dict[str, object]:
    """Return whether the queue is paused; its row is made, and locked, by looking."""
    room.executor.execute(ADD_QUEUE, {"queue": queue})
    paused, until = room.executor.fetch(_QUEUE, {"queue": queue})[0]
    instant = room.executor.values.instant_or_none(until)
    return {"paused": bool(paused), "until": None if instant is None else instant.isoformat()}


def request_drain(room: Room, pump_id: UUID, *, actor: Actor, now: datetime) -> bool:
    """Ask a pump to drain; see ``Store.request_drain``."""
    with room.executor.transaction():
        rows = room.executor.fetch(_PUMP, {"pump": pump_id})
        audit = Audit(room, actor, now)
        target = ("pump", str(pump_id))
        live = bool(rows) and now < room.executor.values.instant(rows[0][1]) + timedelta(
            seconds=rows[0][2]
        )
        if live:
            room.executor.execute(_DRAIN, {"pump": pump_id})
            before = {"drain_requested": bool(rows[0][0])}
            audit.note("drain", target, before, {"drain_requested": True})
        else:
            audit.note("drain", target, {}, {}, ActionResult.GONE)
        audit.write()
    return live
