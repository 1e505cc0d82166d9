"""From a plan that fails to the smallest part of it that fails in the same way."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from tests.simulation.plans import Plan
from tests.simulation.world import run

T = TypeVar("T")


def shrink(plan: Plan) -> Plan:
    """Take faults away, then actions, as long as the same invariant breaks."""
    broke = run(plan).broke
    if not broke:
        return replace(plan, broke="")

    def still(smaller: Plan) -> bool:
        return run(smaller).broke == broke

    plan = replace(plan, faults=_fewest(plan.faults, lambda f: still(replace(plan, faults=f))))
    plan = replace(plan, actions=_fewest(plan.actions, lambda a: still(replace(plan, actions=a))))
    return replace(plan, broke=broke)


def _fewest(parts: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Leave out ever smaller runs of ``parts``, as long as what is left still fails."""
    size = len(parts)
    while size:
        start = 0
        while start < len(parts):
            rest = parts[:start] + parts[start + size :]
            if fails(rest):
                parts = rest
            else:
                start += size
        size //= 2
    return parts
