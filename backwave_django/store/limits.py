"""Caps, rates, patterns and windows: what operators choose, and what code and settings declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from backwave_django.core.limits import UNLIMITED, Cap, checked_number, source_of
from backwave_django.core.queues import NO_DEFAULTS
from backwave_django.core.rates import rate_or_none, rate_view
from backwave_django.core.windows import Window
from backwave_django.store.audit import Audit
from backwave_django.store.names import Statement
from backwave_django.store.switches import ADD_QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from backwave_django.core.contract import Actor
    from backwave_django.core.queues import QueueDefaults
    from backwave_django.core.rates import Rate
    from backwave_django.store.room import Room

_QUEUE: Final = Statement(
    'SELECT q."limit", q.rate, q."window" FROM {queue} q WHERE q.name = %(queue)s {lock:q}'
)
_SET_QUEUE: Final = Statement(
    """
UPDATE {queue} SET "limit" = %(limit)s, rate = %(rate)s, "window" = %(window)s
WHERE name = %(queue)s
"""
)
_KEY: Final = Statement('SELECT c."limit", c.rate FROM {cap} c WHERE c.key = %(key)s {lock:c}')
_SET_KEY: Final = Statement(
    """
INSERT INTO {cap} (key, "limit", rate, source) VALUES (%(key)s, %(limit)s, %(rate)s, %(source)s)
ON CONFLICT (key) DO UPDATE SET "limit" = excluded."limit", rate = excluded.rate,
  source = excluded.source
"""
)
_FORGET_KEY: Final = Statement("DELETE FROM {cap} WHERE key = %(key)s")
_DECLARE: Final = Statement(
    """
INSERT INTO {cap} (key, "limit", rate, source) VALUES (%(key)s, %(limit)s, %(rate)s, 'code')
ON CONFLICT (key) DO UPDATE SET "limit" = excluded."limit", rate = excluded.rate
WHERE {cap}.source = 'code' AND (COALESCE({cap}."limit", -1) <> COALESCE(excluded."limit", -1)
  OR COALESCE({cap}.rate, '') <> COALESCE(excluded.rate, ''))
"""
)
# A row that says the same already is not locked: pumps that start wait for nobody, nobody for them.
_DECLARE_QUEUE: Final = Statement(
    """
UPDATE {queue} SET limit_default = CAST(%(limit)s AS integer),
  rate_default = CAST(%(rate)s AS text), window_default = CAST(%(window)s AS text)
WHERE name = %(queue)s
  AND (COALESCE(limit_default, -1) <> COALESCE(CAST(%(limit)s AS integer), -1)
    OR COALESCE(rate_default, '') <> COALESCE(CAST(%(rate)s AS text), '')
    OR COALESCE(window_default, '') <> COALESCE(CAST(%(window)s AS text), ''))
"""
)


class _Chosen(NamedTuple):
    """What an operator may choose for a queue."""

    limit: int | None
    rate: str | None
    window: str | None


def set_queue_limit(
    room: Room, queue: str, limit: int | None, *, actor: Actor, now: datetime
) -> None:
    """Cap a queue; see ``Store.set_queue_limit``."""
    checked_number(limit)
    with room.executor.transaction():
        before = _choose_for_queue(room, queue, lambda row: row._replace(limit=limit))
        audit = Audit(room, actor, now)
        audit.note("set_limit", ("queue", queue), {"limit": before.limit}, {"limit": limit})
        audit.write()


def set_queue_rate(
    room: Room, queue: str, rate: Rate | None, *, actor: Actor, now: datetime
) -> None:
    """Let a queue start so many jobs in a period; see ``Store.set_queue_rate``."""
    after = rate_view(rate)
    with room.executor.transaction():
        text = None if rate is None else str(rate)
        before = _choose_for_queue(room, queue, lambda row: row._replace(rate=text))
        audit = Audit(room, actor, now)
        audit.note("set_rate", ("queue", queue), {"rate": before.rate}, after)
        audit.write()


def set_window(room: Room, queue: str, window: str | None, *, actor: Actor, now: datetime) -> None:
    """Serve a queue at some times only; see ``Store.set_window``."""
    text = None if window is None else str(Window.parse(window))
    with room.executor.transaction():
        before = _choose_for_queue(room, queue, lambda row: row._replace(window=text))
        audit = Audit(room, actor, now)
        audit.note("set_window", ("queue", queue), {"window": before.window}, {"window": text})
        audit.write()


def _choose_for_queue(room: Room, queue: str, change: Callable[[_Chosen], _Chosen]) -> _Chosen:
    """Change a queue's row, which is made if need be; return what was chosen before."""
    room.executor.execute(ADD_QUEUE, {"queue": queue})
    before = _Chosen(*room.executor.fetch(_QUEUE, {"queue": queue})[0])
    room.executor.execute(_SET_QUEUE, {"queue": queue, **change(before)._asdict()})
    return before


def set_limit(room: Room, key: str, limit: int | None, *, actor: Actor, now: datetime) -> None:
    """Cap a limit key or pattern; see ``Store.set_limit``."""
    checked_number(limit)
    with room.executor.transaction():
        before = _choose_for_key(room, key, lambda cap: cap._replace(number=limit))
        audit = Audit(room, actor, now)
        audit.note("set_limit", ("limit_key", key), {"limit": before.number}, {"limit": limit})
        audit.write()


def set_rate(room: Room, key: str, rate: Rate | None, *, actor: Actor, now: datetime) -> None:
    """Let so many jobs under a limit key start in a period; see ``Store.set_rate``."""
    with room.executor.transaction():
        before = _choose_for_key(room, key, lambda cap: cap._replace(rate=rate))
        audit = Audit(room, actor, now)
        audit.note("set_rate", ("limit_key", key), rate_view(before.rate), rate_view(rate))
        audit.write()


def _choose_for_key(room: Room, key: str, change: Callable[[Cap], Cap]) -> Cap:
    """Make the numbers of a key an operator's; one that has none left is forgotten."""
    rows = room.executor.fetch(_KEY, {"key": key})
    before = Cap(rows[0][0], rate_or_none(rows[0][1])) if rows else UNLIMITED
    after = change(before)
    if after == UNLIMITED:
        room.executor.execute(_FORGET_KEY, {"key": key})
    else:
        room.executor.execute(_SET_KEY, {"source": source_of(key), **_row(key, after)})
    return before


def declare_limits(room: Room, limits: Mapping[str, Cap]) -> None:
    """Note the numbers that job types declare; see ``Store.declare_limits``."""
    rows = [_row(key, cap) for key, cap in sorted(limits.items())]
    if rows:
        with room.executor.transaction():
            room.executor.execute_many(_DECLARE, rows)


def declare_queues(room: Room, defaults: Mapping[str, QueueDefaults]) -> None:
    """Note what the settings say of queues; see ``Store.declare_queues``."""
    checked = [(queue, default.checked()) for queue, default in sorted(defaults.items())]
    new = [{"queue": queue} for queue, default in checked if default != NO_DEFAULTS]
    rows = [
        {"queue": queue, "window": default.window, **_numbers(default.cap)}
        for queue, default in checked
    ]
    if rows:
        with room.executor.transaction():
            room.executor.execute_many(ADD_QUEUE, new)
            room.executor.execute_many(_DECLARE_QUEUE, rows)


def _row(key: str, cap: Cap) -> dict[str, object]:
    return {"key": key, **_numbers(cap)}


def _numbers(cap: Cap) -> dict[str, object]:
    return {"limit": cap.number, "rate": None if cap.rate is None else str(cap.rate)}
