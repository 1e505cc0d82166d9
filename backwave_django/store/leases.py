"""How leases end when no pump reports: recover, dispose and expire."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from backwave_django.core.contract import History, SweepAnswer
from backwave_django.core.outcomes import Outcome, OutcomeKind, Verdict
from backwave_django.core.retries import Retry, due_after_loss
from backwave_django.core.states import Cause, JobState
from backwave_django.store.applied import ANY_LEASE, Fence
from backwave_django.store.chores import Sweep, look_for
from backwave_django.store.endings import APPEND, ending
from backwave_django.store.hints import announce_any
from backwave_django.store.names import Statement
from backwave_django.store.outcomes import apply
from backwave_django.store.registry import live_pumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.store.room import Room


class _Held(NamedTuple):
    """A lease with what is needed to end it. Read without a lock: its end is fenced."""

    lease_id: UUID
    job_id: UUID
    pump_id: UUID
    acquired_at: datetime
    expires_at: datetime
    retry: str
    spent: int


# Not a join: whatever the planner believes of the tables, jobs are looked up by their key.
_COLUMNS: Final = """
SELECT l.id, l.job_id, l.pump_id, l.acquired_at, l.expires_at, l.retry,
  (SELECT j.spent FROM {{job}} j WHERE j.id = l.job_id)
FROM {{lease}} l WHERE {where}
"""
_OF_PUMPS: Final = Statement(
    _COLUMNS.format(where="l.pump_id {any:pumps} ORDER BY l.expires_at, l.job_id")
)
_LAPSED: Final = """
l.expires_at <= %(now)s AND NOT EXISTS (
  SELECT 1 FROM {spared} AND l.expires_at > s.until)
ORDER BY l.expires_at, l.job_id LIMIT {limit}
"""
_SPARED: Final = {
    "postgresql": "unnest(%(pumps)s::uuid[], %(untils)s::timestamptz[]) AS s(pump, until)"
    " WHERE s.pump = l.pump_id",
    "sqlite": "(SELECT p.value AS pump, u.value AS until FROM json_each(%(pumps)s) p"
    " JOIN json_each(%(untils)s) u ON u.key = p.key) s WHERE s.pump = l.pump_id",
}
_ORPHANS: Final = """
SELECT j.id, j.spent FROM {{job}} j WHERE j.state = 'leased'
  AND NOT EXISTS (SELECT 1 FROM {{lease}} l WHERE l.job_id = j.id)
ORDER BY j.id LIMIT {limit} {{skip_locked:j}}
"""
# Looked at once more under the lock: a claim may have committed meanwhile.
_PUT_BACK: Final = Statement(
    """
UPDATE {job} SET state = 'scheduled', due_at = %(now)s
WHERE id {any:jobs} AND state = 'leased'
  AND NOT EXISTS (SELECT 1 FROM {lease} l WHERE l.job_id = {job}.id)
RETURNING id
"""
)


def _read(room: Room, rows: Iterable[tuple[Any, ...]]) -> list[_Held]:
    uuid, instant = room.executor.values.uuid, room.executor.values.instant
    return [
        _Held(uuid(a), uuid(b), uuid(c), instant(d), instant(e), retry, spent)
        for a, b, c, d, e, retry, spent in rows
        if spent is not None
    ]


def recover(room: Room, *, pump_id: UUID, held: Sequence[UUID], now: datetime) -> SweepAnswer:
    """Release this pump's leases that are not among ``held``; see ``Store.recover``."""
    kept = set(held)
    found = _read(room, room.executor.fetch(_OF_PUMPS, {"pumps": [pump_id]}))
    ends = [
        _released(lease, now=now)
        for lease in found
        if lease.lease_id not in kept and lease.acquired_at <= now
    ]
    # Nothing ran here: how long nobody could run it is still counted.
    count, clock = _end(room, ends, fence=Fence(keeps_clock=True), now=now)
    return SweepAnswer(count=count, full=False, clock=clock)


