"""Claims under caps: limited queues, limit keys, and databases with one writer at a time.

The settings rows of all caps concerned are locked first, without waiting; a later statement of
the same transaction counts leases and claims at most what is free. Counting in the locking
statement would count what was true before the lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backwave_django.store.names import Statement
from backwave_django.store.taking import candidates, lease_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.store.lanes import Lane
    from backwave_django.store.room import Room

_QUEUES: Final = Statement(
    'SELECT q.name, q."limit", q.paused, q.paused_until FROM {queue} q WHERE q.name {any:queues}'
)
_KEYS: Final = Statement('SELECT c.key, c."limit" FROM {cap} c WHERE c.key {any:keys}')
_HELD_QUEUES: Final = Statement(
    'SELECT q.name, q."limit" FROM {queue} q WHERE q.name {any:queues}'
    ' AND q."limit" IS NOT NULL ORDER BY q.name {skip_locked_no_key:q}'
)
_HELD_KEYS: Final = Statement(
    'SELECT c.key, c."limit" FROM {cap} c WHERE c.key {any:keys}'
    " ORDER BY c.key {skip_locked_no_key:c}"
)
_QUEUE_LEASES: Final = Statement(
    "SELECT l.queue, count(*) FROM {lease} l WHERE l.queue {any:queues} GROUP BY l.queue"
)
_KEY_LEASES: Final = Statement(
    "SELECT l.limit_key, count(*) FROM {lease} l WHERE l.limit_key {any:keys}"
    " AND l.limit_key IS NOT NULL GROUP BY l.limit_key"
)


@dataclass(slots=True)
class _Room:
    """Free slots per capped queue and key; what is not named is not capped."""

    queues: dict[str, int]
    keys: dict[str, int]

    def of(self, lane: Lane, most: int) -> int:
        """Return how many jobs of ``lane`` may be leased, at most ``most``."""
        if lane.queue in self.queues:
            most = min(most, self.queues[lane.queue])
        if lane.key is not None and lane.key in self.keys:
            most = min(most, self.keys[lane.key])
        return most

    def fill(self, lane: Lane, count: int) -> None:
        """Note that ``count`` jobs of ``lane`` take their slots."""
        if lane.queue in self.queues:
            self.queues[lane.queue] -= count
        if lane.key is not None and lane.key in self.keys:
            self.keys[lane.key] -= count


def take_carefully(
    room: Room, request: ClaimRequest, lanes: Sequence[Lane], limit: int, *, now: datetime
) -> list[LeasedJob]:
    """Lease at most ``limit`` due jobs of ``lanes``, in their order, within all caps."""
    with room.executor.transaction():
        free = _free(room, lanes, now=now)
        picked: list[Any] = []
        for lane in lanes:
            most = free.of(lane, limit - len(picked))
            if most > 0:
                found = candidates(room, lane, most, now=now)
                free.fill(lane, len(found))
                picked += found
        return lease_rows(room, request, picked, now=now)


def _free(room: Room, lanes: Sequence[Lane], *, now: datetime) -> _Room:
    """Lock the caps, then count. A cap that somebody else holds leaves no room this time."""
    executor = room.executor
    queues = sorted({lane.queue for lane in lanes})
    keys = sorted({lane.key for lane in lanes if lane.key is not None})
    settings = executor.fetch(_QUEUES, {"queues": queues})
    limited = [row[0] for row in settings if row[1] is not None]
    until = executor.values.instant_or_none
    paused = {row[0] for row in settings if row[2] and not _is_over(until(row[3]), now=now)}
    capped = [row[0] for row in executor.fetch(_KEYS, {"keys": keys})] if keys else []
    free_queues = dict.fromkeys((*limited, *paused), 0)
    free_keys = dict.fromkeys(capped, 0)
    if limited:
        held: dict[str, int] = dict(executor.fetch(_HELD_QUEUES, {"queues": limited}))
        used: dict[str, int] = dict(executor.fetch(_QUEUE_LEASES, {"queues": limited}))
        for name, cap in held.items():
            free_queues[name] = 0 if name in paused else cap - used.get(name, 0)
    if capped:
        held = dict(executor.fetch(_HELD_KEYS, {"keys": capped}))
        used = dict(executor.fetch(_KEY_LEASES, {"keys": capped}))
        for key, cap in held.items():
            free_keys[key] = cap - used.get(key, 0)
    return _Room(free_queues, free_keys)


def _is_over(until: datetime | None, *, now: datetime) -> bool:
    return until is not None and until <= now
