"""The invariants of leases: each outcome under its own, and none taken from the living."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backwave_django.core.outcomes import OutcomeKind, Verdict
from backwave_django.core.states import JobState
from tests.simulation.oracles import invariant

if TYPE_CHECKING:
    from tests.simulation.steps import Step

#: Ends that a lease comes to without a word of its body.
UNWITNESSED = {OutcomeKind.LAPSED, OutcomeKind.RELEASED, OutcomeKind.TIMED_OUT}


@invariant("no-double-lease")
def leases_are_unique(step: "Step") -> Iterator[str]:
    owners = Counter(lease.job_id for lease in step.leases)
    yield from (f"job {job_id.int} has {n} leases" for job_id, n in owners.items() if n > 1)
    if step.kind == "Claim":
        again = [job.lease_id for job in step.answer.jobs if job.lease_id in step.watch.given]
        yield from (f"lease {lease_id.int} was given before" for lease_id in again)


@invariant("stale-outcome-inert")
def the_fence_holds(step: "Step") -> Iterator[str]:
    if step.kind not in {"Report", "Release", "Commit"}:
        return
    living = {lease.id for lease in step.leases}
    for outcome, row in zip(step.request.outcomes, step.answer.rows, strict=True):
        was_there = outcome.lease_id in step.leases_before
        if not was_there and row.verdict is not Verdict.STALE:
            yield f"{row.verdict} without its lease: {outcome.kind} of job {outcome.job_id.int}"
        if was_there and (row.verdict is Verdict.APPLIED) == (outcome.lease_id in living):
            yield f"{row.verdict}, and the lease {'stays' if row.state is None else 'is gone'}"
    reported = {step.leases_before[o.lease_id].job_id for o in step.request.outcomes if o.lease_id
                in step.leases_before}  # fmt: skip
    for job_id, before, after in step.changed:
        if before and before.state is JobState.LEASED is not after.state and job_id not in reported:
            yield f"job {job_id.int} ended without a report of its own"


@invariant("cancel-never-lost")
def requested_cancellations_win(step: "Step") -> Iterator[str]:
    for lease in step.leases_before.values():
        if not lease.cancel_requested:
            continue
        after = step.after.get(lease.job_id)
        assert after is not None
        if after.lease == lease.id:
            if not after.cancel_requested:
                yield f"the wish to cancel job {lease.job_id.int} is forgotten"
        elif after.state not in {JobState.SUCCEEDED, JobState.CANCELLED}:
            yield f"job {lease.job_id.int} was to be cancelled and is {after.state}"


@invariant("outcome-matches-body")
def outcomes_tell_what_happened(step: "Step") -> Iterator[str]:
    """What is recorded of a lease is what its body did, or that nobody knows what it did."""
    for lease in step.leases_before.values():
        rows = [row for row in step.rows(lease.job_id) if row.run == lease.run]
        truth = step.watch.truth.get(lease.id)
        for row in rows:
            if row.kind not in UNWITNESSED and (truth is None or row.kind not in truth):
                yield f"job {lease.job_id.int} run {lease.run}: {row.kind} recorded, was {truth}"


@invariant("outcome-never-lost")
def outcomes_in_memory_reach_the_store(step: "Step") -> Iterator[str]:
    """A pump that lived on must not let a lease lapse, or recover it, whose body has ended."""
    if step.kind not in {"Recover", "ExpireLeases"}:
        return
    for lease in step.ended:
        owner = step.watch.owner(lease)
        if owner is None or lease.id not in step.watch.truth:
            continue
        swept = step.kind == "ExpireLeases" and step.watch.excused(owner, lease)
        if not swept:
            yield f"{owner} forgot how job {lease.job_id.int} run {lease.run} ended"


@invariant("healthy-lease-never-taken")
def healthy_pumps_keep_their_leases(step: "Step") -> Iterator[str]:
    if step.kind not in {"ExpireLeases", "Recover"}:
        return
    for lease in step.ended:
        owner = step.watch.owner(lease)
        if owner is None or owner.driver is None or step.watch.excused(owner, lease):
            continue
        if lease.id in owner.driver._holdings.leases():
            yield f"{step.kind} by {step.node} took job {lease.job_id.int} from {owner}"
