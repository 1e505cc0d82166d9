"""The registry of pumps: who runs, and what each knows how to run."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from backwave_django.core.leases import PumpHealth
from backwave_django.store.names import Statement
from backwave_django.store.texts import cleaned

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.leases import PumpInfo
    from backwave_django.store.room import Room

_REGISTER: Final = Statement(
    """
INSERT INTO {pump} (id, "group", node, hostname, pid, boot_id, pid_namespace, version, queues,
  wire_names, pool_size, lease_seconds, health, problem, executing, abandoned, succeeded, failed,
  memory_bytes, drain_requested, started_at, seen_at, stopped_at)
VALUES (%(id)s, %(group)s, %(node)s, %(hostname)s, %(pid)s, %(boot_id)s, %(pid_namespace)s,
  %(version)s, {json:queues}, {json:wire_names}, %(pool_size)s, %(lease_seconds)s, %(health)s, '',
  0, 0, 0, 0, 0, {false}, %(started_at)s, %(now)s, NULL)
ON CONFLICT (id) DO UPDATE SET "group" = excluded."group", node = excluded.node,
  hostname = excluded.hostname, pid = excluded.pid, boot_id = excluded.boot_id,
  pid_namespace = excluded.pid_namespace, version = excluded.version, queues = excluded.queues,
  wire_names = excluded.wire_names, pool_size = excluded.pool_size,
  lease_seconds = excluded.lease_seconds, health = excluded.health, problem = '',
  executing = 0, abandoned = 0, succeeded = 0, failed = 0, memory_bytes = 0,
  started_at = excluded.started_at, seen_at = excluded.seen_at, stopped_at = NULL
"""
)
_RETIRE: Final = Statement(
    """
UPDATE {pump} SET health = %(health)s, problem = %(problem)s, stopped_at = %(now)s
WHERE id = %(id)s
"""
)
_LIVE: Final = Statement(
    "SELECT id, seen_at, lease_seconds, queues, wire_names FROM {pump} WHERE stopped_at IS NULL"
)


def register(room: Room, pump: PumpInfo, *, now: datetime) -> datetime:
    """Write the pump's registry row anew; see ``Store.register``."""
    room.executor.execute(
        _REGISTER,
        {
            "id": pump.id,
            "group": pump.group,
            "node": pump.node,
            "hostname": pump.hostname,
            "pid": pump.pid,
            "boot_id": pump.boot_id,
            "pid_namespace": pump.pid_namespace,
            "version": pump.version,
            "queues": json.dumps(list(pump.queues)),
            "wire_names": json.dumps(dict(pump.wire_names)),
            "pool_size": pump.pool_size,
            "lease_seconds": pump.lease_duration.total_seconds(),
            "health": PumpHealth.HEALTHY.value,
            "started_at": pump.started_at,
            "now": now,
        },
    )
    return room.clock()


def retire(room: Room, *, pump_id: UUID, problem: str, now: datetime) -> None:
    """Note that a pump stopped or halted; see ``Store.retire``."""
    health = PumpHealth.HALTED if problem else PumpHealth.STOPPED
    room.executor.execute(
        _RETIRE, {"id": pump_id, "health": health.value, "problem": cleaned(problem), "now": now}
    )


def live_pumps(room: Room, *, now: datetime) -> dict[UUID, timedelta]:
    """Return the lease duration of each pump that was seen within it and has not stopped."""
    values = room.executor.values
    return {
        values.uuid(row[0]): timedelta(seconds=row[2])
        for row in room.executor.fetch(_LIVE, {})
        if now < values.instant(row[1]) + timedelta(seconds=row[2])
    }


def knows_live(room: Room, *, queue: str, wire_name: str, version: int, now: datetime) -> bool:
    """Tell whether a live pump that serves ``queue`` can run this version of a job type."""
    instant = room.executor.values.instant
    for _id, seen_at, lease_seconds, queues, wire_names in room.executor.fetch(_LIVE, {}):
        if now < instant(seen_at) + timedelta(seconds=lease_seconds):
            newest = _parsed(wire_names).get(wire_name)
            if queue in _parsed(queues) and newest is not None and newest >= version:
                return True
    return False


def _parsed(value: object) -> dict[str, int]:
    """JSON columns come as text where no driver parses them."""
    found: dict[str, int] = json.loads(value) if isinstance(value, str) else value  # type: ignore[assignment]  # a JSON list is only asked for membership
    return found
