"""Claims: due jobs get a lease each, and go to one pump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.bounds import MAX_BATCH
from backwave_django.core.contract import ClaimAnswer
from backwave_django.core.jobs import LeasedJob
from backwave_django.store.capping import take_carefully
from backwave_django.store.survey import FREE, Survey, survey
from backwave_django.store.taking import take_plain

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.store.room import Room


def claim(room: Room, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
    """Lease due jobs of ``request.queues``; see ``Store.claim``."""
    queues = tuple(dict.fromkeys(request.queues))
    limit = min(request.limit, MAX_BATCH)
    jobs: list[LeasedJob] = []
    if not room.exact:
        jobs = _take_remembered(room, request, queues, limit, now=now)
    if len(jobs) == limit:
        return ClaimAnswer(
            jobs=tuple(jobs),
            short=False,
            next_due=now,
            clock=room.clock(),
            key_cursor=request.key_cursor,
        )
    return _full_pass(room, request, queues, jobs, limit, now=now)


def _take_remembered(
    room: Room, request: ClaimRequest, queues: tuple[str, ...], limit: int, *, now: datetime
) -> list[LeasedJob]:
    """Claim from the lanes that the last survey found, above their floors."""
    memory = room.lanes
    if limit < 1 or room.executor.vendor != "postgresql" or not memory.knows(queues, now=now):
        return []
    memory.hint(lane for lane in request.hinted if lane[0] in queues)
    lanes = memory.known(queues)
    return take_plain(room, request, lanes, limit, now=now) if lanes else []


def _full_pass(
    room: Room,
    request: ClaimRequest,
    queues: tuple[str, ...],
    jobs: list[LeasedJob],
    limit: int,
    *,
    now: datetime,
) -> ClaimAnswer:
    """Look everywhere, and take what is due."""
    seen = _look(room, request, queues, now=now)
    key_cursor = request.key_cursor
    due = [lane for lane in seen.lanes if lane.first_due is not None and lane.first_due <= now]
    if due and len(jobs) < limit:
        room_left = limit - len(jobs)
        if seen.plain and room.executor.vendor == "postgresql":
            jobs += take_plain(room, request, due, room_left, now=now)
        else:
            jobs += take_carefully(room, request, due, room_left, now=now)
        keys = [job.limit_key for job in jobs if job.limit_key is not None]
        key_cursor = keys[-1] if keys else _last_key(seen, key_cursor)
        seen = _look(room, request, queues, now=now)
    return ClaimAnswer(
        jobs=tuple(jobs),
        short=len(jobs) < request.limit and seen.whole,
        next_due=seen.next_due(now=now),
        clock=seen.clock,
        key_cursor=key_cursor,
    )


def _look(room: Room, request: ClaimRequest, queues: tuple[str, ...], *, now: datetime) -> Survey:
    seen = survey(room, queues, key_cursor=request.key_cursor, now=now)
    room.lanes.learn(queues, seen.lanes, limited=seen.limited, cost=FREE, now=now)
    return seen


def _last_key(seen: Survey, cursor: str) -> str:
    """Where the rotation goes on when all keys in sight were saturated."""
    keys = [lane.key for lane in seen.lanes if lane.key is not None]
    return keys[-1] if keys and not seen.whole else cursor
