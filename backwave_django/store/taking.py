"""Leasing rows: the one statement for plain lanes, and the steps that work everywhere."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.jobs import LeasedJob
from backwave_django.store.names import Statement
from backwave_django.store.picking import PICKING, picking_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.core.retries import RetryTable
    from backwave_django.store.lanes import Lane
    from backwave_django.store.room import Room

LEASING: Final = """
claimed AS (
  UPDATE {job} j SET state = 'leased', run = j.run + 1,
    max_attempts = split_part(COALESCE(%(own)s::jsonb ->> j.wire_name, %(retry)s), ';', 1)::int
  FROM pick WHERE j.id = pick.id AND j.id = ANY (ARRAY(SELECT p.id FROM pick p))
  RETURNING pick.lease_id, j.id, j.wire_name, j.queue, j.run, j.spent, j.payload,
    j.payload_version, j.tags::text AS tags, j.due_at, j.deadline, j.limit_key,
    j.unroutable_since, j.schedule, j.scheduled_for, j.workflow, j.trace,
    COALESCE(%(own)s::jsonb ->> j.wire_name, %(retry)s) AS retry, j.priority, pick.ord),
leased AS (
  INSERT INTO {lease} (id, job_id, queue, limit_key, pump_id, run, acquired_at, expires_at,
    cancel_requested, retry)
  SELECT c.lease_id, c.id, c.queue, c.limit_key, %(pump)s, c.run, %(now)s, %(expires)s, false,
    c.retry FROM claimed c)
"""
#: The columns of a claimed row, in the order of ``LeasedJob``, and two more.
LEASED_COLUMNS: Final = """
SELECT lease_id, id, wire_name, queue, run, spent, payload, payload_version, tags, due_at,
  deadline, limit_key, unroutable_since, schedule, scheduled_for, workflow, trace, retry,
  %(expires)s::timestamptz, priority, clock_timestamp()"""
_ROWS: Final = LEASED_COLUMNS + " FROM claimed ORDER BY ord, due_at, id"
#: Common table expressions that lease at most ``size`` due jobs of plain lanes: of one, or several.
TAKING_PLAIN: Final = {one: pick + LEASING for one, pick in PICKING.items()}
_TAKE_PLAIN: Final = {one: Statement("WITH" + text + _ROWS) for one, text in TAKING_PLAIN.items()}


@lru_cache(maxsize=64)
def _retries_as_json(own: tuple[tuple[str, str], ...]) -> str:
    return json.dumps(dict(own))


def retry_parameters(table: RetryTable) -> dict[str, str]:
    """Return the policies of a claim: the default, and those of single types as one JSON text."""
    own = tuple((name, policy.encode()) for name, policy in table.own.items())
    return {"retry": table.default.encode(), "own": _retries_as_json(own)}


def plain_parameters(
    room: Room, request: ClaimRequest, lanes: Sequence[Lane], size: int, *, now: datetime
) -> dict[str, Any]:
    """Return the parameters of ``TAKING_PLAIN[len(lanes) == 1]``."""
    return {
        **picking_parameters(room.lanes, lanes),
        "now": now,
        "expires": now + request.lease_duration,
        "pump": request.pump_id,
        "size": size,
        **retry_parameters(request.retries),
    }


def take_plain(
    room: Room, request: ClaimRequest, lanes: Sequence[Lane], limit: int, *, now: datetime
) -> list[LeasedJob]:
    """Lease at most ``limit`` due jobs of ``lanes`` in one statement, without any cap."""
    parameters = plain_parameters(room, request, lanes, limit, now=now)
    return taken(room, room.executor.fetch(_TAKE_PLAIN[len(lanes) == 1], parameters), limit)


def taken(room: Room, rows: Sequence[tuple[Any, ...]], size: int) -> list[LeasedJob]:
    """Build the jobs of claimed rows, of ``size`` that were asked for, and remember their lanes."""
    # The last row of each lane is kept: rows come in the order of their lanes.
    last = {(row[3], row[19]): (row[9], row[1]) for row in rows}
    room.lanes.claimed(last, full=len(rows) >= size)
    if not rows:
        return []
    room.told(rows[-1][20])
    return [LeasedJob._make(row[:19]) for row in rows]


_CANDIDATES: Final = """
SELECT j.id FROM {{job}} j WHERE j.state = 'scheduled' AND {lane} AND j.queue = %(queue)s
  AND j.priority = %(priority)s AND j.due_at <= %(now)s
  AND (j.deadline IS NULL OR j.deadline > %(now)s)
