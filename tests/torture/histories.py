"""Invariants over the row of each job and the history of its outcomes."""

from collections.abc import Iterator

from backwave_django.core.outcomes import SPENDING
from backwave_django.core.states import TERMINAL, JobState, is_legal
from tests.torture.evidence import Evidence, Row, is_over

Found = Iterator[tuple[str, str]]

_CANCELLED = ("cancelled", "operator")
_AGAIN = ("scheduled", None)
#: What each kind of outcome may make of a job, under a lease.
LEASED_ENDS: dict[str, set[tuple[str, str | None]]] = {
    "succeeded": {("succeeded", "returned")},
    "failed": {_AGAIN, ("dead_lettered", "attempts"), _CANCELLED},
    "timed_out": {_AGAIN, ("dead_lettered", "timeout"), _CANCELLED},
    "gave_up": {("dead_lettered", "gave_up"), _CANCELLED},
    "lapsed": {_AGAIN, ("dead_lettered", "attempts"), _CANCELLED},
    "output_refused": {("dead_lettered", "output"), _CANCELLED},
    "cancelled": {("cancelled", "job"), _CANCELLED},
    "snoozed": {_AGAIN, _CANCELLED},
    "released": {_AGAIN, _CANCELLED},
    "unroutable": {_AGAIN, ("quarantined", "unroutable"), _CANCELLED},
    "undecodable": {("quarantined", "undecodable"), _CANCELLED},
}
#: And without one.
OTHER_ENDS: dict[str, set[tuple[str, str | None]]] = {
    "cancelled": {_CANCELLED, ("cancelled", "parent"), ("cancelled", "superseded")},
    "expired": {("expired", "deadline"), ("dead_lettered", "deadline")},
    "released": {_AGAIN},
}


def transitions(evidence: Evidence) -> Found:
    """Each outcome follows from the state before it, and its kind allows what it made."""
    for job_id, history in evidence.outcomes.items():
        before: JobState | None = None
        for row in history:
            ends = OTHER_ENDS if row["run"] is None else LEASED_ENDS
            if (row["state"], row["cause"]) not in ends.get(row["kind"], ()):
                yield "legal-transition", f"{job_id}: {_show(row)}"
            elif not _follows(before, row):
                yield "legal-transition", f"{job_id}: {before}, then {_show(row)}"
            before = JobState(row["state"])


def _follows(before: JobState | None, row: Row) -> bool:
    """Whether the states in between, which leave no outcome, can have been legal ones."""
    after = JobState(row["state"])
    if before is JobState.SUCCEEDED:
        return False  # nobody in these runs retries a workflow, which alone brings one back
    if row["run"] is not None or row["kind"] == "released":
        return is_legal(JobState.LEASED, after)
    waiting = (JobState.SCHEDULED, JobState.AWAITING)
    return any(is_legal(state, after) for state in waiting)


def runs(evidence: Evidence) -> Found:
    """Runs grow; each that was claimed has exactly one outcome in the end."""
    for job_id, job in evidence.jobs.items():
        history = evidence.history(job_id)
        ended = [row["run"] for row in history if row["run"] is not None]
        if ended != sorted(ended) or any(run > job["run"] for run in ended):
            yield "run-monotonic", f"{job_id}: outcomes of runs {ended}, claimed {job['run']}"
        if len(ended) != len(set(ended)):
            yield "one-outcome-per-run", f"{job_id}: outcomes of runs {ended}"
        # One that was put back without a lease says so without a run.
        put_back = sum(row["run"] is None and row["kind"] == "released" for row in history)
        if is_over(job) and len(set(ended)) + put_back != job["run"]:
            yield "one-outcome-per-run", f"{job_id}: {job['run']} claims, outcomes of runs {ended}"


def spending(evidence: Evidence) -> Found:
    """``spent`` counts what spends since the last comeback, and nothing else."""
    for job_id, job in evidence.jobs.items():
        spent = 0
        over = False
        for row in evidence.history(job_id):
            if over:
                spent = 0  # it was brought back in between
            if row["attempt"] != spent + 1:
                yield "unspent-release", f"{job_id}: {_show(row)} after {spent} spent"
            spent += row["kind"] in SPENDING
            over = is_over(row)
        if over == is_over(job) and job["spent"] != spent:
            yield "unspent-release", f"{job_id}: spent {job['spent']}, its history says {spent}"
        most = job["max_attempts"]
        if most is not None and job["spent"] > most:
            yield "spent-ceiling", f"{job_id}: {job['spent']} of {most} attempts"


def stamps(evidence: Evidence) -> Found:
    """A terminal job has an instant and a cause, and lets go of its key; no other does."""
    for job_id, job in evidence.jobs.items():
        stamped = job["terminal_at"] is not None and job["cause"] is not None
        blank = job["terminal_at"] is None and job["cause"] is None
        if not (stamped if is_over(job) else blank):
            yield "terminal-stamped", f"{job_id}: {job['state']}, {job['cause']}"
        if job["unique_live"] != (None if is_over(job) else job["unique_key"]):
            yield "unique-key-holds", f"{job_id}: {job['state']} holds {job['unique_live']!r}"
        if job["output"] is not None and job["state"] != "succeeded":
            yield "output-only-on-success", f"{job_id}: {job['state']} with {job['output']}"


def endings(evidence: Evidence) -> Found:
    """A job is what its last outcome made it, and left an end only by being brought back."""
    for job_id, job in evidence.jobs.items():
        history = evidence.history(job_id)
        ends = [row for row in history if is_over(row)]
        comebacks = evidence.comebacks.get(job_id, 0)
        if len(ends) != comebacks + is_over(job):
            yield "terminal-stable", f"{job_id}: {len(ends)} ends, {comebacks} comebacks"
        last = (history[-1]["state"], history[-1]["cause"]) if history else (None, None)
        if is_over(job) and last != (job["state"], job["cause"]):
            yield "terminal-stable", f"{job_id}: {job['state']}, but its history says {last}"
        if job["state"] == "expired" and (job["run"] or evidence.bodies.get(job_id)):
            yield "expired-never-ran", f"{job_id}: {job['run']} runs"


def leases(evidence: Evidence) -> Found:
    """A job is leased exactly while it has a lease, of its run."""
    holders = {row["job_id"]: row for row in evidence.leases}
    if len(holders) != len(evidence.leases):
        yield "no-double-lease", f"{len(evidence.leases) - len(holders)} jobs have more than one"
    for job_id in holders.keys() - evidence.jobs.keys():
        yield "lease-iff-leased", f"{job_id}: a lease without a job"
    for job_id, job in evidence.jobs.items():
        lease = holders.get(job_id)
        if (lease is not None) != (job["state"] == "leased"):
            yield "lease-iff-leased", f"{job_id}: {job['state']}"
        elif lease is not None and lease["run"] != job["run"]:
            yield "lease-iff-leased", f"{job_id}: run {job['run']}, lease of {lease['run']}"


def rest(evidence: Evidence) -> Found:
    """When all is healed and nobody asks for more, everything comes to its end."""
    for job_id, job in evidence.jobs.items():
        if job["state"] == "awaiting":
            yield "no-orphan-awaiting", f"{job_id}: waits for {job['pending_parents']} parents"
        elif job["state"] not in TERMINAL:
            yield "every-job-terminates", f"{job_id}: {job['state']} in {job['queue']}"


def _show(row: Row) -> str:
    return f"{row['kind']} of run {row['run']} made it {row['state']} ({row['cause']})"


CHECKS = (transitions, runs, spending, stamps, endings, leases, rest)
