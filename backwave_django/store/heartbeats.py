"""Heartbeats: leases are renewed, and news goes back and forth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.leases import BeatAnswer, LeaseHealth, Renewal
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.leases import Beat
    from backwave_django.store.room import Room

_OWNED: Final = Statement(
    "SELECT l.id, l.cancel_requested FROM {lease} l WHERE l.pump_id = %(pump)s"
)
_HELD: Final = Statement(
    """
SELECT l.id, l.cancel_requested FROM {lease} l
WHERE l.id {any:leases} AND l.pump_id = %(pump)s ORDER BY l.id {skip_locked:l}
"""
)
_RENEW: Final = Statement("UPDATE {lease} SET expires_at = %(expires)s WHERE id {any:leases}")
_SEEN: Final = Statement(
    """
UPDATE {pump} SET seen_at = %(now)s, health = %(health)s, problem = %(problem)s,
  executing = %(executing)s, abandoned = %(abandoned)s, succeeded = %(succeeded)s,
  failed = %(failed)s, memory_bytes = %(memory)s
WHERE id = %(pump)s RETURNING drain_requested
"""
)
_PROGRESS: Final = Statement(
    """
UPDATE {lease} SET progress_done = %(done)s, progress_total = %(total)s,
  progress_message = %(message)s WHERE id = %(lease)s
"""
)
_MESSAGE_CHARS: Final = 200


def heartbeat(room: Room, beat: Beat, *, now: datetime) -> BeatAnswer:
    """Renew the listed leases and exchange news; see ``Store.heartbeat``."""
    executor = room.executor
    uuid = executor.values.uuid
    with executor.transaction():
        held: dict[UUID, bool] = {}
        if beat.leases:
            parameters = {"leases": list(beat.leases), "pump": beat.pump_id}
            rows = executor.fetch(_HELD, parameters)
            held = {uuid(row[0]): bool(row[1]) for row in rows}
            executor.execute(_RENEW, {"leases": list(held), "expires": now + beat.lease_duration})
        rows = executor.fetch(_OWNED, {"pump": beat.pump_id})
        owned = {uuid(row[0]): bool(row[1]) for row in rows}
        _note_progress(room, beat, held)
        seen = executor.fetch(_SEEN, _status(beat, now=now))
    listed = set(beat.leases)
    return BeatAnswer(
        renewals=tuple(_renewal(lease, held, owned) for lease in beat.leases),
        unlisted=tuple(lease for lease in owned if lease not in listed),
        drain_requested=bool(seen and seen[0][0]),
        registered=bool(seen),
        clock=room.clock(),
    )


def _renewal(lease: UUID, held: dict[UUID, bool], owned: dict[UUID, bool]) -> Renewal:
    if lease in held:
        return Renewal(lease, LeaseHealth.RENEWED, held[lease])
    if lease in owned:
        return Renewal(lease, LeaseHealth.BUSY, owned[lease])
    return Renewal(lease, LeaseHealth.LOST)


def _status(beat: Beat, *, now: datetime) -> dict[str, Any]:
    status = beat.status
    return {
        "pump": beat.pump_id,
        "now": now,
        "health": status.health.value,
        "problem": status.problem,
        "executing": status.executing,
        "abandoned": status.abandoned,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "memory": status.memory_bytes,
    }


def _note_progress(room: Room, beat: Beat, held: dict[UUID, bool]) -> None:
    room.executor.execute_many(
        _PROGRESS,
        [
            {
                "lease": each.lease_id,
                "done": each.done,
                "total": each.total,
                "message": each.message[:_MESSAGE_CHARS],
            }
            for each in beat.progress
            if each.lease_id in held
        ],
    )
