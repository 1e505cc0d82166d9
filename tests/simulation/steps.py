"""One step of the store, as the oracles see it: what was there, what is there, what was asked."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from backwave_django.core.memory.rows import LeaseRow, OutcomeRow
from backwave_django.core.memory.tables import Tables
from backwave_django.core.states import Cause, JobState

if TYPE_CHECKING:
    from tests.simulation.nodes import Node
    from tests.simulation.watch import Watch

Edges = dict[tuple[UUID, UUID], bool]


class Seen(NamedTuple):
    """A job as it was seen."""

    state: JobState | None
    run: int
    spent: int
    cause: Cause | None
    terminal_at: datetime | None
    output: str | None
    pending: int
    max_attempts: int | None
    lease: UUID | None
    cancel_requested: bool
    rows: int


def look(tables: Tables) -> dict[UUID, Seen]:
    """See all jobs."""
    lease_of, outcomes = tables.lease_of, tables.outcomes
    seen = {}
    for job_id, job in tables.jobs.items():
        lease = lease_of.get(job_id)
        seen[job_id] = Seen(
            job.state,
            job.run,
            job.spent,
            job.cause,
            job.terminal_at,
            job.output,
            job.pending_parents,
            job.max_attempts,
            None if lease is None else lease.id,
            lease is not None and lease.cancel_requested,
            len(outcomes.get(job_id, ())),
        )
    return seen


def look_at_edges(tables: Tables) -> Edges:
    return {
        (edge.parent, edge.child): edge.settled
        for children in tables.children.values()
        for edge in children.values()
    }


@dataclass(kw_only=True)
class Step:
    """What one call to the store did. ``changed`` pairs each job's before and after."""

    watch: "Watch"
    kind: str
    now: datetime
    node: "Node | None"
    request: Any
    answer: Any
    tables: Tables
    before: dict[UUID, Seen]
    after: dict[UUID, Seen]
    leases_before: dict[UUID, LeaseRow]
    edges_before: Edges
    edges: Edges
    actions_before: int
    changed: list[tuple[UUID, Seen | None, Seen]] = field(init=False)

    def __post_init__(self) -> None:
        before = self.before
        self.changed = [
            (job_id, before.get(job_id), seen)
            for job_id, seen in self.after.items()
            if before.get(job_id) != seen
        ]

    @property
    def leases(self) -> list[LeaseRow]:
        return list(self.tables.leases.values())

    @cached_property
    def ended(self) -> list[LeaseRow]:
        """The leases that this step ended."""
        return [lease for key, lease in self.leases_before.items() if key not in self.tables.leases]

    @cached_property
    def claimed_queues(self) -> set[str]:
        return {job.queue for job in self.answer.jobs} if self.kind == "Claim" else set()

    @cached_property
    def settled_now(self) -> set[UUID]:
        """The children of edges that this step settled."""
        before = self.edges_before
        return {edge[1] for edge, done in self.edges.items() if done and not before.get(edge, True)}

    @property
    def graph_changed(self) -> bool:
        return bool(self.edges) and (bool(self.changed) or self.edges != self.edges_before)

    def history(self, job_id: UUID) -> list[OutcomeRow]:
        return self.tables.outcomes.get(job_id, [])

    def rows(self, job_id: UUID) -> list[OutcomeRow]:
        """The outcomes that this step appended to a job."""
        before = self.before.get(job_id)
        return self.history(job_id)[before.rows if before else 0 :]
