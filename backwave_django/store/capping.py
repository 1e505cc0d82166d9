"""Claims under caps and rates: limited queues, limit keys, and databases with one writer.

The settings rows concerned are locked first, without waiting; a later statement of the same
transaction counts leases and claims at most what is free. Counting in the locking statement would
count what was true before the lock. The tokens of a rate are in the locked row itself: they are
computed from it and ``now``, and written back before the lock is let go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from backwave_django.core.limits import PATTERN, UNLIMITED, Cap, governing
from backwave_django.core.rates import rate_or_none
from backwave_django.store.faults import DATABASE_ERRORS, sqlstate
from backwave_django.store.names import Statement
from backwave_django.store.taking import candidates, lease_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.store.lanes import Lane
    from backwave_django.store.room import Room

# What an operator chose goes before what the settings say, number and rate each for itself.
_QUEUES: Final = Statement(
    'SELECT q.name, COALESCE(q."limit", q.limit_default), COALESCE(q.rate, q.rate_default),'
    " q.rate_full_at, q.paused, q.paused_until FROM {queue} q WHERE q.name {any:queues}"
)
# Patterns are few, and read with the keys.
_KEYS: Final = Statement(
    'SELECT c.key, c."limit", c.rate, c.rate_full_at, c.source FROM {cap} c WHERE c.key {any:keys}'
    ' UNION ALL SELECT c.key, c."limit", c.rate, c.rate_full_at, c.source FROM {cap} c'
    " WHERE c.source = 'pattern'"
)
_MAKE_KEY: Final = Statement(
    "INSERT INTO {cap} (key, source) VALUES (%(key)s, 'code') ON CONFLICT (key) DO NOTHING"
)
_NO_PATIENCE: Final = Statement("SELECT set_config('lock_timeout', '20ms', true)")
_LOCK_NOT_AVAILABLE: Final = "55P03"
_HELD_QUEUES: Final = Statement(
    'SELECT q.name, COALESCE(q."limit", q.limit_default), COALESCE(q.rate, q.rate_default),'
    " q.rate_full_at FROM {queue} q WHERE q.name {any:queues}"
    " ORDER BY q.name {skip_locked_no_key:q}"
)
_HELD_KEYS: Final = Statement(
    'SELECT c.key, c."limit", c.rate, c.rate_full_at, c.source FROM {cap} c WHERE c.key {any:keys}'
    " ORDER BY c.key {skip_locked_no_key:c}"
)
_QUEUE_LEASES: Final = Statement(
    "SELECT l.queue, count(*) FROM {lease} l WHERE l.queue {any:queues} GROUP BY l.queue"
)
_KEY_LEASES: Final = Statement(
    "SELECT l.limit_key, count(*) FROM {lease} l WHERE l.limit_key {any:keys}"
    " AND l.limit_key IS NOT NULL GROUP BY l.limit_key"
)
_FILL_QUEUE: Final = Statement(
    "UPDATE {queue} SET rate_full_at = %(full_at)s WHERE name = %(name)s"
)
_FILL_KEY: Final = Statement("UPDATE {cap} SET rate_full_at = %(full_at)s WHERE key = %(name)s")


class _Limits(NamedTuple):
    """What limits one queue or key, and when its bucket of tokens is full again."""

    cap: Cap
    full_at: datetime | None


class _Settings(NamedTuple):
    """What the settings rows say of the queues and keys of some lanes."""

    queues: Mapping[str, _Limits]
    paused: frozenset[str]
    keys: Mapping[str, _Limits]
    patterns: Mapping[str, Cap]
    #: Keys under a pattern that have no row to lock yet.
    rowless: tuple[str, ...]


_UNLIMITED: Final = _Limits(UNLIMITED, None)


@dataclass(slots=True)
class _Allowance:
    """How many more jobs of one queue or key may be leased, and how many were."""

    free: int
    limits: _Limits = _UNLIMITED
    taken: int = 0


@dataclass(slots=True)
class _Free:
    """Allowances of limited queues and keys; what is not named is not limited."""

    queues: dict[str, _Allowance]
    keys: dict[str, _Allowance]

    def _of(self, lane: Lane) -> list[_Allowance]:
        concerned = (self.queues.get(lane.queue), self.keys.get(lane.key or ""))
        return [allowance for allowance in concerned if allowance is not None]

    def most(self, lane: Lane, wanted: int) -> int:
        """Return how many jobs of ``lane`` may be leased, at most ``wanted``."""
        return min((wanted, *(allowance.free for allowance in self._of(lane))))

    def fill(self, lane: Lane, count: int) -> None:
        """Note that ``count`` jobs of ``lane`` take their slots and their tokens."""
        for allowance in self._of(lane):
            allowance.free -= count
            allowance.taken += count


def take_carefully(
    room: Room, request: ClaimRequest, lanes: Sequence[Lane], limit: int, *, now: datetime
) -> list[LeasedJob]:
    """Lease at most ``limit`` due jobs of ``lanes``, in their order, within all limits."""
    settings = _settings(room, lanes, now=now)
    if settings.rowless:
        _make_rows(room, settings.rowless)
    with room.executor.transaction():
        free = _free(room, settings, now=now)
        picked: list[Any] = []
        for lane in lanes:
            most = free.most(lane, limit - len(picked))
            if most > 0:
                found = candidates(room, lane, most, now=now)
                free.fill(lane, len(found))
                picked += found
        _write_tokens(room, _FILL_QUEUE, free.queues, now=now)
        _write_tokens(room, _FILL_KEY, free.keys, now=now)
        return lease_rows(room, request, picked, now=now)


def _make_rows(room: Room, keys: Sequence[str]) -> None:
    """Give keys under a pattern rows to lock.

    In a transaction of its own: whoever makes the same rows waits for no claim. And if somebody
    has made one in a transaction that stays open, the claim does not wait either: the keys are
    withheld this time.
    """
    own_connection = not room.executor.guards_statements
    try:
        with room.executor.transaction():
            if own_connection and room.executor.vendor == "postgresql":
                room.executor.fetch(_NO_PATIENCE, {})
            room.executor.execute_many(_MAKE_KEY, [{"key": key} for key in sorted(keys)])
    except DATABASE_ERRORS as error:
        if sqlstate(error) != _LOCK_NOT_AVAILABLE:
            raise


def next_tokens(room: Room, lanes: Sequence[Lane], *, now: datetime) -> dict[Lane, datetime]:
    """Return when the rates that concern each lane let its next job start: ``now`` if they do."""
    settings = _settings(room, lanes, now=now)
    instants = {}
    for lane in lanes:
        queue = settings.queues.get(lane.queue, _UNLIMITED)
        key = settings.keys.get(lane.key or "", _UNLIMITED)
        instants[lane] = max(
            rate.next_token(full_at, now=now) if rate is not None else now
            for (_number, rate), full_at in (queue, key)
        )
    return instants


def _settings(room: Room, lanes: Sequence[Lane], *, now: datetime) -> _Settings:
    executor, read = room.executor, room.executor.values.instant_or_none
    names = sorted({lane.queue for lane in lanes})
    keys = sorted({lane.key for lane in lanes if lane.key is not None})
    queues = executor.fetch(_QUEUES, {"queues": names})
    rows = executor.fetch(_KEYS, {"keys": keys}) if keys else []
    own = {row[0]: (Cap(row[1], rate_or_none(row[2])), row[4]) for row in rows}
    full = {row[0]: read(row[3]) for row in rows}
    patterns = {key: cap for key, (cap, source) in own.items() if source == PATTERN}
    caps = {key: governing(key, own=own.get(key), patterns=patterns)[0] for key in keys}
    limited = {key: _Limits(cap, full.get(key)) for key, cap in caps.items() if cap != UNLIMITED}
    return _Settings(
        queues={row[0]: _Limits(Cap(row[1], rate_or_none(row[2])), read(row[3])) for row in queues},
        paused=frozenset(
            row[0] for row in queues if row[4] and not _is_over(read(row[5]), now=now)
        ),
        keys=limited,
        patterns=patterns,
        rowless=tuple(key for key in limited if key not in own),
    )


def _free(room: Room, settings: _Settings, *, now: datetime) -> _Free:
    """Lock the rows, then count. What somebody else holds has no room this time."""
    executor, read = room.executor, room.executor.values.instant_or_none
    queues = [name for name, limits in settings.queues.items() if limits.cap != UNLIMITED]
    keys = list(settings.keys)
    free = _Free(
        {name: _Allowance(0) for name in (*queues, *settings.paused)},
        {key: _Allowance(0) for key in keys},
    )
    if queues:
        held = executor.fetch(_HELD_QUEUES, {"queues": queues})
        used: dict[str, int] = dict(executor.fetch(_QUEUE_LEASES, {"queues": queues}))
        for name, number, rate, full_at in held:
            limits = _Limits(Cap(number, rate_or_none(rate)), read(full_at))
            if name not in settings.paused:
                free.queues[name] = _allowance(limits, used.get(name, 0), now=now)
    if keys:
        held = executor.fetch(_HELD_KEYS, {"keys": keys})
        used = dict(executor.fetch(_KEY_LEASES, {"keys": keys}))
        for key, number, rate, full_at, source in held:
            own = Cap(number, rate_or_none(rate)), source
            cap = governing(key, own=own, patterns=settings.patterns)[0]
            limits = _Limits(cap, read(full_at))
            free.keys[key] = _allowance(limits, used.get(key, 0), now=now)
    return free


def _allowance(limits: _Limits, used: int, *, now: datetime) -> _Allowance:
    number, rate = limits.cap
    bounds = [] if number is None else [number - used]
    bounds += [] if rate is None else [rate.tokens(limits.full_at, now=now)]
    # Without either, the limit was lifted while we waited for nobody: the next claim knows it.
    return _Allowance(min(bounds, default=0), limits)


def _write_tokens(
    room: Room, statement: Statement, allowances: Mapping[str, _Allowance], *, now: datetime
) -> None:
    spent = []
    for name, allowance in allowances.items():
        (_number, rate), full_at = allowance.limits
        if rate is not None and allowance.taken:
            full_at = rate.taken(full_at, allowance.taken, now=now)
            spent.append({"name": name, "full_at": full_at})
    room.executor.execute_many(statement, spent)


def _is_over(until: datetime | None, *, now: datetime) -> bool:
    return until is not None and until <= now
