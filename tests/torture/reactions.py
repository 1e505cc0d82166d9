"""What observers are told: each dead letter once, in a job that is there exactly if the end is."""

from collections import Counter
from collections.abc import Iterator

from backwave_django.jobs.observers import MARK
from tests.torture.evidence import End, Evidence
from tests.torture.jobs import OBSERVED

Found = Iterator[tuple[str, str]]


def _dead_letters(evidence: Evidence) -> Counter[End]:
    """Return the ends that are to be told, by the history of outcomes."""
    return Counter(
        End(job_id, row["state"], row["cause"], row["run"], row["attempt"])
        for job_id, history in evidence.outcomes.items()
        if evidence.jobs[job_id]["wire_name"] in OBSERVED and job_id not in evidence.heard
        for row in history
        if row["state"] == "dead_lettered"
    )


def reactions(evidence: Evidence) -> Found:
    """Each dead letter has one observer's job; what did not end so has none."""
    ended, told = _dead_letters(evidence), Counter(evidence.heard.values())
    for end in ended.keys() | told.keys():
        if end.job_id not in evidence.heard and ended[end] != told[end]:
            yield "observer-exactly-once", f"{end}: {ended[end]} ends, {told[end]} observers"


def silence(evidence: Evidence) -> Found:
    """The end of an observer's own job is told to nobody."""
    for job_id, end in evidence.heard.items():
        if end.job_id in evidence.heard:
            yield "observers-end-untold", f"{job_id} was told of the observer {end.job_id}"


def marks(evidence: Evidence) -> Found:
    """An observer's job, and no other, carries the id of the job that it is about."""
    for job_id, job in evidence.jobs.items():
        end, mark = evidence.heard.get(job_id), job["tags"].get(MARK)
        if mark != (None if end is None else end.job_id):
            yield "observer-is-marked", f"{job_id}: marked with {mark}, was told of {end}"


def figures(evidence: Evidence) -> dict[str, int]:
    """Count what a run gave these checks to look at."""
    ended = _dead_letters(evidence)
    lost = [
        row
        for job_id in {end.job_id for end in ended}
        for row in evidence.history(job_id)
        if row["kind"] == "lapsed" and row["state"] == "dead_lettered"
    ]
    dead = [job for job in evidence.heard if evidence.jobs[job]["state"] == "dead_lettered"]
    return {
        "dead letters": ended.total(),
        "of jobs lost with their pumps": len(lost),
        "observers": len(evidence.heard),
        "dead observers": len(dead),
    }


CHECKS = (reactions, silence, marks)
