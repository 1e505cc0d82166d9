"""Job types that workflows are made of."""

from datetime import timedelta
from typing import Any

import backwave_django as backwave

ONCE = backwave.Retry(max_attempts=1)
PATIENT = backwave.Retry(
    max_attempts=3, initial=timedelta(seconds=3), maximum=timedelta(seconds=3), jitter=0
)
#: What the next runs of ``work`` do, by name: the first of each list goes first.
PLANS: dict[str, list[str]] = {}
#: Which bodies ran, in order.
RAN: list[str] = []


def plan(**plans: list[str]) -> None:
    """Forget what was planned and what ran."""
    PLANS.clear()
    RAN.clear()
    PLANS.update(plans)


@backwave.job("flowing.work", retry=ONCE)
def work(name: str, output: Any = None) -> Any:
    """Succeed with ``output``, unless it is planned to fail."""
    RAN.append(name)
    if PLANS.get(name) and PLANS[name].pop(0) == "fail":
        raise RuntimeError(f"{name} was planned to fail")
    return output


@backwave.job("flowing.patient", retry=PATIENT)
def patient(name: str) -> None:
    """The same, but try again after three seconds."""
    work(name)


@backwave.job("flowing.double", aliases=("flowing.twice",))
def double(number: int) -> int:
    """Return a number."""
    return number * 2


@backwave.job("flowing.total")
def total(ctx: backwave.JobContext = backwave.context()) -> int:
    """Add up what the parents returned."""
    return sum(parent.output for parent in ctx.parents)


@backwave.job("flowing.after", retry=ONCE)
def named_after(after: str) -> str:
    """A body with a parameter that a step has too."""
    return after


@backwave.job("flowing.read", retry=ONCE)
def read(
    wanted: Any,
    ctx: backwave.JobContext = backwave.context(),
) -> list[Any]:
    """Return the output and the state of an ancestor."""
    return [ctx.output_of(wanted), str(ctx.state_of(wanted))]


@backwave.job("flowing.read_type", retry=ONCE)
async def read_double(
    ctx: backwave.JobContext = backwave.context(),
) -> int | None:
    """Return the output of the only ancestor of a type."""
    found: int | None = await ctx.aoutput_of(double)
    return found


@backwave.job("flowing.limited", limit=backwave.Limit(lambda tenant: f"flowing:{tenant}", 2))
def limited(tenant: str) -> None:
    """One whose limit key is computed."""
