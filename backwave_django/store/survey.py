"""Where scheduled jobs are: the lanes of the served queues, with the first due time of each."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.bounds import MAX_KEYS_PER_CLAIM
from backwave_django.store.lanes import Lane, Survey
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.store.room import Room


_PLAIN: Final = """
SELECT served.name, served.cap, served.keyed, lane.priority,
  (SELECT min(j.due_at) FROM {{job}} j WHERE j.state = 'scheduled' AND j.limit_key IS NULL
    AND j.queue = lane.queue AND j.priority = lane.priority),
  {clock}, {began}
FROM served LEFT JOIN lane ON lane.queue = served.name AND lane.priority IS NOT NULL
"""
_SERVED: Final = """
WITH RECURSIVE served(name, cap, keyed) AS (
  SELECT s.{value}, q."limit", EXISTS (SELECT 1 FROM {{job}} j WHERE j.state = 'scheduled'
    AND j.limit_key IS NOT NULL AND j.queue = s.{value})
  FROM {source} LEFT JOIN {{queue}} q ON q.name = s.{value}
  WHERE q.name IS NULL OR NOT q.paused OR q.paused_until <= %(now)s),
lane(queue, priority) AS (
  SELECT served.name, (SELECT min(j.priority) FROM {{job}} j WHERE j.state = 'scheduled'
    AND j.limit_key IS NULL AND j.queue = served.name) FROM served
  UNION ALL
  SELECT lane.queue, (SELECT min(j.priority) FROM {{job}} j WHERE j.state = 'scheduled'
    AND j.limit_key IS NULL AND j.queue = lane.queue AND j.priority > lane.priority)
  FROM lane WHERE lane.priority IS NOT NULL)
"""
_CLOCKS: Final = {
    "postgresql": {
        "value": "value",
        "source": "unnest(%(queues)s::text[]) AS s(value)",
        "clock": "clock_timestamp()",
        "began": "statement_timestamp()",
    },
    "sqlite": {
        "value": "value",
        "source": "json_each(%(queues)s) AS s",
        "clock": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
        "began": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
    },
}


@cache
def _plain(vendor: str) -> Statement:
    return Statement((_SERVED + _PLAIN).format(**_CLOCKS[vendor]))


_KEYED: Final = {
    "postgresql": """
WITH RECURSIVE lane(limit_key, priority) AS (
  (SELECT j.limit_key, j.priority FROM {{job}} j WHERE j.state = 'scheduled'
    AND j.queue = %(queue)s AND j.limit_key IS NOT NULL AND {bounds}
    ORDER BY j.limit_key, j.priority LIMIT 1)
  UNION ALL
  SELECT following.limit_key, following.priority FROM lane CROSS JOIN LATERAL (
    SELECT j.limit_key, j.priority FROM {{job}} j WHERE j.state = 'scheduled'
      AND j.queue = %(queue)s AND j.limit_key IS NOT NULL AND {bounds}
      AND (j.limit_key, j.priority) > (lane.limit_key, lane.priority)
    ORDER BY j.limit_key, j.priority LIMIT 1) following)
SELECT lane.limit_key, lane.priority, (SELECT min(j.due_at) FROM {{job}} j
  WHERE j.state = 'scheduled' AND j.limit_key IS NOT NULL AND j.queue = %(queue)s
    AND j.limit_key = lane.limit_key AND j.priority = lane.priority)
FROM lane LIMIT {limit}
""",
    "sqlite": """
SELECT j.limit_key, j.priority, min(j.due_at) FROM {{job}} j
WHERE j.state = 'scheduled' AND j.queue = %(queue)s AND j.limit_key IS NOT NULL AND {bounds}
GROUP BY j.limit_key, j.priority ORDER BY j.limit_key, j.priority LIMIT {limit}
""",
}
_AFTER: Final = "j.limit_key > %(cursor)s"
_UP_TO: Final = "j.limit_key <= %(cursor)s"


@cache
def _keyed(vendor: str, bounds: str) -> Statement:
    return Statement(_KEYED[vendor].format(bounds=bounds, limit=MAX_KEYS_PER_CLAIM + 1))


def survey(room: Room, queues: Sequence[str], *, key_cursor: str, now: datetime) -> Survey:
    """Look at all lanes of ``queues`` that are not paused, in a constant number of statements."""
    executor = room.executor
    read = executor.values.instant_or_none
    rows = executor.fetch(_plain(executor.vendor), {"queues": list(queues), "now": now})
    place = {queue: number for number, queue in enumerate(queues)}
    lanes = [
        Lane(queue, priority, None, read(due))
        for queue, _cap, _keyed, priority, due, *_clocks in rows
        if priority is not None
    ]
    limited = frozenset(row[0] for row in rows if row[1] is not None)
    whole = True
    for queue in {row[0] for row in rows if row[2]}:
        found = _rotation(room, queue, cursor=key_cursor)
        whole = whole and len(found) <= MAX_KEYS_PER_CLAIM
        lanes += found[:MAX_KEYS_PER_CLAIM]
    # Stable: keys stay in their rotation, after the unkeyed lane of the same priority.
    lanes.sort(key=lambda lane: (place[lane.queue], lane.priority, lane.key is not None))
    if not rows:
        return Survey(lanes, limited, whole, room.clock(), timedelta(0))
    # The last row's clock was read when all of the looking was done.
    ended, began = (executor.values.instant(value) for value in rows[-1][5:7])
    return Survey(lanes, limited, whole, room.told(rows[-1][5]), ended - began)


def _rotation(room: Room, queue: str, *, cursor: str) -> list[Lane]:
    """The keyed lanes of ``queue``, from the key after ``cursor`` on and around."""
    executor = room.executor
    found: list[tuple[Any, ...]] = []
    for bounds in (_AFTER, _UP_TO):
        if len(found) <= MAX_KEYS_PER_CLAIM:
            parameters = {"queue": queue, "cursor": cursor}
            found += executor.fetch(_keyed(executor.vendor, bounds), parameters)
    read = executor.values.instant_or_none
    return [Lane(queue, priority, key, read(due)) for key, priority, due in found]