def dispose(room: Room, *, pumps: Sequence[UUID], now: datetime) -> SweepAnswer:
    """End the leases of dead pumps as lapsed; see ``Store.dispose``."""
    found = _read(room, room.executor.fetch(_OF_PUMPS, {"pumps": list(pumps)}))
    ends = [_lapsed(lease, now=now) for lease in found]
    count, clock = _end(room, ends, fence=ANY_LEASE, now=now)
    return SweepAnswer(count=count, full=False, clock=clock)


def expire_leases(room: Room, *, limit: int, now: datetime) -> SweepAnswer:
    """End lapsed leases, and put back leased jobs without one; see ``Store.expire_leases``."""
    seen = look_for(room, Sweep.EXPIRE, now=now)
    if not (seen.lapsed or seen.orphaned):
        return SweepAnswer(count=0, full=False, clock=seen.clock)
    live = live_pumps(room, now=now)
    lapsed = _find_lapsed(room, live, limit=limit, now=now)
    ends = [_lapsed(lease, now=now) for lease in lapsed]
    count, clock = _end(room, ends, fence=Fence(lapsed_by=now), now=now)
    if seen.orphaned and len(lapsed) < limit:
        count += _put_back(room, limit=limit - len(lapsed), now=now)
    return SweepAnswer(count=count, full=count >= limit, clock=clock)


@cache
def _lapsed_statement(vendor: str, limit: int) -> Statement:
    where = _LAPSED.format(spared=_SPARED[vendor], limit=limit)
    return Statement(_COLUMNS.format(where=where))


def _find_lapsed(
    room: Room, live: dict[UUID, timedelta], *, limit: int, now: datetime
) -> list[_Held]:
    """Read lapsed leases, leaving out those that their live pump may still renew."""
    statement = _lapsed_statement(room.executor.vendor, limit)
    # A live pump's lease is spared for one further duration.
    untils = [now - duration for duration in live.values()]
    parameters = {"now": now, "pumps": list(live), "untils": untils}
    return _read(room, room.executor.fetch(statement, parameters))


def _end(
    room: Room, ends: Sequence[Outcome], *, fence: Fence, now: datetime
) -> tuple[int, datetime]:
    rows, clock = apply(room, ends, fence=fence, now=now)
    count = sum(row.verdict is Verdict.APPLIED for row in rows)
    if count and any(end.due_at is not None and end.due_at <= now for end in ends):
        announce_any(room)  # whoever freed them may serve other queues, or be full
    return count, clock


def _lapsed(lease: _Held, *, now: datetime) -> Outcome:
    policy = Retry.decode(lease.retry)
    due_at = due_after_loss(policy, job_id=lease.job_id, attempt=lease.spent + 1, now=now)
    return Outcome(
        lease_id=lease.lease_id,
        job_id=lease.job_id,
        kind=OutcomeKind.LAPSED,
        state=JobState.DEAD_LETTERED if due_at is None else JobState.SCHEDULED,
        cause=Cause.ATTEMPTS if due_at is None else None,
        due_at=due_at,
        started_at=lease.acquired_at,
        finished_at=now,
    )


def _released(lease: _Held, *, now: datetime) -> Outcome:
    return Outcome(
        lease_id=lease.lease_id,
        job_id=lease.job_id,
        kind=OutcomeKind.RELEASED,
        state=JobState.SCHEDULED,
        due_at=now,
        started_at=lease.acquired_at,
        finished_at=now,
    )


@cache
def _orphans(limit: int) -> Statement:
    return Statement(_ORPHANS.format(limit=limit))


def _put_back(room: Room, *, limit: int, now: datetime) -> int:
    """Re-schedule leased jobs that have no lease, unspent."""
    with room.executor.transaction():
        rows: dict[Any, int] = dict(room.executor.fetch(_orphans(limit), {}))
        if not rows:
            return 0
        back = room.executor.fetch(_PUT_BACK, {"jobs": list(rows), "now": now})
        if back:
            announce_any(room)
        if room.settings.history is not History.OFF:
            lines = [
                ending(
                    job=job,
                    spent=rows[job],
                    kind=OutcomeKind.RELEASED.value,
                    state=JobState.SCHEDULED.value,
                    cause=None,
                    at=now,
                )
                | {"next_due": now}
                for (job,) in back
            ]
            room.executor.execute_many(APPEND, lines)
        return len(back)
