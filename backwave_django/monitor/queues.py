"""What each queue holds, who serves it, and who paused it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from backwave_django.conf import get_config
from backwave_django.core.limits import UNLIMITED
from backwave_django.jobs.registry import registry
from backwave_django.models import Queue
from backwave_django.monitor.clock import connection
from backwave_django.monitor.counts import NOTHING, LaneCounts, lane_counts
from backwave_django.monitor.limits import cap_of, opens_at, sources_of, token_of, window_of
from backwave_django.monitor.pumps import PumpView, pump_views
from backwave_django.store.names import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from backwave_django.core.limits import Cap

#: More queues than a person reads; a queue name made of data could bring any number.
MOST_QUEUES = 200

# Jumps from one queue name to the next along the claim index, whatever lies between them.
_WITH_JOBS = """
WITH RECURSIVE lane(name) AS (
    SELECT min(queue) FROM {job} WHERE state = 'scheduled' AND limit_key IS {null}
    UNION ALL
    SELECT (SELECT min(queue) FROM {job}
            WHERE state = 'scheduled' AND limit_key IS {null} AND queue > lane.name)
    FROM lane WHERE lane.name IS NOT NULL
)
SELECT name FROM lane WHERE name IS NOT NULL LIMIT {most}
"""


class QueueView(NamedTuple):
    """One queue: its jobs, its pumps, and its switches if anybody ever touched them."""

    name: str
    counts: LaneCounts
    pumps: tuple[PumpView, ...]
    groups: tuple[str, ...]
    switches: Queue | None
    clock: datetime

    @property
    def paused(self) -> bool:
        """Whether claims pass this queue over now."""
        return self.switches is not None and is_paused(self.switches, now=self.clock)

    @property
    def cap(self) -> Cap:
        """How many jobs run at once, and how many start in a period."""
        return UNLIMITED if self.switches is None else cap_of(self.switches)

    @property
    def sources(self) -> Mapping[str, str]:
        """Who set the ``limit``, the ``rate`` and the ``window``, as far as it has them."""
        return {} if self.switches is None else sources_of(self.switches)

    @property
    def window(self) -> str | None:
        """When the queue is served, as it is written; ``None`` for one that always is."""
        return None if self.switches is None else window_of(self.switches)

    @property
    def opens_at(self) -> datetime | None:
        """When the queue opens, if it is outside its window now."""
        return None if self.switches is None else opens_at(self.switches, now=self.clock)

    @property
    def next_token(self) -> datetime | None:
        """When the queue's rate lets the next job start, if it is used up now."""
        return None if self.switches is None else token_of(self.switches, now=self.clock)

    @property
    def unserved(self) -> bool:
        """Whether jobs are due and nobody takes them, although nobody paused the queue."""
        return bool(self.counts.due) and not self.pumps and not self.paused


def is_paused(queue: Queue, *, now: datetime) -> bool:
    """Tell whether ``queue`` yields nothing at ``now``: a pause with an end ends by itself."""
    return queue.paused and (queue.paused_until is None or queue.paused_until > now)


def queue_views(*, clock: datetime) -> Sequence[QueueView]:
    """Return every queue that has jobs, a group, a job type, a pump or a switch, by name."""
    pumps = pump_views(clock=clock, gone=False)
    switched = Queue.objects.using(get_config().database).values_list("pk", flat=True)
    names = known_queues(pumps) | set(switched[:MOST_QUEUES]) | _queues_with_jobs()
    return _views(sorted(names)[:MOST_QUEUES], pumps, clock)


def queue_view(name: str, *, clock: datetime) -> QueueView:
    """Return one queue; for a name that nobody ever used, an empty one."""
    return _views([name], pump_views(clock=clock, gone=False), clock)[0]


def _views(names: Sequence[str], pumps: Sequence[PumpView], clock: datetime) -> Sequence[QueueView]:
    config = get_config()
    switches = Queue.objects.using(config.database).in_bulk(names)
    counts = lane_counts(names, now=clock)
    return [
        QueueView(
            name=name,
            counts=counts.get(name, NOTHING),
            pumps=tuple(pump for pump in pumps if pump.serves(name)),
            groups=tuple(group.name for group in config.groups.values() if name in group.queues),
            switches=switches.get(name),
            clock=clock,
        )
        for name in names
    ]


def known_queues(pumps: Iterable[PumpView]) -> set[str]:
    """Return the queues that the settings, the job types and ``pumps`` speak of."""
    named = {queue for pump in pumps for queue in pump.pump.queues}
    return named | get_config().queues | {job_type.queue for job_type in registry.all()}


def known_wire_names(pumps: Iterable[PumpView]) -> set[str]:
    """Return the wire names that this process and ``pumps`` can run, aliases too."""
    named = {name for pump in pumps for name in dict(pump.pump.wire_names)}
    return named | {name for name, _version in registry.known()}


def _queues_with_jobs() -> set[str]:
    found: set[str] = set()
    with connection().cursor() as cursor:
        for null in ("NULL", "NOT NULL"):
            cursor.execute(_WITH_JOBS.format(job=table("job"), null=null, most=MOST_QUEUES))
            found.update(name for (name,) in cursor.fetchall())
    return found
