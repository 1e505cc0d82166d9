"""Claims: due jobs get a lease each, and go to one pump."""

from __future__ import annotations

import logging
from itertools import groupby
from typing import TYPE_CHECKING

from backwave_django.core.bounds import MAX_BATCH
from backwave_django.core.contract import ClaimAnswer
from backwave_django.store.capping import next_tokens, take_carefully
from backwave_django.store.faults import DATABASE_ERRORS
from backwave_django.store.survey import survey
from backwave_django.store.taking import take_plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.core.contract import ClaimRequest
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.store.lanes import Lane, Survey
    from backwave_django.store.room import Room

logger = logging.getLogger("backwave.store")


def claim(room: Room, request: ClaimRequest, *, now: datetime) -> ClaimAnswer:
    """Lease due jobs of ``request.queues``; see ``Store.claim``."""
    lanes = remembered(room, request, now=now)
    jobs = take_plain(room, request, lanes, sized(request), now=now) if lanes else []
    return complete(room, request, jobs, now=now)


def sized(request: ClaimRequest) -> int:
    """Return how many jobs a claim takes at most."""
    return min(request.limit, MAX_BATCH)


def remembered(room: Room, request: ClaimRequest, *, now: datetime) -> list[Lane]:
    """Return the lanes to try first: those of the last survey, if it can be trusted."""
    memory = room.lanes
    if room.exact or room.executor.vendor != "postgresql" or request.limit < 1:
        return []
    memory.hint(request.hinted, queues=request.queues)
    return memory.known(request.queues, now=now)


def complete(
    room: Room, request: ClaimRequest, jobs: list[LeasedJob], *, now: datetime
) -> ClaimAnswer:
    """Answer a full batch; otherwise look everywhere, and take what is due there.

    What a hint was about is answered at once: it runs while the next claim looks everywhere.
    """
    if jobs and (len(jobs) >= sized(request) or request.hinted):
        return _withheld(room, request, jobs, now=now)
    try:
        return _full_pass(room, request, jobs, now=now)
    except DATABASE_ERRORS as error:
        if not jobs:
            raise
        # These are leased: their pump must hear of them, or they idle until it recovers them.
        logger.warning("a claim was cut short: %s", error)
        return _withheld(room, request, jobs, now=now)


def _withheld(
    room: Room,
    request: ClaimRequest,
    jobs: Sequence[LeasedJob],
    *,
    now: datetime,
    key_cursor: str | None = None,
) -> ClaimAnswer:
    """Answer at once; the cursor stays where it is, unless keys had their turn."""
    return ClaimAnswer(
        jobs=tuple(jobs),
        short=False,
        next_due=now,
        clock=room.last_clock or now,
        key_cursor=request.key_cursor if key_cursor is None else key_cursor,
    )


def _full_pass(
    room: Room, request: ClaimRequest, jobs: list[LeasedJob], *, now: datetime
) -> ClaimAnswer:
    """Look at all lanes, take what is due, and look again if anything was."""
    seen = _look(room, request, now=now)
    due = seen.due(now=now)
    size = sized(request)
    left = size - len(jobs)
    if due and left > 0:
        jobs += _take(room, request, seen, due, left, now=now)
        if jobs and request.hinted and not room.exact:
            room.lanes.rotation.reset()
            cursor = _cursor(request, seen, jobs, full=len(jobs) >= size)
            return _withheld(room, request, jobs, now=now, key_cursor=cursor)
        if len(jobs) < size or room.exact:
            seen = _look(room, request, now=now)
    short, next_due = len(jobs) < size, _next_due(room, seen, now=now)
    rotation = room.lanes.rotation
    if jobs or seen.whole:
        rotation.reset()
    if short and not seen.whole:
        cursor, reached = request.key_cursor, seen.reached
        short = not jobs and rotation.is_over(
            request.queues, cursor=cursor, reached=reached, next_due=next_due
        )
        next_due = rotation.next_due if short else now
    return ClaimAnswer(
        jobs=tuple(jobs),
        short=short,
        next_due=next_due,
        clock=seen.clock,
        key_cursor=_cursor(request, seen, jobs, full=len(jobs) >= size),
    )


def _cursor(request: ClaimRequest, seen: Survey, jobs: Sequence[LeasedJob], *, full: bool) -> str:
    """Return where the rotation over limit keys goes on: all keys in sight had their turn."""
    if not full and not seen.whole:
        return seen.reached
    keys = [job.limit_key for job in jobs if job.limit_key is not None]
    return keys[-1] if keys else request.key_cursor


def _next_due(room: Room, seen: Survey, *, now: datetime) -> datetime | None:
    """Return when to look again; what a rate alone withholds comes with its next token."""
    due = seen.due(now=now)
    tokens = next_tokens(room, due, now=now) if due and seen.is_held_back(now=now) else {}
    return seen.next_due(tokens, now=now)


def _look(room: Room, request: ClaimRequest, *, now: datetime) -> Survey:
    queues = tuple(dict.fromkeys(request.queues))
    seen = survey(room, queues, key_cursor=request.key_cursor, now=now)
    room.lanes.learn(queues, seen, now=now)
    return seen


def _take(
    room: Room,
    request: ClaimRequest,
    seen: Survey,
    lanes: Sequence[Lane],
    limit: int,
    *,
    now: datetime,
) -> list[LeasedJob]:
    """Take from lanes in their order; neighbours of one kind share a statement."""
    if room.executor.vendor != "postgresql":
        return take_carefully(room, request, lanes, limit, now=now)
    jobs: list[LeasedJob] = []
    for plain, neighbours in groupby(lanes, key=seen.is_plain):
        left = limit - len(jobs)
        if left > 0:
            take = take_plain if plain else take_carefully
            jobs += take(room, request, list(neighbours), left, now=now)
    return jobs
