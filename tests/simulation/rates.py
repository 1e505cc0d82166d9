"""Rates: no span of time sees more starts than a bucket holds and gets, whatever goes wrong."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from backwave_django.core.rates import Rate
from tests.simulation.oracles import invariant

if TYPE_CHECKING:
    from tests.simulation.steps import Step

#: A pump whose clock was moved claims once by the wrong one; the bucket knows no other clock.
CLOCK_FAULTS = {"clock", "database clock", "suspend"}


@invariant("rate-never-exceeded")
def rates_hold(step: "Step") -> Iterator[str]:
    starts = step.watch.starts
    if step.kind in {"queue rate", "key rate"}:
        # What began under the old numbers says nothing about the new ones.
        starts.pop((step.kind, step.request.target), None)
    if step.kind != "Claim":
        return
    for kind, name, rate in _rates(step):
        seen = starts.setdefault((kind, name), [])
        field = "queue" if kind == "queue rate" else "limit_key"
        seen += [step.now for job in step.answer.jobs if getattr(job, field) == name]
        if not step.watch.has_faults(CLOCK_FAULTS) and _most_over(seen, rate) > 0:
            yield f"{kind} {rate} of {name}: too many starts by {step.now}"


def _rates(step: "Step") -> Iterator[tuple[str, str, Rate]]:
    for queue in sorted(step.claimed_queues):
        row = step.tables.queues.get(queue)
        if row is not None and row.rate is not None:
            yield "queue rate", queue, row.rate
    for key in sorted({job.limit_key for job in step.answer.jobs if job.limit_key is not None}):
        rate = step.tables.cap_of(key).rate
        if rate is not None:
            yield "key rate", key, rate


def _most_over(starts: list[datetime], rate: Rate) -> int:
    """By how many starts the worst span of time is over what the rate lets through."""
    worst = 0
    ordered = sorted(starts)
    for first, began in enumerate(ordered):
        for last, ended in enumerate(ordered[first:], start=1):
            worst = max(worst, last - rate.number - (ended - began) // rate.interval)
    return worst