ORDER BY j.due_at, j.id LIMIT {limit} {{skip_locked:j}}
"""
_LANES: Final = {
    True: "j.limit_key IS NOT NULL AND j.limit_key = %(key)s",
    False: "j.limit_key IS NULL",
}


@cache
def _candidates(*, keyed: bool, limit: int) -> Statement:
    return Statement(_CANDIDATES.format(lane=_LANES[keyed], limit=limit))


def candidates(room: Room, lane: Lane, limit: int, *, now: datetime) -> list[Any]:
    """Lock at most ``limit`` due jobs of one lane; return their ids as the database writes them."""
    parameters = {"queue": lane.queue, "priority": lane.priority, "key": lane.key, "now": now}
    statement = _candidates(keyed=lane.key is not None, limit=limit)
    return [row[0] for row in room.executor.fetch(statement, parameters)]


_GIVEN_ROWS: Final = """
WITH pick AS MATERIALIZED (
  SELECT p.id, p.ord, gen_random_uuid() AS lease_id
  FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS p(id, ord)),
"""
_GIVEN: Final = Statement(_GIVEN_ROWS + LEASING + _ROWS)


def lease_rows(
    room: Room, request: ClaimRequest, ids: Sequence[Any], *, now: datetime
) -> list[LeasedJob]:
    """Lease jobs that this transaction has locked, in the order of ``ids``."""
    if not ids:
        return []
    if room.executor.vendor == "postgresql":
        parameters = {
            "ids": list(ids),
            "now": now,
            "expires": now + request.lease_duration,
            "pump": request.pump_id,
            **retry_parameters(request.retries),
        }
        rows = room.executor.fetch(_GIVEN, parameters)
        return [LeasedJob._make(row[:19]) for row in rows]
    return _lease_one_by_one(room, request, ids, now=now)


_READ: Final = Statement(
    """
SELECT id, wire_name, queue, run, spent, payload, payload_version, tags, due_at, deadline,
  limit_key, unroutable_since, schedule, scheduled_for, workflow, trace
FROM {job} WHERE id {any:ids}
"""
)
_MARK: Final = Statement(
    "UPDATE {job} SET state = 'leased', run = run + 1, max_attempts = %(most)s WHERE id = %(id)s"
)
_LEASE: Final = Statement(
    """
INSERT INTO {lease} (id, job_id, queue, limit_key, pump_id, run, acquired_at, expires_at,
  cancel_requested, retry)
VALUES (%(lease)s, %(id)s, %(queue)s, %(key)s, %(pump)s, %(run)s, %(now)s, %(expires)s,
  %(cancel)s, %(retry)s)
"""
)


def _lease_one_by_one(
    room: Room, request: ClaimRequest, ids: Sequence[Any], *, now: datetime
) -> list[LeasedJob]:
    values = room.executor.values
    rows = {row[0]: row for row in room.executor.fetch(_READ, {"ids": list(ids)})}
    expires_at = now + request.lease_duration
    jobs = [
        _leased(room, rows[job_id], room.new_id(), request.retries, expires_at=expires_at)
        for job_id in ids
    ]
    written: dict[datetime | UUID, Any] = {
        each: values.bound({"": each})[""] for each in (now, expires_at, request.pump_id)
    }
    room.executor.execute_many(
        _MARK,
        [
            {"id": rows[i][0], "most": int(j.retry.partition(";")[0])}
            for i, j in zip(ids, jobs, strict=True)
        ],
    )
    room.executor.execute_many(
        _LEASE,
        [
            {
                "lease": job.lease_id.hex,
                "id": job_id,
                "queue": job.queue,
                "key": job.limit_key,
                "pump": written[request.pump_id],
                "run": job.run,
                "now": written[now],
                "expires": written[expires_at],
                "cancel": 0,
                "retry": job.retry,
            }
            for job_id, job in zip(ids, jobs, strict=True)
        ],
    )
    return jobs


def _leased(
    room: Room, row: tuple[Any, ...], lease_id: UUID, retries: RetryTable, *, expires_at: datetime
) -> LeasedJob:
    uuid, instant = room.executor.values.uuid_or_none, room.executor.values.instant_or_none
    due_at, job_id = instant(row[8]), uuid(row[0])
    assert due_at is not None
    assert job_id is not None
    return LeasedJob(
        lease_id,
        job_id,
        row[1],
        row[2],
        row[3] + 1,
        row[4],
        row[5],
        row[6],
        row[7],
        due_at,
        instant(row[9]),
        row[10],
        instant(row[11]),
        row[12],
        instant(row[13]),
        uuid(row[14]),
        row[15],
        retries.of(row[1]).encode(),
        expires_at,
    )
