"""Inserting job rows: one, many in one statement, or those whose keys may be taken."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.bounds import ENQUEUE_CHUNK
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import NewJob
    from backwave_django.store.room import Room

_COLUMNS: Final = """
INSERT INTO {job} (id, wire_name, queue, state, priority, due_at, deadline, run, spent, payload,
  payload_version, tags, limit_key, pending_parents, schedule, scheduled_for, workflow, trace,
  created_at)
"""
#: What few jobs have. A statement on Django's connection is read and planned for each enqueue, so
#: it names what there is to insert, and leaves the rest to be NULL.
_RARE: Final = {
    "deadline": "{instant:deadline}",
    "limit_key": "%(limit_key)s",
    "schedule": "%(schedule)s",
    "scheduled_for": "{instant:scheduled_for}",
    "workflow": "%(workflow)s",
    "trace": "%(trace)s",
}
_SOMETIMES: Final = (*_RARE, "due_at", "clock")
_ONE: Final = """
INSERT INTO {{job}} (id, wire_name, queue, state, priority, due_at, run, spent, payload,
  payload_version, tags, pending_parents, created_at{columns})
VALUES (%(id)s, %(wire_name)s, %(queue)s, 'scheduled', %(priority)s, {due}, 0, 0, %(payload)s,
  %(payload_version)s, {{json:tags}}, 0, {created}{values})
"""


@cache
def _one(given: frozenset[str]) -> Statement:
    """Return the statement for one job that has, of what is not always there, what is ``given``."""
    created = "{instant:clock}" if "clock" in given else "{now}"
    rare = {column: value for column, value in _RARE.items() if column in given}
    text = _ONE.format(
        columns="".join(f", {column}" for column in rare),
        values="".join(f", {value}" for value in rare.values()),
        created=created,
        due=f"COALESCE({{instant:due_at}}, {created})" if "due_at" in given else created,
    )
    return Statement(text)


#: What a batch of jobs may have in common, with its type. A column of one value is sent as that.
_SHARED: Final = {
    "wire_name": "text",
    "queue": "text",
    "priority": "smallint",
    "due_at": "timestamptz",
    "deadline": "timestamptz",
    "payload_version": "int",
    "tags": "text",
    "limit_key": "text",
    "schedule": "text",
    "scheduled_for": "timestamptz",
    "workflow": "uuid",
    "trace": "text",
}
_MANY: Final = (
    _COLUMNS
    + """
SELECT n.id, {wire_name}, {queue}, 'scheduled', {priority},
  COALESCE({due_at}, %(clock)s::timestamptz, statement_timestamp()), {deadline}, 0, 0, n.payload,
  {payload_version}, {tags}::jsonb, {limit_key}, 0, {schedule}, {scheduled_for}, {workflow},
  {trace}, COALESCE(%(clock)s::timestamptz, statement_timestamp())
FROM unnest(string_to_array(%(id)s, ',')::uuid[], {arrays}) AS n(id, {names})
"""
)


@cache
def _many(varying: tuple[str, ...]) -> Statement:
    """Return the statement for jobs that differ in ``varying``, their ids and payloads."""
    words: dict[str, str] = {
        name: f"n.{name}" if name in varying else f"%({name})s::{kind}"
        for name, kind in _SHARED.items()
    }
    kinds = {"payload": "text"} | {name: _SHARED[name] for name in varying}
    words["arrays"] = ", ".join(f"%({name})s::{kind}[]" for name, kind in kinds.items())
    words["names"] = ", ".join(kinds)
    return Statement(_MANY.replace("{job}", "{{job}}").format(**words))


_KEYED: Final = Statement(
    """
INSERT INTO {job} (id, wire_name, queue, state, priority, due_at, deadline, run, spent, payload,
  payload_version, tags, limit_key, pending_parents, schedule, scheduled_for, workflow, trace,
  created_at, unique_key, unique_live, cause, terminal_at)
SELECT n.id, n.wire_name, n.queue, n.state, n.priority,
  COALESCE(n.due_at, %(clock)s::timestamptz, statement_timestamp()), n.deadline, 0, 0, n.payload,
  n.payload_version, n.tags::jsonb, n.limit_key, 0, n.schedule, n.scheduled_for, n.workflow,
  n.trace, COALESCE(%(clock)s::timestamptz, statement_timestamp()), n.unique_key,
  CASE WHEN n.state = 'cancelled' THEN NULL ELSE n.unique_key END,
  CASE WHEN n.state = 'cancelled' THEN 'superseded' END,
  CASE WHEN n.state = 'cancelled' THEN COALESCE(%(clock)s::timestamptz, statement_timestamp()) END
FROM unnest(%(id)s::uuid[], %(wire_name)s::text[], %(queue)s::text[], %(priority)s::smallint[],
  %(due_at)s::timestamptz[], %(deadline)s::timestamptz[], %(payload)s::text[],
  %(payload_version)s::int[], %(tags)s::text[], %(limit_key)s::text[], %(schedule)s::text[],
  %(scheduled_for)s::timestamptz[], %(workflow)s::uuid[], %(trace)s::text[],
  %(unique_key)s::text[], %(state)s::text[]) WITH ORDINALITY
  AS n(id, wire_name, queue, priority, due_at, deadline, payload, payload_version, tags,
    limit_key, schedule, scheduled_for, workflow, trace, unique_key, state, ord)
