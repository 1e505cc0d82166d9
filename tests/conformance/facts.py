"""Short views of a snapshot, so that a test can compare whole tuples."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from backwave_django.core.jobs import Enqueued, LeasedJob
from backwave_django.core.memory import Snapshot
from backwave_django.core.states import JobState
from tests.builders import uid


class Facts(NamedTuple):
    """Where a job stands."""

    state: Any
    run: Any
    spent: Any
    due_at: Any
    cause: Any = None


class Ended(NamedTuple):
    """One line of a job's history."""

    kind: Any
    state: Any
    cause: Any
    run: Any
    attempt: Any


def facts(snapshot: Snapshot, number: int) -> Facts:
    """Where the job of this number stands."""
    job = snapshot.jobs[uid(number)]
    return Facts(job["state"], job["run"], job["spent"], job["due_at"], job["cause"])


def states(snapshot: Snapshot, *numbers: int) -> tuple[Any, ...]:
    """The states of these jobs."""
    return tuple(snapshot.jobs[uid(number)]["state"] for number in numbers)


def column(snapshot: Snapshot, number: int, *names: str) -> tuple[Any, ...]:
    """Some columns of a job."""
    return tuple(snapshot.jobs[uid(number)][name] for name in names)


def history(snapshot: Snapshot, number: int) -> tuple[Ended, ...]:
    """How the attempts of a job ended, oldest first."""
    rows = snapshot.outcomes.get(uid(number), ())
    return tuple(
        Ended(row["kind"], row["state"], row["cause"], row["run"], row["attempt"]) for row in rows
    )


def edges(snapshot: Snapshot, child: int) -> dict[UUID, bool]:
    """The parents of a job, and whether each edge is settled."""
    found = {key: settled for key, (_, settled) in snapshot.edges.items()}
    return {parent: settled for (parent, to), settled in found.items() if to == uid(child)}


def expiries(snapshot: Snapshot) -> dict[UUID, datetime]:
    """When each leased job's lease ends."""
    return {job_id: lease["expires_at"] for job_id, lease in snapshot.leases.items()}  # type: ignore[misc]  # columns are objects


def numbers(jobs: tuple[LeasedJob, ...]) -> tuple[int, ...]:
    """The numbers of leased jobs, in the order of the answer."""
    return tuple(job.job_id.int for job in jobs)


def made(number: int, state: JobState) -> Enqueued:
    """The answer for a job that was inserted."""
    return Enqueued(uid(number), created=True, state=state)


def met(number: int, state: JobState) -> Enqueued:
    """The answer for a job whose unique key another one holds."""
    return Enqueued(uid(number), created=False, state=state)
