"""Atomic bodies: a run has written once if it is recorded as a success, and else never."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from backwave_django.core.memory.tables import Tables
from backwave_django.core.outcomes import OutcomeKind
from tests.simulation.oracles import invariant

if TYPE_CHECKING:
    from tests.simulation.steps import Step
    from tests.simulation.watch import Watch


@invariant("write-iff-success")
def writes_come_with_their_success(step: "Step") -> Iterator[str]:
    """Looked at after each step, so that there is no time with the one and not the other."""
    if step.watch.atomic:
        changed = {job_id for job_id, _, _ in step.changed}
        if step.kind == "Commit":
            changed.add(step.request.job_id)
        yield from amiss(step.watch, step.tables, changed)


def amiss(watch: "Watch", tables: Tables, job_ids: Iterable[UUID]) -> Iterator[str]:
    """Say what the ledger and the history of these jobs do not agree on."""
    for job_id in job_ids:
        if tables.jobs[job_id].new.wire_name not in watch.atomic:
            continue
        history = tables.outcomes.get(job_id, ())
        successes = Counter(row.run for row in history if row.kind is OutcomeKind.SUCCEEDED)
        if successes != watch.ledger[job_id]:
            yield f"job {job_id.int} wrote in {watch.ledger[job_id]}, succeeded in {successes}"
