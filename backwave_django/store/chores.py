"""One look at all that may need a sweep, shared by the sweeps that follow at once.

A pump's chores come round together, and mostly there is nothing to do for any of them.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.store.room import Room

#: Chores of one round follow each other within milliseconds; a round comes every few seconds.
_FRESH: Final = timedelta(seconds=1)

_LOOK: Final = Statement(
    """
SELECT EXISTS (SELECT 1 FROM {lease} l WHERE l.expires_at <= COALESCE({instant:now}, {now})),
  EXISTS (SELECT 1 FROM {job} j WHERE j.state = 'leased'
    AND NOT EXISTS (SELECT 1 FROM {lease} l WHERE l.job_id = j.id)),
  EXISTS (SELECT 1 FROM {settle} s WHERE COALESCE((SELECT p.state IN {terminal} FROM {job} p
    WHERE p.id = s.parent_id), {true})),
  EXISTS (SELECT 1 FROM {job} j WHERE j.state = 'scheduled' AND j.deadline IS NOT NULL
    AND j.deadline <= COALESCE({instant:now}, {now})),
  EXISTS (SELECT 1 FROM {schedule} s WHERE s.enabled AND s.retired_at IS NULL),
  {clock}
"""
)


class Sweep(Enum):
    """Who may go by a look that another took."""

    EXPIRE = auto()
    SETTLE = auto()


class Chores(NamedTuple):
    """What there is to do. ``clock`` is the database's when that was looked up."""

    lapsed: bool
    orphaned: bool
    left_over: bool
    late: bool
    scheduled: bool
    clock: datetime


class Look:
    """What was seen for one instant. Each sweep may go by it once: asked again, it looks again."""

    def __init__(self, chores: Chores, *, by: Sweep | None, now: datetime) -> None:
        self._chores = chores
        self._now = now
        self._unused = set(Sweep) - {by}

    def use(self, sweep: Sweep, *, now: datetime) -> Chores | None:
        """Return what was seen, if it is good for ``sweep`` at ``now``."""
        if sweep not in self._unused or abs(now - self._now) >= _FRESH:
            return None
        self._unused.remove(sweep)
        return self._chores


def look(room: Room, *, by: Sweep | None = None, now: datetime | None) -> Chores:
    """Return what there is to do at ``now``, or without it at the database's present."""
    if now is None and (room.executor.vendor == "sqlite" or room.fixed_clock is not None):
        # PostgreSQL puts its own clock in; SQLite's is read here, as Django writes instants.
        now = room.clock()
    ((*flags, clock),) = room.executor.fetch(_LOOK, {"now": now})
    lapsed, orphaned, left_over, late, scheduled = map(bool, flags)
    seen = Chores(lapsed, orphaned, left_over, late, scheduled, room.told(clock))
    room.look = Look(seen, by=by, now=now or seen.clock)
    return seen


def look_for(room: Room, sweep: Sweep, *, now: datetime) -> Chores:
    """Return what there is to do at ``now`` for ``sweep``, as seen a moment ago at most."""
    seen = None if room.look is None or room.exact else room.look.use(sweep, now=now)
    return seen or look(room, by=sweep, now=now)
