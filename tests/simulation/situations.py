"""Situations worth naming: a search that never reached them has proved nothing about them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.leases import LeaseHealth
from backwave_django.core.outcomes import OutcomeKind, Verdict
from backwave_django.core.states import Cause, JobState
from tests.simulation import reactions

if TYPE_CHECKING:
    from tests.simulation.steps import Step
    from tests.simulation.world import World

#: What a search of some size has to reach. The report names those that it did not.
NAMED = (
    "stale outcome fenced",
    "busy outcome kept",
    "lease migrated",
    "lease lapsed",
    "lapse dead-lettered",
    "lapse of a cancelled job",
    "orphan recovered",
    "dead pump disposed",
    "release at drain",
    "limit saturated",
    "weighted fallthrough",
    "cascade of two",
    "cascade of three",
    "dependent released",
    "deadline passed before a run",
    "deadline passed after a run",
    "operator cancelled a running job",
    "success beat a cancellation",
    "job cancelled itself",
    "superseded by a replacing key",
    "unique key answered with its holder",
    "handed back as unroutable",
    "quarantined as unroutable",
    "quarantined as undecodable",
    "timed out",
    "snoozed",
    "gave up",
    "output refused",
    "attempts used up",
    "requeued",
    "attempt abandoned",
    "slot replaced",
    "pump drained",
    "pump halted",
    "drain asked for in the database",
    "outcomes unrecorded at exit",
    "applied after the caller gave up",
    "report applied, claim failed",
    "answer lost: Claim",
    "answer lost: Report",
    "answer lost: Turn",
    "answer lost: Release",
    "answer lost: Heartbeat",
    "answer lost: Recover",
    "answer lost: ExpireLeases",
    "clock measured again",
    "hint lost",
    "hint doubled",
    "hint late",
    "schedule: minted",
    "schedule: overlapped",
    "schedule: stale",
    "answer lost: Mint",
    "answer lost: LoadSchedules",
    "operator: cancel",
    "operator: requeue",
    "operator: run now",
    "operator: pause",
    "operator: queue limit",
    "operator: key limit",
    "operator: queue rate",
    "operator: key rate",
    "operator: window",
    "operator: pattern limit",
    "operator: drain",
    "operator: pause schedule",
    "operator: resume schedule",
    "operator: trigger",
    "operator: cancel workflow",
    "operator: retry workflow",
    "operator: restart workflow",
    "workflow: refused",
    "workflow: conflict",
    "workflow: made anew",
    "workflow: a success runs again",
    "observer: told",
    "observer: told of a loss",
    "observer: its own end is told to none",
    "atomic: committed",
    "atomic: committed for the dead",
    "atomic: committed past its time-out",
    "atomic: could not begin",
    "atomic: failed, rolled back",
    "atomic: cancelled, rolled back",
    "atomic: snoozed, rolled back",
    "atomic: timed out, rolled back",
    "atomic: abandoned, rolled back",
    "atomic: stale, rolled back",
    "atomic: killed before its commit",
    "atomic: session lost",
    "atomic: waited for a lock",
    "atomic: given back unapplied",
    "atomic: answer lost, committed",
    "atomic: answer lost, not committed",
    "atomic: answer lost, not seen",
    "atomic: committed when given up",
    "first loss",
    "later loss",
)

BY_KIND = {
    OutcomeKind.TIMED_OUT: "timed out",
    OutcomeKind.SNOOZED: "snoozed",
    OutcomeKind.GAVE_UP: "gave up",
    OutcomeKind.OUTPUT_REFUSED: "output refused",
    OutcomeKind.UNROUTABLE: "handed back as unroutable",
    OutcomeKind.LAPSED: "lease lapsed",
}
BY_CAUSE = {
    Cause.JOB: "job cancelled itself",
    Cause.SUPERSEDED: "superseded by a replacing key",
    Cause.UNROUTABLE: "quarantined as unroutable",
    Cause.UNDECODABLE: "quarantined as undecodable",
    Cause.ATTEMPTS: "attempts used up",
}


def of(step: "Step") -> Iterator[str]:
    """Name what a step of the store was an example of."""
    for job_id, before, after in step.changed:
        for row in step.rows(job_id):
            if row.kind in BY_KIND:
                yield BY_KIND[row.kind]
            yield from _of_lapse(row.kind, after.state)
        if before is None or before.state is not after.state:
            yield from _of_end(step, before and before.state, after.cause)
        if after.state is JobState.EXPIRED:
            yield "deadline passed before a run"
    yield from _of_kind(step)
    yield from reactions.situations(step)


def _of_lapse(kind: OutcomeKind, state: JobState | None) -> Iterator[str]:
    if kind is OutcomeKind.LAPSED and state is JobState.DEAD_LETTERED:
        yield "lapse dead-lettered"
    if kind is OutcomeKind.LAPSED and state is JobState.CANCELLED:
        yield "lapse of a cancelled job"


def _of_end(step: "Step", before: JobState | None, cause: Cause | None) -> Iterator[str]:
    if cause in BY_CAUSE:
        yield BY_CAUSE[cause]
    if cause is Cause.OPERATOR and before is JobState.LEASED:
        yield "operator cancelled a running job"
    if cause is Cause.DEADLINE and step.kind == "Settle":
        yield "deadline passed after a run"
    if step.kind == "requeue":
        yield "requeued"


def _of_kind(step: "Step") -> Iterator[str]:
    if step.kind == "Mint":
        yield from (f"schedule: {row.result}" for row in step.answer.rows)
    yield from _of_cascade(step)
    match step.kind:
        case "Claim":
            yield from _of_claim(step)
        case "Report" | "Release" | "Commit":
            yield from _of_report(step)
        case "Recover" if step.ended:
            yield "orphan recovered"
        case "Dispose" if step.ended:
            yield "dead pump disposed"


def _of_cascade(step: "Step") -> Iterator[str]:
    cancelled = sum(a.cause is Cause.PARENT and b is not None for _, b, a in step.changed)
    if cancelled >= 2:
        yield "cascade of two"
    if cancelled >= 3:
        yield "cascade of three"
    if any(b and (b.state, a.state) == WAITED for _, b, a in step.changed):
        yield "dependent released"


WAITED = (JobState.AWAITING, JobState.SCHEDULED)


def _of_claim(step: "Step") -> Iterator[str]:
    wanted = step.request.request.queues[0]
    weighted = step.node is not None and step.node.group.weights is not None
    if weighted and any(job.queue != wanted for job in step.answer.jobs):
        yield "weighted fallthrough"
    for job in step.answer.jobs:
        history = step.history(job.job_id)
        if history and history[-1].pump_id not in {None, step.request.request.pump_id}:
            yield "lease migrated"
    for queue, row in step.tables.queues.items():
        if row.limit is not None and row.limit == sum(x.queue == queue for x in step.leases):
            yield "limit saturated"


def _of_report(step: "Step") -> Iterator[str]:
    for outcome, row in zip(step.request.outcomes, step.answer.rows, strict=True):
        if row.verdict is Verdict.STALE:
            yield "stale outcome fenced"
        if row.verdict is Verdict.BUSY:
            yield "busy outcome kept"
        lease = step.leases_before.get(outcome.lease_id)
        if lease is not None and lease.cancel_requested and row.state is JobState.SUCCEEDED:
            yield "success beat a cancellation"
    if isinstance(step.request, c.Release):
        yield "release at drain"
    if step.kind == "Commit":
        yield from _of_commit(step)


def _of_commit(step: "Step") -> Iterator[str]:
    node = step.node
    if node is None or not node.alive:
        yield "atomic: committed for the dead"
    elif step.request.lease_id in node.bodies:
        yield "atomic: committed"
    else:
        yield "atomic: committed when given up"


def hear(world: "World", event: e.Event) -> None:
    """Name what a node was told."""
    if isinstance(event, e.HeartbeatReturned):
        if event.answer.drain_requested:
            world.reached("drain asked for in the database")
        if any(one.health is LeaseHealth.LOST for one in event.answer.renewals):
            world.reached("lease lost")
