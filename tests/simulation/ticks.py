"""The invariants of schedules."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backwave_django.core.schedule_answers import MintResult
from backwave_django.core.states import TERMINAL
from tests.simulation.oracles import invariant

if TYPE_CHECKING:
    from tests.simulation.steps import Step


@invariant("tick-minted-once")
def each_tick_makes_one_job(step: "Step") -> Iterator[str]:
    if step.kind != "Mint":
        return
    for decision, row in zip(step.request.decisions, step.answer.rows, strict=True):
        if row.result is MintResult.MINTED:
            tick = (row.name, decision.tick)
            if tick in step.watch.minted:
                yield f"{row.name} was minted twice for {decision.tick}"
            step.watch.minted.add(tick)


def _alone(step: "Step", schedule: str) -> bool:
    return step.tables.schedules[schedule].spec.no_overlap


@invariant("no-overlap-at-mint")
def no_tick_overlaps_a_job(step: "Step") -> Iterator[str]:
    jobs = step.tables.jobs
    for job_id, before, _ in step.changed:
        schedule = jobs[job_id].new.schedule
        if before is not None or schedule is None or not _alone(step, schedule):
            continue
        live = [
            other.int
            for other, seen in step.before.items()
            if jobs[other].new.schedule == schedule and seen.state not in TERMINAL
        ]
        if live:
            yield f"{schedule} made job {job_id.int} beside {live}"
