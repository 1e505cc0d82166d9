"""Rows of schedules: read under a lock, written whole. What becomes of one, the core decides."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.schedule_rows import ScheduleRow
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backwave_django.store.executor import Row
    from backwave_django.store.room import Room

#: In the order in which ``row_of`` reads them.
_COLUMNS: Final = (
    *("name", "cron", "every_seconds", "timezone", "wire_name", "queue", "payload"),
    *("payload_version", "priority", "tags", "limit_key", "catch_up", "no_overlap"),
    *("created_at", "owner", "release", "enabled", "retired_at", "cursor", "next_at", "skipped"),
    *("last_skipped_at", "last_skip_reason", "problem"),
)
_LISTED: Final = ", ".join(f'"{name}"' for name in _COLUMNS)
_VALUES: Final = ", ".join("{json:tags}" if name == "tags" else f"%({name})s" for name in _COLUMNS)
_SET: Final = ", ".join(
    f'"{name}" = {{json:tags}}' if name == "tags" else f'"{name}" = %({name})s'
    for name in _COLUMNS[1:]
)

#: The columns of a schedule ``s``.
SELECTED: Final = ", ".join(f's."{name}"' for name in _COLUMNS)

_LOCKED: Final = Statement(
    f"SELECT {SELECTED} FROM {{schedule}} s WHERE s.name {{any:names}} OR s.owner = %(owner)s "  # noqa: S608 - names of ours
    "ORDER BY s.name {lock:s}"
)
_FREE: Final = Statement(
    f"SELECT {SELECTED} FROM {{schedule}} s WHERE s.name {{any:names}} "  # noqa: S608 - names of ours
    "ORDER BY s.name {skip_locked:s}"
)
_INSERT: Final = Statement(
    f"INSERT INTO {{schedule}} ({_LISTED}) VALUES ({_VALUES}) ON CONFLICT (name) DO NOTHING"  # noqa: S608 - names of ours
)
_UPDATE: Final = Statement(f"UPDATE {{schedule}} SET {_SET} WHERE name = %(name)s")  # noqa: S608 - names of ours
_DELETE: Final = Statement("DELETE FROM {schedule} WHERE name = %(name)s")


def row_of(room: Room, row: Row) -> ScheduleRow:
    """Return the schedule that was read by ``SELECTED``."""
    values = room.executor.values
    tags = json.loads(row[9]) if isinstance(row[9], str) else row[9]
    spec = ScheduleSpec(
        name=row[0],
        rule=Rule(cron=row[1], every_seconds=row[2], timezone=row[3]),
        wire_name=row[4],
        queue=row[5],
        payload=row[6],
        payload_version=row[7],
        priority=row[8],
        tags=json.dumps(tags or {}),
        limit_key=row[10],
        catch_up=row[11],
        no_overlap=bool(row[12]),
    )
    return ScheduleRow(
        spec=spec,
        created_at=values.instant(row[13]),
        owner=row[14],
        release=row[15],
        enabled=bool(row[16]),
        retired_at=values.instant_or_none(row[17]),
        cursor=values.instant_or_none(row[18]),
        next_at=values.instant_or_none(row[19]),
        skipped=row[20],
        last_skipped_at=values.instant_or_none(row[21]),
        last_skip_reason=row[22],
        problem=row[23],
    )


def lock_schedules(
    room: Room, names: Iterable[str], *, owner: str | None = None
) -> dict[str, ScheduleRow]:
    """Lock schedules of these names, and all of ``owner``, waiting for whoever holds them."""
    rows = room.executor.fetch(_LOCKED, {"names": sorted(set(names)), "owner": owner})
    return {row[0]: row_of(room, row) for row in rows}


def lock_free_schedules(room: Room, names: Iterable[str]) -> dict[str, ScheduleRow]:
    """Lock schedules of these names, leaving out those that another transaction holds."""
    rows = room.executor.fetch(_FREE, {"names": sorted(set(names))})
    return {row[0]: row_of(room, row) for row in rows}


def insert_schedule(room: Room, row: ScheduleRow) -> bool:
    """Insert a schedule; false when somebody else has just taken its name."""
    return room.executor.execute(_INSERT, _parameters(row)) > 0


def update_schedules(room: Room, rows: Sequence[ScheduleRow]) -> None:
    """Write schedules whose rows are locked."""
    room.executor.execute_many(_UPDATE, [_parameters(row) for row in rows])


def remove_schedule(room: Room, name: str) -> None:
    """Delete a schedule. Its jobs keep its name."""
    room.executor.execute(_DELETE, {"name": name})


def _parameters(row: ScheduleRow) -> dict[str, Any]:
    spec = row.spec
    return {
        "name": spec.name,
        "cron": spec.rule.cron,
        "every_seconds": spec.rule.every_seconds,
        "timezone": spec.rule.timezone,
        "wire_name": spec.wire_name,
        "queue": spec.queue,
        "payload": spec.payload,
        "payload_version": spec.payload_version,
        "priority": spec.priority,
        "tags": spec.tags,
        "limit_key": spec.limit_key,
        "catch_up": str(spec.catch_up),
        "no_overlap": spec.no_overlap,
        "created_at": row.created_at,
        "owner": row.owner,
        "release": row.release,
        "enabled": row.enabled,
        "retired_at": row.retired_at,
        "cursor": row.cursor,
        "next_at": row.next_at,
        "skipped": row.skipped,
        "last_skipped_at": row.last_skipped_at,
        "last_skip_reason": row.last_skip_reason,
        "problem": row.problem,
    }