ORDER BY n.ord
ON CONFLICT (unique_live) WHERE unique_live IS NOT NULL DO NOTHING RETURNING id
"""
)
_KEYED_ONE: Final = Statement(
    """
INSERT INTO {job} (id, wire_name, queue, state, priority, due_at, deadline, run, spent, payload,
  payload_version, tags, limit_key, pending_parents, schedule, scheduled_for, workflow, trace,
  created_at, unique_key, unique_live, cause, terminal_at)
VALUES (%(id)s, %(wire_name)s, %(queue)s, %(state)s, %(priority)s,
  COALESCE(%(due_at)s, %(clock)s), %(deadline)s, 0, 0, %(payload)s, %(payload_version)s, %(tags)s,
  %(limit_key)s, 0, %(schedule)s, %(scheduled_for)s, %(workflow)s, %(trace)s, %(clock)s,
  %(unique_key)s, CASE WHEN %(state)s = 'cancelled' THEN NULL ELSE %(unique_key)s END,
  CASE WHEN %(state)s = 'cancelled' THEN 'superseded' END,
  CASE WHEN %(state)s = 'cancelled' THEN %(clock)s END)
"""
)


def insert_plain(room: Room, jobs: Sequence[NewJob]) -> None:
    """Insert jobs without keys and parents: one statement for up to a thousand of them."""
    executor = room.executor
    clock = _clock(room)
    if len(jobs) == 1:
        values = _values(jobs[0], clock)
        executor.execute(_one(_given([values])), values)
    elif executor.vendor == "sqlite":
        rows = [_values(job, clock) for job in jobs]
        with executor.transaction():
            executor.execute_many(_one(_given(rows)), rows)
    elif len(jobs) <= ENQUEUE_CHUNK:
        _insert_many(room, jobs, clock)
    else:
        # All of them or none, also where every statement commits.
        with executor.transaction():
            for start in range(0, len(jobs), ENQUEUE_CHUNK):
                _insert_many(room, jobs[start : start + ENQUEUE_CHUNK], clock)


def _clock(room: Room) -> datetime | None:
    """SQLite's own clock is written as Django writes instants; PostgreSQL puts in its own."""
    if room.executor.vendor == "sqlite" or room.fixed_clock is not None:
        return room.clock()
    return None


def _given(rows: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return what of the columns that are not always there some row has."""
    return frozenset(name for name in _SOMETIMES if any(row[name] is not None for row in rows))


def _values(job: NewJob, clock: datetime | None) -> dict[str, Any]:
    return {
        "id": job.id,
        "wire_name": job.wire_name,
        "queue": job.queue,
        "priority": -job.priority,
        "due_at": job.due_at,
        "deadline": job.deadline,
        "payload": job.payload,
        "payload_version": job.payload_version,
        "tags": job.tags,
        "limit_key": job.limit_key,
        "schedule": job.schedule,
        "scheduled_for": job.scheduled_for,
        "workflow": job.workflow,
        "trace": job.trace,
        "clock": clock,
    }


def _insert_many(room: Room, jobs: Sequence[NewJob], clock: datetime | None) -> None:
    """Send a column at a time: many jobs come at once, and mostly differ in two of them."""
    columns: dict[str, list[Any]] = {name: list(map(attrgetter(name), jobs)) for name in _SHARED}
    columns["priority"] = [-priority for priority in columns["priority"]]
    size = len(jobs)
    varying = tuple(name for name, found in columns.items() if found.count(found[0]) < size)
    parameters: dict[str, Any] = {
        name: found if name in varying else found[0] for name, found in columns.items()
    }
    parameters["id"] = ",".join([job.id.hex for job in jobs])
    parameters["payload"] = [job.payload for job in jobs]
    parameters["clock"] = clock
    room.executor.execute(_many(varying), parameters)


def insert_related(
    room: Room, jobs: Sequence[NewJob], *, superseded: Collection[UUID], clock: datetime
) -> set[UUID]:
    """Insert jobs of which some have keys; return those whose keys were free.

    Those with parents begin as awaiting, ``superseded`` ones as cancelled. The order is that of
    the keys, so that two transactions never wait for each other.
    """
    rows = [
        {
            **_values(job, clock),
            "unique_key": job.unique_key,
            "state": _first_state(job, superseded),
        }
        for job in sorted(jobs, key=lambda job: job.unique_key or "")
    ]
    if room.executor.vendor == "sqlite":
        # The write lock is ours since before the keys were looked up.
        room.executor.execute_many(_KEYED_ONE, rows)
        return {job.id for job in jobs}
    won: set[UUID] = set()
    for start in range(0, len(rows), ENQUEUE_CHUNK):
        chunk = rows[start : start + ENQUEUE_CHUNK]
        arrays: dict[str, Any] = {name: [row[name] for row in chunk] for name in chunk[0]}
        arrays["clock"] = clock
        won.update(row[0] for row in room.executor.fetch(_KEYED, arrays))
    return won


def _first_state(job: NewJob, superseded: Collection[UUID]) -> str:
    if job.id in superseded:
        return "cancelled"
    return "awaiting" if job.parents else "scheduled"
