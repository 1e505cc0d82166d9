"""Where due jobs may be found: a lane is one queue at one priority, or one key of it.

A pump remembers the lanes of the unkeyed jobs and, per lane, a floor: the last row that it
claimed there. Rows below the floor are gone already, and walking over what is left of them is
what makes a claim slow while somebody's open transaction keeps them from being cleaned away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from backwave_django.store.rotation import Rotation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: How long a pump that finds full batches may trust its floors and its list of lanes.
TRUST_FOR: Final = timedelta(seconds=1)
#: A full pass may take at most one part in this many of a pump's time.
PASS_SHARE: Final = 20

_LOWEST: Final = (datetime(1, 1, 2, tzinfo=UTC), UUID(int=0))


class Lane(NamedTuple):
    """One index range of scheduled jobs. ``priority`` is as stored; ``first_due`` is advice."""

    queue: str
    priority: int
    key: str | None
    first_due: datetime | None


class Survey(NamedTuple):
    """Lanes in claim order, and what the database says beside them.

    ``limited`` are queues with a cap, a rate or a window of their own; ``whole`` is false when
    there are more limit keys than one claim looks at, and ``reached`` is then the last one that it
    has looked at; ``opens_at`` is when the first closed queue
    opens in which jobs are scheduled; ``cost`` is how long the looking took.
    """

    lanes: list[Lane]
    limited: frozenset[str]
    whole: bool
    clock: datetime
    cost: timedelta
    opens_at: datetime | None = None
    reached: str = ""

    def is_plain(self, lane: Lane) -> bool:
        """Tell whether no cap and no rate can concern ``lane``."""
        return lane.key is None and lane.queue not in self.limited

    def due(self, *, now: datetime) -> list[Lane]:
        """Return the lanes in which a job is due."""
        return [lane for lane in self.lanes if lane.first_due is not None and lane.first_due <= now]

    def is_held_back(self, *, now: datetime) -> bool:
        """Tell whether whatever is due lies in lanes that a cap or a rate may concern."""
        return not any(map(self.is_plain, self.due(now=now)))

    def next_due(self, tokens: Mapping[Lane, datetime], *, now: datetime) -> datetime | None:
        """Return ``now`` if something in sight may start, else when something may.

        ``tokens`` says of lanes in which jobs are due when rates let the next one start.
        """
        instants = [tokens.get(lane, lane.first_due) for lane in self.lanes]
        first = min((at for at in (*instants, self.opens_at) if at is not None), default=None)
        return first if first is None or first > now else now


@dataclass(slots=True)
class LaneMemory:
    """What one pump remembers between claims. Nothing in it is needed for correctness."""

    floors: dict[tuple[str, int], tuple[datetime, UUID]] = field(default_factory=dict)
    surveyed_at: dict[str, datetime] = field(default_factory=dict)
    #: Queues in which the last survey saw a limit, a rate, a window or keyed jobs.
    careful: set[str] = field(default_factory=set)
    #: Queues in which it saw nothing due: looking again tells as much as trying to claim.
    quiet: set[str] = field(default_factory=set)
    #: Queues that were quiet until a hint came. What is known of them may be old: it does for the
    #: claim that the hint is about, and the next one looks everywhere.
    roused: set[str] = field(default_factory=set)
    #: The lane that filled the last claim by itself: the next one need not look past it.
    ample: tuple[str, int] | None = None
    trust_for: timedelta = TRUST_FOR
    rotation: Rotation = field(default_factory=Rotation)

    def known(self, queues: Sequence[str], *, now: datetime) -> list[Lane]:
        """Return the lanes of ``queues`` in claim order; none when a survey is the better move."""
        place = {queue: number for number, queue in enumerate(dict.fromkeys(queues))}
        trusted = self._can_trust(place, now=now)
        self.roused.clear()
        if not trusted:
            return []
        lanes = [
            Lane(queue, priority, None, None) for queue, priority in self.floors if queue in place
        ]
        lanes.sort(key=lambda lane: (place[lane.queue], lane.priority))
        return lanes[:1] if lanes and lanes[0][:2] == self.ample else lanes

    def _can_trust(self, queues: Iterable[str], *, now: datetime) -> bool:
        oldest = now - self.trust_for
        busy, idle = False, self.quiet | self.roused if self.roused else frozenset()
        for queue in queues:
            seen_at = self.surveyed_at.get(queue)
            if seen_at is None or queue in self.careful:
                return False
            if seen_at <= oldest and queue not in idle:
                return False
            busy = busy or queue not in self.quiet
        return busy

    def learn(self, queues: Sequence[str], seen: Survey, *, now: datetime) -> None:
        """Take in a survey: these are the lanes of ``queues`` now, and no floor is known."""
        served = set(queues)
        self.floors = {lane: floor for lane, floor in self.floors.items() if lane[0] not in served}
        self.careful = (self.careful - served) | seen.limited
        due = set()
        for lane in seen.lanes:
            if lane.key is None:
                self.floors[lane.queue, lane.priority] = _LOWEST
            else:
                self.careful.add(lane.queue)
            if lane.first_due is not None and lane.first_due <= now:
                due.add(lane.queue)
        self.quiet = (self.quiet | served) - due
        self.surveyed_at.update(dict.fromkeys(queues, now))
        self.trust_for = max(TRUST_FOR, PASS_SHARE * seen.cost)

    def hint(self, lanes: Iterable[tuple[str, int]], *, queues: Sequence[str]) -> None:
        """Add lanes that a hint spoke of; their priorities are as callers write them."""
        for queue, priority in lanes:
            if queue in queues:
                self.floors.setdefault((queue, -priority), _LOWEST)
                if queue in self.quiet:
                    self.quiet.discard(queue)
                    self.roused.add(queue)

    def floor(self, lane: Lane) -> tuple[datetime, UUID]:
        """Return the last claimed row of ``lane``, or something below all rows."""
        return self.floors.get((lane.queue, lane.priority), _LOWEST)

    def claimed(self, last: Mapping[tuple[str, int], tuple[datetime, UUID]], *, full: bool) -> None:
        """Remember the last claimed row of each lane; ``full`` if they are all that were wanted."""
        for lane, row in last.items():
            if lane in self.floors:
                self.floors[lane] = row
        self.ample = next(iter(last)) if full and len(last) == 1 else None
