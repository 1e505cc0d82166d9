"""Where scheduled jobs are: the lanes of the served queues, with the first due time of each."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.bounds import MAX_KEYS_PER_CLAIM
from backwave_django.core.errors import InvalidOption
from backwave_django.core.windows import Window
from backwave_django.store.lanes import Lane, Survey
from backwave_django.store.names import Statement
from backwave_django.store.rotation import in_round

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backwave_django.store.room import Room

logger = logging.getLogger("backwave.store")

#: A queue whose window cannot be read here is looked at again after this.
_UNREADABLE_FOR: Final = timedelta(minutes=1)

_PLAIN: Final = """
SELECT served.name, served.limited, served.hours, served.keyed, lane.priority,
  (SELECT min(j.due_at) FROM {{job}} j WHERE j.state = 'scheduled' AND j.limit_key IS NULL
    AND j.queue = lane.queue AND j.priority = lane.priority),
  {{clock}}, {began}
FROM served LEFT JOIN lane ON lane.queue = served.name AND lane.priority IS NOT NULL
"""
_SERVED: Final = """
WITH RECURSIVE served(name, limited, hours, keyed) AS (
  SELECT s.{value}, COALESCE(q."limit", q.limit_default) IS NOT NULL
      OR COALESCE(q.rate, q.rate_default, q."window", q.window_default) IS NOT NULL,
    COALESCE(q."window", q.window_default),
    EXISTS (SELECT 1 FROM {{job}} j WHERE j.state = 'scheduled' AND j.limit_key IS NOT NULL
      AND j.queue = s.{value})
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
        "began": "statement_timestamp()",
    },
    "sqlite": {
        "value": "value",
        "source": "json_each(%(queues)s) AS s",
        "began": "{clock}",
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
      AND j.queue = %(queue)s AND j.limit_key IS NOT NULL AND {further}
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
    # Two lower bounds on one column, and PostgreSQL may enter the index by the lower of them: each
    # step would walk over all jobs of the keys before. The one that was reached implies the cursor.
    further = "true" if bounds == _AFTER else bounds
    text = _KEYED[vendor].format(bounds=bounds, further=further, limit=MAX_KEYS_PER_CLAIM + 1)
    return Statement(text)


def survey(room: Room, queues: Sequence[str], *, key_cursor: str, now: datetime) -> Survey:
    """Look at all lanes of ``queues`` that are neither paused nor closed.

    Takes one statement, and two for each queue with limit keys.
    """
    executor = room.executor
    read = executor.values.instant_or_none
    rows = executor.fetch(_plain(executor.vendor), {"queues": list(queues), "now": now})
    place = {queue: number for number, queue in enumerate(queues)}
    limited = frozenset(row[0] for row in rows if row[1])
    closed = _closed({row[0]: row[2] for row in rows if row[2] is not None}, now=now)
    lanes = [
        Lane(row[0], row[4], None, read(row[5]))
        for row in rows
        if row[4] is not None and row[0] not in closed
    ]
    reached: list[str] = []
    for queue in {row[0] for row in rows if row[3]} - set(closed):
        found = _rotation(room, queue, cursor=key_cursor)
        lanes += found[:MAX_KEYS_PER_CLAIM]
        reached += _reached(found)
    # Stable: keys stay in their rotation, after the unkeyed lane of the same priority.
    lanes.sort(key=lambda lane: (place[lane.queue], lane.priority, lane.key is not None))
    if not rows:
        return Survey(lanes, limited, whole=True, clock=room.clock(), cost=timedelta(0))
    used = {row[0] for row in rows if row[3] or row[4] is not None}
    opens_at = min((at for queue, at in closed.items() if queue in used), default=None)
    # The last row's clock was read when all of the looking was done.
    ended, began = (executor.values.instant(value) for value in rows[-1][6:8])
    return Survey(
        lanes,
        limited,
        whole=not reached,
        clock=room.told(rows[-1][6]),
        cost=ended - began,
        opens_at=opens_at,
        # Where the first queue stopped: what lies behind it was not looked at in all of them.
        reached=min(reached, key=lambda key: in_round(key, after=key_cursor), default=""),
    )


def _reached(found: Sequence[Lane]) -> list[str]:
    """Return the last key that was looked at at all its priorities, if there are more of them."""
    if len(found) <= MAX_KEYS_PER_CLAIM:
        return []
    following = found[MAX_KEYS_PER_CLAIM].key
    keys = [lane.key for lane in found[:MAX_KEYS_PER_CLAIM] if lane.key != following]
    return [key for key in keys[-1:] if key is not None]


def _closed(windows: Mapping[str, str], *, now: datetime) -> dict[str, datetime]:
    """Return the queues that are outside their windows, with when they open."""
    opening = {queue: _opens_at(text, now=now) for queue, text in windows.items()}
    return {queue: at for queue, at in opening.items() if at is not None}


def _opens_at(text: str, *, now: datetime) -> datetime | None:
    try:
        return Window.parse(text).opens_at(now)
    except InvalidOption as error:
        # It was checked when it was set: this machine knows fewer time zones than that one.
        _warn(str(error))
        return now + _UNREADABLE_FOR


@cache
def _warn(problem: str) -> None:
    logger.error("a queue stays closed here, for its window cannot be read: %s", problem)


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
