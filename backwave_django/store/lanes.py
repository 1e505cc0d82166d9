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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: How long a pump that finds full batches may trust its floors and its list of lanes.
TRUST_FOR: Final = timedelta(seconds=1)
#: A full pass may cost at most one part in this many of a pump's time.
PASS_SHARE: Final = 20

_LOWEST: Final = (datetime(1, 1, 2, tzinfo=UTC), UUID(int=0))


class Lane(NamedTuple):
    """One index range of scheduled jobs. ``priority`` is as stored; ``first_due`` is advice."""

    queue: str
    priority: int
    key: str | None
    first_due: datetime | None


@dataclass(slots=True)
class LaneMemory:
    """What one pump remembers between claims. Nothing in it is needed for correctness."""

    floors: dict[tuple[str, int], tuple[datetime, UUID]] = field(default_factory=dict)
    surveyed_at: dict[str, datetime] = field(default_factory=dict)
    #: Queues in which the last survey saw a limit or keyed jobs.
    careful: set[str] = field(default_factory=set)
    trust_for: timedelta = TRUST_FOR

    def knows(self, queues: Sequence[str], *, now: datetime) -> bool:
        """Tell whether all ``queues`` were surveyed lately, and hold plain lanes only."""
        oldest = now - self.trust_for
        surveyed = self.surveyed_at
        return all(
            queue in surveyed and surveyed[queue] > oldest and queue not in self.careful
            for queue in queues
        )

    def known(self, queues: Sequence[str]) -> list[Lane]:
        """Return the remembered lanes of ``queues`` in claim order."""
        place = {queue: number for number, queue in enumerate(queues)}
        lanes = [Lane(queue, priority, None, None) for queue, priority in self.floors]
        served = [lane for lane in lanes if lane.queue in place]
        served.sort(key=lambda lane: (place[lane.queue], lane.priority))
        return served

    def learn(
        self,
        queues: Sequence[str],
        lanes: Iterable[Lane],
        *,
        limited: Iterable[str],
        cost: timedelta,
        now: datetime,
    ) -> None:
        """Take in a survey: these are the lanes of ``queues`` now, and no floor is known."""
        served = set(queues)
        self.floors = {lane: floor for lane, floor in self.floors.items() if lane[0] not in served}
        self.careful -= served
        self.careful.update(limited)
        for lane in lanes:
            if lane.key is None:
                self.floors[lane.queue, lane.priority] = _LOWEST
            else:
                self.careful.add(lane.queue)
        self.surveyed_at.update(dict.fromkeys(queues, now))
        self.trust_for = max(TRUST_FOR, PASS_SHARE * cost)

    def hint(self, lanes: Iterable[tuple[str, int]]) -> None:
        """Add lanes that a hint spoke of; their priorities are as callers write them."""
        for queue, priority in lanes:
            self.floors.setdefault((queue, -priority), _LOWEST)

    def floor(self, lane: Lane) -> tuple[datetime, UUID]:
        """Return the last claimed row of ``lane``, or something below all rows."""
        return self.floors.get((lane.queue, lane.priority), _LOWEST)

    def raise_floor(self, queue: str, priority: int, *, due_at: datetime, job_id: UUID) -> None:
        """Remember a claimed row as the last of its lane."""
        if (queue, priority) in self.floors:
            self.floors[queue, priority] = (due_at, job_id)
