"""Invariants over edges, keys, schedules, and who may run what."""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from tests.torture.evidence import Evidence, Row, is_over

Found = Iterator[tuple[str, str]]

#: Clocks of pumps follow the database's; they are not it.
_SKEW = timedelta(seconds=0.5)


def settling(evidence: Evidence) -> Found:
    """Each edge of a parent that is over is settled, and was counted once."""
    waiting = set(evidence.settle_queue)
    for child, edges in evidence.parents.items():
        job = evidence.jobs.get(child)
        unsettled = sum(not edge["settled"] for edge in edges)
        if job is not None and job["pending_parents"] != unsettled:
            yield "edge-settled-once", f"{child}: {job['pending_parents']} of {unsettled} edges"
        for edge in edges:
            parent = evidence.jobs.get(edge["parent_id"])
            over = parent is None or is_over(parent)
            if over and not edge["settled"] and edge["parent_id"] not in waiting:
                yield "edge-settled-once", f"{child}: nobody will settle {edge['parent_id']}"


def cascades(evidence: Evidence) -> Found:
    """Who needed a parent's success never ran without it."""
    for child, edges in evidence.parents.items():
        job, ran = evidence.jobs.get(child), _first_run(evidence, child)
        for edge in edges if job is not None else ():
            parent = edge["parent_id"]
            # A success never comes back, so what the parent is now is what it was then.
            failed = parent not in evidence.jobs or evidence.jobs[parent]["state"] != "succeeded"
            if ran is not None and edge["mode"] == "on_success" and failed:
                yield "cascade-complete", f"{child} ran, its parent {parent} has not succeeded"
            first_end = min((row["id"] for row in _ends(evidence, parent)), default=None)
            if ran is not None and (first_end is None or first_end > ran):
                yield "edge-settled-once", f"{child} ran before its parent {parent} had ended"


def _first_run(evidence: Evidence, job_id: str) -> int | None:
    ids = [row["id"] for row in evidence.history(job_id) if row["run"] is not None]
    return min(ids, default=None)


def _ends(evidence: Evidence, job_id: str) -> list[Row]:
    return [row for row in evidence.history(job_id) if is_over(row)]


def keys(evidence: Evidence) -> Found:
    """Two jobs under one key: only as far as the key's policy lets them be."""
    holders: dict[str, list[str]] = defaultdict(list)
    live: dict[str, int] = defaultdict(int)
    for job_id, job in evidence.jobs.items():
        if job["unique_key"] is not None:
            holders[job["unique_key"]].append(job_id)
            live[job["unique_key"]] += not is_over(job)
    for key, jobs in holders.items():
        if live[key] > 1:
            yield "unique-key-holds", f"{key}: {live[key]} live jobs"
        if key.startswith("reject-") and len(jobs) > 1:
            yield "unique-key-holds", f"{key}: {len(jobs)} jobs, though any holder rejects"
        # One that was brought back may have succeeded beside another that came meanwhile.
        plain = [job_id for job_id in jobs if not evidence.comebacks.get(job_id)]
        successes = sum(evidence.jobs[job_id]["state"] == "succeeded" for job_id in plain)
        if key.startswith("after-failure-") and successes > 1:
            yield "unique-key-holds", f"{key}: {successes} successes"


def causes(evidence: Evidence) -> Found:
    """Whoever was cancelled was so by somebody."""
    asked = {a["target"] for a in evidence.actions if a["action"] == "cancel"}
    raised = {
        (told["job"], told["run"])
        for told in evidence.told("body.raised")
        if told["error"] == "Cancelled"
    }
    for job_id, history in evidence.outcomes.items():
        for row in history:
            if row["state"] != "cancelled":
                continue
            edges = evidence.parents.get(job_id, [])
            known = {
                "operator": job_id in asked,
                "job": (job_id, row["run"]) in raised,
                "parent": any(edge["mode"] == "on_success" for edge in edges),
                "superseded": str(evidence.jobs[job_id]["unique_key"]).startswith("replace-"),
            }
            if not known.get(str(row["cause"]), False):
                yield "cancel-has-cause", f"{job_id}: {row['cause']}, run {row['run']}"


def requests(evidence: Evidence) -> Found:
    """A body that was asked to stop: its attempt ends as cancelled, or had succeeded."""
    for action in evidence.actions:
        if action["action"] == "cancel" and action["result"] == "requested":
            history = evidence.history(action["target"])
            under_lease = [row for row in history if row["run"] is not None]
            if not any(row["state"] in {"cancelled", "succeeded"} for row in under_lease):
                yield "cancel-never-lost", f"{action['target']}: asked at {action['at']}"


def ticks(evidence: Evidence) -> Found:
    """Each tick is minted once, and not while an earlier job of the schedule is live."""
    made: dict[str, list[Row]] = defaultdict(list)
    for job in evidence.jobs.values():
        if job["schedule"] is not None:
            made[job["schedule"]].append(job)
    for name, jobs in made.items():
        nominal = [job["scheduled_for"] for job in jobs if job["scheduled_for"] is not None]
        if len(nominal) != len(set(nominal)):
            yield "tick-minted-once", f"{name}: {len(nominal)} jobs, {len(set(nominal))} ticks"
        jobs.sort(key=lambda job: job["created_at"])
        for before, after in pairwise(jobs):
            back = evidence.comebacks.get(before["id"])
            ended = before["terminal_at"]
            if not back and (ended is None or ended > after["created_at"] + _SKEW):
                yield "no-overlap-at-mint", f"{name}: {after['id']} while {before['id']} lived"


def serving(evidence: Evidence) -> Found:
    """A pump runs jobs of its queues only."""
    for job_id, history in evidence.outcomes.items():
        for pump in {row["pump_id"] for row in history} - {None}:
            known = evidence.pumps.get(pump)
            queue = evidence.jobs[job_id]["queue"]
            if known is None:
                yield "only-served-queues", f"{job_id}: nobody knows the pump {pump}"
            elif queue not in known["queues"]:
                yield "only-served-queues", f"{job_id}: pump {pump} does not serve {queue}"


def quarantine(evidence: Evidence) -> Found:
    """The run that quarantined a job ran no body."""
    for job_id, history in evidence.outcomes.items():
        for row in history:
            if row["state"] == "quarantined" and evidence.bodies.get(job_id, {}).get(row["run"]):
                yield "quarantining-run-ran-no-body", f"{job_id}: run {row['run']}"


def fences(evidence: Evidence) -> Found:
    """What an attempt leaves behind was left by one whose outcome counted."""
    for job_id, job in evidence.jobs.items():
        kinds = {row["run"]: row["kind"] for row in evidence.history(job_id)}
        for run in (int(name[1:]) for name in job["tags"] if re.fullmatch(r"r\d+", name)):
            if kinds.get(run) in {None, "lapsed", "unroutable", "undecodable", "expired"}:
                yield "stale-outcome-inert", f"{job_id}: a tag of run {run}: {kinds.get(run)}"
        if job["state"] == "succeeded":
            told = re.search(r'"run":\s*(\d+)', job["output"] or "")
            ran = int(told[1]) if told else None
            if kinds.get(ran) != "succeeded":
                yield "stale-outcome-inert", f"{job_id}: output of run {ran}: {kinds.get(ran)}"


CHECKS = (settling, cascades, keys, causes, requests, ticks, serving, quarantine, fences)
