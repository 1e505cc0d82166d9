"""Heartbeats: leases are renewed, and news goes back and forth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from backwave_django.core.leases import BeatAnswer, LeaseHealth, Renewal
from backwave_django.store.names import Statement
from backwave_django.store.texts import cleaned

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.leases import Beat, Progress
    from backwave_django.store.room import Room

_OWNED: Final = Statement(
    "SELECT l.id, l.cancel_requested FROM {lease} l WHERE l.pump_id = %(pump)s"
)
_RENEW: Final = Statement("UPDATE {lease} SET expires_at = %(expires)s WHERE id {any:leases}")
_PROGRESS: Final = Statement(
    """
UPDATE {lease} SET progress_done = %(done)s, progress_total = %(total)s,
  progress_message = %(message)s WHERE id = %(lease)s
"""
)
_NEWS: Final = """
UPDATE {pump} p SET seen_at = %(now)s, health = %(health)s, problem = %(problem)s,
  executing = %(executing)s, abandoned = %(abandoned)s, succeeded = %(succeeded)s,
  failed = %(failed)s, memory_bytes = %(memory)s
"""
_SEEN: Final = Statement(
    _NEWS.replace(" p SET", " SET") + "WHERE id = %(pump)s RETURNING drain_requested"
)
# Rows that another transaction holds are stepped over: leases are busy then, and the registry
# row, which an operator may hold, is written by the next beat. The statement is planned once, and
# perhaps over an empty table: IS TRUE and OFFSET 0 leave one index to go by each time.
_RENEWING: Final = """
WITH held AS MATERIALIZED (
  SELECT h.id FROM (
    SELECT g.id FROM unnest(%(leases)s::uuid[]) AS g(id) ORDER BY g.id) o
  CROSS JOIN LATERAL (SELECT l.id FROM {lease} l WHERE l.id = o.id
    AND (l.pump_id = %(pump)s) IS TRUE FOR UPDATE SKIP LOCKED) h),
said AS MATERIALIZED (
  SELECT * FROM unnest(%(progress)s::uuid[], %(done)s::bigint[], %(total)s::bigint[],
    %(messages)s::text[]) AS s(id, done, total, message)),
renewed AS (
  UPDATE {lease} l SET expires_at = %(expires)s,
    progress_done = CASE WHEN s.id IS NULL THEN l.progress_done ELSE s.done END,
    progress_total = CASE WHEN s.id IS NULL THEN l.progress_total ELSE s.total END,
    progress_message = CASE WHEN s.id IS NULL THEN l.progress_message ELSE s.message END
  FROM held h LEFT JOIN said s ON s.id = h.id
  WHERE l.id = h.id AND l.id = ANY(%(leases)s::uuid[])
  RETURNING l.id, l.cancel_requested),
mine AS MATERIALIZED (
  SELECT p.id FROM {pump} p WHERE p.id = %(pump)s FOR UPDATE OF p SKIP LOCKED),
seen AS ("""
_ANSWER: Final = """
  FROM mine m WHERE p.id = m.id)
SELECT l.id, r.id IS NOT NULL, COALESCE(r.cancel_requested, l.cancel_requested), NULL,
  clock_timestamp()
FROM (SELECT o.id, o.cancel_requested FROM {lease} o WHERE o.pump_id = %(pump)s OFFSET 0) l
LEFT JOIN renewed r ON r.id = l.id
UNION ALL
SELECT NULL, NULL, NULL, p.drain_requested, clock_timestamp()
FROM (VALUES (1)) AS one LEFT JOIN {pump} p ON p.id = %(pump)s
"""
_AT_ONCE: Final = Statement(_RENEWING + _NEWS + _ANSWER)
_MESSAGE_CHARS: Final = 200


class _Heard(NamedTuple):
    """What the database said: leases renewed and owned, each with whether it is to be cancelled.

    ``drain`` is ``None`` when the registry has no row of the pump.
    """

    renewed: dict[UUID, bool]
    owned: dict[UUID, bool]
    drain: bool | None
    clock: datetime


def heartbeat(room: Room, beat: Beat, *, now: datetime) -> BeatAnswer:
    """Renew the listed leases and exchange news; see ``Store.heartbeat``."""
    say = _say_at_once if room.executor.vendor == "postgresql" else _say_in_steps
    heard = say(room, beat, now=now)
    listed = set(beat.leases)
    return BeatAnswer(
        renewals=tuple(_renewal(lease, heard) for lease in beat.leases),
        unlisted=tuple(lease for lease in heard.owned if lease not in listed),
        drain_requested=bool(heard.drain),
        registered=heard.drain is not None,
        clock=heard.clock,
    )


def _renewal(lease: UUID, heard: _Heard) -> Renewal:
    if lease in heard.renewed:
        return Renewal(lease, LeaseHealth.RENEWED, heard.renewed[lease])
    if lease in heard.owned:
        return Renewal(lease, LeaseHealth.BUSY, heard.owned[lease])
    return Renewal(lease, LeaseHealth.LOST)


def _say_at_once(room: Room, beat: Beat, *, now: datetime) -> _Heard:
    progress = beat.progress
    rows = room.executor.fetch(
        _AT_ONCE,
        {
            **_status(beat, now=now),
            "leases": list(beat.leases),
            "expires": now + beat.lease_duration,
            "progress": [each.lease_id for each in progress],
            "done": [each.done for each in progress],
            "total": [each.total for each in progress],
            "messages": [_message(each) for each in progress],
        },
    )
    leases, (registry,) = rows[:-1], rows[-1:]
    return _Heard(
        renewed={row[0]: row[2] for row in leases if row[1]},
        owned={row[0]: row[2] for row in leases},
        drain=registry[3],
        clock=room.told(registry[4]),
    )


def _say_in_steps(room: Room, beat: Beat, *, now: datetime) -> _Heard:
    executor = room.executor
    uuid = executor.values.uuid
    with executor.transaction():
        rows = executor.fetch(_OWNED, {"pump": beat.pump_id})
        owned = {uuid(row[0]): bool(row[1]) for row in rows}
        held = [lease for lease in beat.leases if lease in owned]
        executor.execute(_RENEW, {"leases": held, "expires": now + beat.lease_duration})
        executor.execute_many(
            _PROGRESS,
            [
                {
                    "lease": each.lease_id,
                    "done": each.done,
                    "total": each.total,
                    "message": _message(each),
                }
                for each in beat.progress
                if each.lease_id in held
            ],
        )
        seen = executor.fetch(_SEEN, _status(beat, now=now))
    return _Heard(
        renewed={lease: owned[lease] for lease in held},
        owned=owned,
        drain=bool(seen[0][0]) if seen else None,
        clock=room.clock(),
    )


def _message(progress: Progress) -> str:
    return cleaned(progress.message)[:_MESSAGE_CHARS]


def _status(beat: Beat, *, now: datetime) -> dict[str, Any]:
    status = beat.status
    return {
        "pump": beat.pump_id,
        "now": now,
        "health": status.health.value,
        "problem": cleaned(status.problem),
        "executing": status.executing,
        "abandoned": status.abandoned,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "memory": status.memory_bytes,
    }
