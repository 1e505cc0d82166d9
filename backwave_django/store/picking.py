"""Which rows a claim of plain lanes picks: one range of one index for each lane, as text.

A claim of one lane is the usual one. It takes its lane as plain values: a join less to set up, and
no lists to write, on the way that a hinted job waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backwave_django.store.lanes import Lane, LaneMemory

_RANGE: Final = """
    SELECT b.id FROM {{job}} b
    WHERE b.state = 'scheduled' AND b.limit_key IS NULL AND b.queue = {queue}
      AND b.priority = {priority} AND b.due_at <= %(now)s
      AND (b.due_at, b.id) >= ({floor_due}, {floor_id})
      AND (b.deadline IS NULL OR b.deadline > %(now)s){and_served}
    ORDER BY b.due_at, b.id LIMIT %(size)s FOR UPDATE SKIP LOCKED"""
#: Of a queue's row ``q``: nothing holds the queue back. Unknown when it is paused for ever.
_SERVED: Final = """COALESCE(q."limit", q.limit_default) IS NULL
    AND COALESCE(q.rate, q.rate_default, q."window", q.window_default) IS NULL
    AND (NOT q.paused OR q.paused_until <= %(now)s)"""

_ONE_SERVED: Final = """
      AND NOT EXISTS (SELECT FROM {{queue}} q WHERE q.name = %(queue)s::text
        AND ({served}) IS NOT TRUE)"""
_ONE_RANGE: Final = _RANGE.format(
    queue="%(queue)s::text",
    priority="%(priority)s::smallint",
    floor_due="%(floor)s::timestamptz",
    floor_id="%(floor_id)s::uuid",
    and_served=_ONE_SERVED.format(served=_SERVED),
)
_ONE: Final = """
pick AS MATERIALIZED (
  SELECT j.id, 1::bigint AS ord, gen_random_uuid() AS lease_id FROM ({range}) j),
"""

_EACH_RANGE: Final = _RANGE.format(
    queue="lane.queue",
    priority="lane.priority",
    floor_due="lane.floor_due",
    floor_id="lane.floor_id",
    and_served="",
)
_SEVERAL: Final = """
lane AS MATERIALIZED (
  SELECT l.queue, l.priority, l.floor_due, l.floor_id, l.ord
  FROM unnest(%(queues)s::text[], %(priorities)s::smallint[], %(floors)s::timestamptz[],
    %(floor_ids)s::uuid[]) WITH ORDINALITY AS l(queue, priority, floor_due, floor_id, ord)
  LEFT JOIN {{queue}} q ON q.name = l.queue
  WHERE q.name IS NULL OR ({served})
  ORDER BY l.ord),
pick AS MATERIALIZED (
  SELECT j.id, lane.ord, gen_random_uuid() AS lease_id
  FROM lane CROSS JOIN LATERAL ({range}) j LIMIT %(size)s),
"""
#: The common table expression ``pick``: rows to claim, with their leases. Of one lane, or several.
PICKING: Final = {
    True: _ONE.format(range=_ONE_RANGE),
    False: _SEVERAL.format(served=_SERVED, range=_EACH_RANGE),
}


def picking_parameters(memory: LaneMemory, lanes: Sequence[Lane]) -> dict[str, Any]:
    """Return the parameters of ``PICKING[len(lanes) == 1]``, but ``now`` and ``size``."""
    if len(lanes) == 1:
        (lane,) = lanes
        due, job_id = memory.floor(lane)
        return {"queue": lane.queue, "priority": lane.priority, "floor": due, "floor_id": job_id}
    floors = [memory.floor(lane) for lane in lanes]
    return {
        "queues": [lane.queue for lane in lanes],
        "priorities": [lane.priority for lane in lanes],
        "floors": [due for due, _ in floors],
        "floor_ids": [job_id for _, job_id in floors],
    }
