"""The invariants, each under its stable id: what must hold of any step of any store."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from backwave_django.core.jobs import EdgeMode
from backwave_django.core.outcomes import SPENDING, OutcomeKind
from backwave_django.core.states import TERMINAL, Cause, JobState

if TYPE_CHECKING:
    from tests.simulation.steps import Step

#: For each kind of step, the moves it may make. ``None`` stands for a job that is not there.
MOVES: dict[str, set[tuple[JobState | None, JobState]]] = {
    "enqueue": {
        (None, JobState.SCHEDULED),
        (None, JobState.AWAITING),
        (None, JobState.CANCELLED),
        (JobState.SCHEDULED, JobState.CANCELLED),
        (JobState.AWAITING, JobState.CANCELLED),
    },
    "Claim": {(JobState.SCHEDULED, JobState.LEASED)},
    "requeue": {
        (state, after)
        for state in TERMINAL - {JobState.SUCCEEDED}
        for after in (JobState.SCHEDULED, JobState.AWAITING)
    },
    "Mint": {(None, JobState.SCHEDULED)},
    "trigger": {(None, JobState.SCHEDULED)},
    "cancel": {(JobState.SCHEDULED, JobState.CANCELLED)},
    "Settle": {
        (JobState.SCHEDULED, JobState.EXPIRED),
        (JobState.SCHEDULED, JobState.DEAD_LETTERED),
        # A deadline may have passed by the time that a parent ends.
        (JobState.AWAITING, JobState.EXPIRED),
    },
}
#: What the end of a job does to those that wait for it.
SETTLING = {
    (JobState.AWAITING, JobState.SCHEDULED),
    (JobState.AWAITING, JobState.CANCELLED),
}
ENDS = {(JobState.LEASED, state) for state in (*TERMINAL, JobState.SCHEDULED)} - {
    (JobState.LEASED, JobState.EXPIRED)
}
for _kind in ("Report", "Release", "Recover", "ExpireLeases", "Dispose"):
    MOVES[_kind] = ENDS | SETTLING
for _kind in ("cancel", "Settle"):
    MOVES[_kind] |= SETTLING
MOVES["Commit"] = SETTLING | {(JobState.LEASED, JobState.SUCCEEDED)}
MOVES["cancel workflow"] = MOVES["cancel"]
MOVES["retry workflow"] = {
    (state, after) for state in TERMINAL for after in (JobState.SCHEDULED, JobState.AWAITING)
}
MOVES["restart workflow"] = {
    (None, state) for state in (JobState.SCHEDULED, JobState.AWAITING, JobState.CANCELLED)
}
#: Steps that bring jobs back to life.
REVIVALS = {"requeue", "retry workflow"}

OPERATIONS = {
    "cancel",
    "requeue",
    "run now",
    "pause",
    "queue limit",
    "key limit",
    "queue rate",
    "key rate",
    "window",
    "pattern limit",
    "drain",
    "pause schedule",
    "resume schedule",
    "trigger",
    "cancel workflow",
    "retry workflow",
    "restart workflow",
}
NEW = (None, JobState.SCHEDULED)
#: The tag of an observer's job: whose end it was told of.
MARK = "observes"
CANCEL_CAUSES = {Cause.OPERATOR, Cause.PARENT, Cause.SUPERSEDED, Cause.JOB}


class Violated(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


Oracle = Callable[["Step"], Iterator[str]]
ORACLES: dict[str, Oracle] = {}


def invariant(name: str) -> Callable[[Oracle], Oracle]:
    """Register an oracle: it yields a sentence for each thing that is wrong."""

    def register(oracle: Oracle) -> Oracle:
        ORACLES[name] = oracle
        return oracle

    return register


@invariant("legal-transition")
def moves_are_legal(step: "Step") -> Iterator[str]:
    allowed = MOVES.get(step.kind, set())
    for job_id, before, after in step.changed:
        move = (before and before.state, after.state)
        if move == NEW and MARK in step.tables.jobs[job_id].tags:
            continue  # the job of an observer: see there
        if move[0] is not move[1] and move not in allowed:
            yield f"{step.kind} moved job {job_id.int} from {move[0]} to {move[1]}"


@invariant("run-monotonic")
def runs_count_claims(step: "Step") -> Iterator[str]:
    for job_id, before, after in step.changed:
        was = before.run if before else 0
        claimed = step.kind == "Claim" and after.state is JobState.LEASED
        if after.run != was + claimed:
            yield f"job {job_id.int} went from run {was} to {after.run} by {step.kind}"


@invariant("spent-ceiling")
def attempts_are_spent_by_failures(step: "Step") -> Iterator[str]:
    for job_id, before, after in step.changed:
        spends = sum(row.kind in SPENDING for row in step.rows(job_id))
        was = 0 if before is None or step.kind in REVIVALS else before.spent
        if after.spent != was + spends:
            yield f"job {job_id.int} spent {was}, then {spends} ends, now {after.spent}"
        if after.max_attempts is not None and after.spent > after.max_attempts:
            yield f"job {job_id.int} spent {after.spent} of {after.max_attempts}"
        if after.state is JobState.SCHEDULED and after.spent >= (after.max_attempts or 99):
            yield f"job {job_id.int} is tried again with no attempt left"


@invariant("unspent-release")
def releases_spend_nothing(step: "Step") -> Iterator[str]:
    for job_id, before, after in step.changed:
        rows = step.rows(job_id)
        spends = any(row.kind in SPENDING for row in rows)
        if before and rows and not spends and after.spent > before.spent:
            yield f"job {job_id.int}: {rows[-1].kind} spent an attempt"
        if before and step.kind == "Recover" and after.spent > before.spent:
            yield f"job {job_id.int}: a recovery spent an attempt"


@invariant("terminal-stable")
def terminal_jobs_stay(step: "Step") -> Iterator[str]:
    for job_id, before, after in step.changed:
        if before and before.state in TERMINAL and step.kind not in REVIVALS:
            stays = before._replace(pending=after.pending, rows=after.rows) == after
            if not stays or before.rows != after.rows:
                yield f"job {job_id.int} was {before}, is {after} by {step.kind}"


@invariant("terminal-stamped")
def terminal_jobs_say_why(step: "Step") -> Iterator[str]:
    for job_id, _, after in step.changed:
        stamped = after.cause is not None and after.terminal_at is not None
        bare = after.cause is None and after.terminal_at is None
        if not (stamped if after.state in TERMINAL else bare):
            yield f"job {job_id.int} is {after.state} with {after.cause}, {after.terminal_at}"


@invariant("lease-iff-leased")
def leases_belong_to_leased_jobs(step: "Step") -> Iterator[str]:
    for job_id, _, after in step.changed:
        if (after.lease is not None) != (after.state is JobState.LEASED):
            yield f"job {job_id.int} is {after.state} with lease {after.lease}"


@invariant("one-outcome-per-run")
def each_run_ends_once(step: "Step") -> Iterator[str]:
    for job_id, before, after in step.changed:
        rows = step.rows(job_id)
        runs = [row.run for row in rows if row.run is not None]
        ended = before is not None and before.state is JobState.LEASED is not after.state
        if runs != ([before.run] if before and ended else []):
            yield f"job {job_id.int} {before and before.state} to {after.state}: runs {runs} end"
        known = [row.run for row in step.history(job_id) if row.run is not None]
        if len(known) != len(set(known)):
            yield f"job {job_id.int} has outcomes for runs {known}"


@invariant("slot-freed-once")
def limits_count_what_is_leased(step: "Step") -> Iterator[str]:
    leases = Counter((lease.queue, lease.limit_key) for lease in step.leases)
    leased = Counter(
        (job.new.queue, job.new.limit_key)
        for job in step.tables.jobs.values()
        if job.state is JobState.LEASED
    )
    if leases != leased:
        yield f"leases hold {leases}, jobs hold {leased}"


@invariant("limit-never-exceeded")
def queue_limits_hold(step: "Step") -> Iterator[str]:
    for queue in step.claimed_queues:
        row = step.tables.queues.get(queue)
        count = sum(lease.queue == queue for lease in step.leases)
        if row is not None and row.limit is not None and count > row.limit:
            yield f"queue {queue} has {count} leases of {row.limit}"


@invariant("key-limit-never-exceeded")
def key_limits_hold(step: "Step") -> Iterator[str]:
    if step.kind != "Claim":
        return
    for key in {job.limit_key for job in step.answer.jobs if job.limit_key is not None}:
        count = sum(lease.limit_key == key for lease in step.leases)
        limit = step.tables.cap_of(key).number
        if limit is not None and count > limit:
            yield f"key {key} has {count} leases"


@invariant("paused-never-claimed")
def paused_queues_rest(step: "Step") -> Iterator[str]:
    for queue in step.claimed_queues:
        row = step.tables.queues.get(queue)
        if row is not None and row.is_paused(now=step.now):
            yield f"queue {queue} is paused"


@invariant("closed-never-claimed")
def closed_queues_rest(step: "Step") -> Iterator[str]:
    for queue in step.claimed_queues:
        row = step.tables.queues.get(queue)
        if row is not None and row.window is not None:
            # As the operator put it, and not by the code that the store asks.
            opens, closes = row.window.removesuffix(" UTC").split("-")
            if f"{step.now:%H:%M}" == closes and opens != closes:
                yield f"queue {queue} is closed"


@invariant("only-served-queues")
def pumps_claim_their_own(step: "Step") -> Iterator[str]:
    served = set(step.request.request.queues) if step.kind == "Claim" else set()
    for queue in step.claimed_queues - served:
        yield f"queue {queue} was not asked for"


@invariant("no-orphan-awaiting")
def who_waits_waits_for_somebody(step: "Step") -> Iterator[str]:
    if not step.graph_changed:
        return
    for job in step.tables.jobs.values():
        open_edges = [e for e in step.tables.parents.get(job.id, {}).values() if not e.settled]
        if job.pending_parents != len(open_edges):
            yield f"job {job.id.int} counts {job.pending_parents} of {len(open_edges)} parents"
        if (job.state is JobState.AWAITING) and not open_edges:
            yield f"job {job.id.int} waits for nobody"
        if job.state in {JobState.SCHEDULED, JobState.LEASED} and open_edges:
            yield f"job {job.id.int} is {job.state} before its parents"


@invariant("cascade-complete")
def ends_reach_all_dependents(step: "Step") -> Iterator[str]:
    if not step.graph_changed:
        return
    for parent, children in step.tables.children.items():
        state = step.tables.state_of(parent)
        if state is None or state in TERMINAL:
            left = [child for child, edge in children.items() if not edge.settled]
            heard = [child.int for child in left if child not in step.watch.held_until]
            if heard:
                yield f"job {parent.int} is {state}; jobs {heard} did not hear of it"
            if left and parent not in step.tables.settle_queue:
                yield f"job {parent.int} is {state}; {len(left)} jobs will never hear of it"
            yield from _unfailed(step, parent, state)


def _unfailed(step: "Step", parent: UUID, state: JobState | None) -> Iterator[str]:
    """A wanted success that did not come must have ended whoever wanted it."""
    for child, edge in step.tables.children[parent].items():
        wanted = edge.mode is EdgeMode.ON_SUCCESS and state is not JobState.SUCCEEDED
        settled_now = wanted and child in step.settled_now and edge.settled
        if settled_now and step.tables.state_of(child) not in TERMINAL:
            yield f"job {child.int} goes on although job {parent.int} is {state}"


@invariant("edge-settled-once")
def settled_edges_stay_settled(step: "Step") -> Iterator[str]:
    if step.kind in REVIVALS:
        return
    for edge, settled in step.edges_before.items():
        if settled and not step.edges.get(edge, True):
            yield f"edge {edge[0].int} to {edge[1].int} is open again"


@invariant("success-stands")
def successes_stand(step: "Step") -> Iterator[str]:
    for job_id, _, after in step.changed:
        for row in step.rows(job_id):
            if row.kind is OutcomeKind.SUCCEEDED and row.state is not JobState.SUCCEEDED:
                yield f"job {job_id.int} returned and is {after.state}"


@invariant("cancel-has-cause")
def cancellations_have_a_cause(step: "Step") -> Iterator[str]:
    for job_id, _, after in step.changed:
        if after.state is JobState.CANCELLED and after.cause not in CANCEL_CAUSES:
            yield f"job {job_id.int} is cancelled for {after.cause}"


@invariant("quarantining-run-ran-no-body")
def quarantined_runs_ran_nothing(step: "Step") -> Iterator[str]:
    for job_id, _, after in step.changed:
        if after.state is JobState.QUARANTINED and (job_id, after.run) in step.watch.begun:
            yield f"job {job_id.int} was quarantined after its body"
        if after.cause is Cause.UNROUTABLE:
            since = step.tables.jobs[job_id].unroutable_since
            if since is None or step.now - since < step.tables.settings.unroutable_grace:
                yield f"job {job_id.int} was quarantined within its grace"


@invariant("expired-never-ran")
def expired_jobs_never_ran(step: "Step") -> Iterator[str]:
    for job_id, _, after in step.changed:
        if after.state is JobState.EXPIRED and after.run:
            yield f"job {job_id.int} expired after run {after.run}"
        if step.kind == "Claim" and after.state is JobState.LEASED:
            deadline = step.tables.jobs[job_id].deadline
            if deadline is not None and deadline <= step.now:
                yield f"job {job_id.int} was claimed past its deadline"


@invariant("unique-key-holds")
def keys_have_one_live_holder(step: "Step") -> Iterator[str]:
    live = Counter(
        job.new.unique_key
        for job in step.tables.jobs.values()
        if job.new.unique_key is not None and job.state not in TERMINAL
    )
    yield from (f"{key!r} is held {count} times" for key, count in live.items() if count > 1)


@invariant("audit-complete")
def operators_leave_a_trace(step: "Step") -> Iterator[str]:
    expected = 1 if step.kind in OPERATIONS else 0
    if len(step.tables.actions) - step.actions_before != expected:
        yield f"{step.kind} left {len(step.tables.actions) - step.actions_before} audit rows"


@invariant("output-only-on-success")
def outputs_belong_to_successes(step: "Step") -> Iterator[str]:
    for job_id, _, after in step.changed:
        if after.output is not None and after.state is not JobState.SUCCEEDED:
            yield f"job {job_id.int} is {after.state} with an output"
