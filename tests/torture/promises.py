"""What clients were told, against what is there."""

from collections import Counter
from collections.abc import Iterator

from tests.torture.evidence import Evidence

Found = Iterator[tuple[str, str]]

#: How far a pump's clock and that of the person who pauses may lie apart, in seconds.
_SKEW = 0.5
#: Longer than outages and the locks of others last here, with SQLite's busy time-out on top.
LONGEST_WAIT = 45.0


def commits(evidence: Evidence) -> Found:
    """What was committed is there, and under the id that the client was told."""
    for told in evidence.told("enqueue.committed"):
        for job_id in told.get("jobs") or [told["job"]]:
            if job_id not in evidence.jobs:
                yield "committed-job-exists", f"{told['label']}: {job_id} is gone"
            elif told["created"] and told["label"] != evidence.label(job_id):
                yield "committed-job-exists", f"{told['label']}: {job_id} is another's"


def rollbacks(evidence: Evidence) -> Found:
    """What was rolled back is not there."""
    for how in ("rolled_back", "refused"):
        for told in evidence.told(f"enqueue.{how}"):
            for job_id in evidence.by_label.get(told["label"], ()):
                yield "rolled-back-job-is-not", f"{told['label']}: {job_id} after {how}"


def counts(evidence: Evidence) -> Found:
    """Nothing is there that nobody asked for; a bulk is there whole, or not at all."""
    asked = {told["label"]: told for told in evidence.told("enqueue.asked")}
    for label, jobs in evidence.by_label.items():
        minted = all(evidence.jobs[job_id]["schedule"] is not None for job_id in jobs)
        whole = asked.get(label, {}).get("bulk", 1)
        if label not in asked and not minted:
            yield "rolled-back-job-is-not", f"{label}: nobody asked for {jobs}"
        elif label in asked and len(jobs) != whole:
            yield "committed-job-exists", f"{label}: {len(jobs)} jobs instead of {whole}"


def bodies(evidence: Evidence) -> Found:
    """No body runs without a claim, none twice under one."""
    for job_id, begun in evidence.bodies.items():
        claims = evidence.jobs.get(job_id, {"run": 0})["run"]
        for run, count in begun.items():
            if not 1 <= run <= claims:
                yield "body-has-claim", f"{job_id}: a body of run {run} of {claims}"
            if count > 1:
                yield "body-has-claim", f"{job_id}: {count} bodies of run {run}"


def successes(evidence: Evidence) -> Found:
    """No attempt succeeds without a body."""
    for job_id, history in evidence.outcomes.items():
        for row in history:
            ran = evidence.bodies.get(job_id, {}).get(row["run"])
            if row["kind"] == "succeeded" and not ran:
                yield "body-has-claim", f"{job_id}: run {row['run']} succeeded without a body"


def answers(evidence: Evidence) -> Found:
    """Each action that was answered is in the log, row for row, with the result that was told."""
    for told in evidence.told("operator.answered"):
        rows = evidence.actions_by_label.get(told["label"], [])
        targets = Counter((told["action"], target) for target in told["targets"])
        if Counter((row["action"], row["target"]) for row in rows) != targets:
            yield "audit-complete", f"{told['label']}: {len(rows)} rows of {targets.total()}"
        results = dict(zip(told["targets"], told["results"], strict=False))
        for row in rows:
            if row["result"] != results.get(row["target"], row["result"]):
                yield "audit-complete", f"{told['label']}: {row['target']} was {row['result']}"


def unasked(evidence: Evidence) -> Found:
    """No action is in the log that nobody asked for."""
    asked = {told["label"]: told for told in evidence.told("operator.asked")}
    for label, rows in evidence.actions_by_label.items():
        targets = Counter[str](asked.get(label, {}).get("targets", ()))
        if Counter(row["target"] for row in rows) - targets:
            yield "audit-complete", f"{label}: {len(rows)} rows of {targets.total()}"


def waits(evidence: Evidence) -> Found:
    """Whoever asks hears an answer, or of an outage, within a bounded time."""
    asked: dict[str, float] = {}
    for entry in evidence.entries:
        label = str(entry.data.get("label", ""))
        if entry.what in {"enqueue.asked", "operator.asked"}:
            asked[label] = entry.at
        elif label in asked and entry.at - asked.pop(label) > LONGEST_WAIT:
            yield "nobody-waits-for-ever", f"{label}: {entry.what} at {entry.at}"


def pauses(evidence: Evidence) -> Found:
    """While a queue is surely paused, nothing is claimed from it."""
    spans: dict[str, list[tuple[float, float]]] = {}
    since: dict[str, float] = {}
    for entry in evidence.entries:
        action, targets = entry.data.get("action"), entry.data.get("targets", [])
        if entry.what == "operator.answered" and action == "pause":
            since[targets[0]] = entry.at
        elif entry.what == "operator.asked" and action == "resume" and targets[0] in since:
            spans.setdefault(targets[0], []).append((since.pop(targets[0]), entry.at))
    for told in evidence.told("watch.lease"):
        for begin, end in spans.get(told["queue"], ()):
            if begin + _SKEW < told["acquired"] < end - _SKEW:
                yield "paused-never-claimed", f"{told['queue']}: leased at {told['acquired']}"


CHECKS = (commits, rollbacks, counts, bodies, successes, answers, unasked, waits, pauses)
