"""The watch over a run: it sees every step of the store and of the nodes, and asks the oracles."""

from collections import Counter, defaultdict
from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from backwave_django.core import events as e
from backwave_django.core.contract import SweepAnswer
from backwave_django.core.memory.rows import LeaseRow
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import TERMINAL
from tests.simulation import atomicity, fences, oracles, rates, reactions, situations, ticks
from tests.simulation.bodies import Body
from tests.simulation.oracles import ORACLES, Violated
from tests.simulation.steps import Step, look, look_at_edges
from tests.simulation.vigil import Vigil

if TYPE_CHECKING:
    from tests.simulation.nodes import Node
    from tests.simulation.world import World

#: Steps that, when they changed no job, changed nothing else either.
QUIET_STEPS = {"Report", "Release", "Recover", "ExpireLeases", "Dispose", "Settle", "Purge"}

WITNESSED: dict[type[e.AttemptReported], set[OutcomeKind]] = {
    e.AttemptSucceeded: {OutcomeKind.SUCCEEDED},
    e.AttemptFailed: {OutcomeKind.FAILED, OutcomeKind.GAVE_UP},
    e.AttemptOutputRefused: {OutcomeKind.OUTPUT_REFUSED},
    e.AttemptCancelled: {OutcomeKind.CANCELLED},
    e.AttemptSnoozed: {OutcomeKind.SNOOZED},
    e.AttemptUnroutable: {OutcomeKind.UNROUTABLE},
    e.AttemptUndecodable: {OutcomeKind.UNDECODABLE},
    # An atomic body whose success was rolled back: as if it had not been.
    e.AttemptReleased: set(),
}


def _tells(kind: str, answer: Any) -> bool:
    """Whether a step is worth a look. What an idle one did in secret comes out at the next."""
    if kind == "Claim":
        return bool(answer.jobs)
    return kind != "Heartbeat" and not (isinstance(answer, SweepAnswer) and answer.count == 0)


#: Steps that may end leases.
LEASE_ENDERS = {"Report", "Release", "Recover", "ExpireLeases", "Dispose", "cancel"} | {
    "cancel workflow",
    "Commit",
}
#: Importing them registers their invariants.
JUDGES = (oracles, fences, rates, ticks, reactions, atomicity)


class Watch:
    """What was seen so far. Raises ``Violated`` at the first thing that is wrong."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._seen: dict[UUID, Any] = {}
        self._edges: dict[tuple[UUID, UUID], bool] = {}
        self._actions = 0
        self.vigil = Vigil(self, world)
        self.given: set[UUID] = set()
        #: The ticks that got a job.
        self.minted: set[tuple[str, datetime | None]] = set()
        #: How the body under a lease ended, if it did.
        self.truth: dict[UUID, set[OutcomeKind]] = {}
        #: The runs in which a body began.
        self.begun: set[tuple[UUID, int]] = set()
        #: What atomic bodies wrote and committed: how often each run of a job did.
        self.ledger: dict[UUID, Counter[int]] = defaultdict(Counter)
        self.clock_stepped_at = -1e9
        #: When jobs started, by the kind of rate that they count against and its queue or key.
        self.starts: dict[tuple[str, str], list[datetime]] = {}
        #: Until when a foreign transaction holds a row.
        self.held_until: dict[UUID, float] = {}
        self.transitions: Counter[tuple[str, str, str]] = Counter()

    def require(self, invariant: str, good: object, detail: str) -> None:
        if not good:
            raise Violated(invariant, detail)

    # The store

    def perform(
        self,
        kind: str,
        call: Callable[[], Any],
        *,
        now: datetime,
        node: "Node | None" = None,
        request: Any = None,
    ) -> Any:
        """Make one call to the store and hold every oracle against what it did."""
        tables = self._world.store.tables
        ends = kind in LEASE_ENDERS
        leases = {lease.id: copy(lease) for lease in tables.leases.values()} if ends else {}
        answer = call()
        if not _tells(kind, answer):
            return answer
        step = Step(
            watch=self,
            kind=kind,
            now=now,
            node=node,
            request=request,
            answer=answer,
            tables=tables,
            before=self._seen,
            after=look(tables),
            leases_before=leases,
            edges_before=self._edges,
            edges=look_at_edges(tables),
            actions_before=self._actions,
        )
        self._judge(step)
        self._seen, self._edges, self._actions = step.after, step.edges, len(tables.actions)
        if kind == "Claim":
            self.given.update(job.lease_id for job in answer.jobs)
        return answer

    def _judge(self, step: Step) -> None:
        for situation in situations.of(step):
            self._world.reached(situation)
        if not step.changed and step.kind in QUIET_STEPS:
            self._ask("stale-outcome-inert", step)
            return
        for name in ORACLES:
            self._ask(name, step)
        for _, before, after in step.changed:
            if before is None or before.state is not after.state:
                move = (str(before.state) if before else "new", str(after.state), step.kind)
                self.transitions[move] += 1

    def _ask(self, name: str, step: Step) -> None:
        for wrong in ORACLES[name](step):
            raise Violated(name, wrong)

    def has_faults(self, kinds: set[str]) -> bool:
        """Whether the plan has faults of these kinds, healed or not."""
        return any(fault.kind in kinds for fault in self._world.plan.faults)

    def owner(self, lease: LeaseRow) -> "Node | None":
        """The node whose pump, alive and awake, owns a lease."""
        for node in self._world.nodes:
            if node.pump_id == lease.pump_id and node.alive and not node.frozen:
                return node
        return None

    def excused(self, node: "Node", lease: LeaseRow) -> bool:
        """Whether a node could not renew a lease, through no fault of its driver."""
        since = self._world.time - self.span
        held = max(self.held_until.get(row, -1e9) for row in (lease.id, lease.job_id))
        return held >= since or self.troubled(node)

    @property
    def span(self) -> float:
        """How long a trouble of a node's own explains what becomes of its leases."""
        plan = self._world.plan
        return plan.lease + 2 * plan.heartbeat + 2 * self._world.patience

    def troubled(self, node: "Node") -> bool:
        """Whether something went wrong with a node itself while its leases ran out."""
        world = self._world
        since = world.time - self.span
        own = node.trouble_at >= since or world.weather.was_cut_off(
            node.number, begins=since, ends=world.time
        )
        return own or self.clock_stepped_at >= since

    # The nodes

    def told(self, node: "Node", event: e.Event) -> None:
        situations.hear(self._world, event)
        self.vigil.told(node, event)

    def executed(self, node: "Node", body: Body) -> None:
        slots = sum(not one.replaced for one in node.bodies.values())
        self.require("pool-never-exceeded", slots <= node.group.pool_size, f"{node} runs {slots}")
        self.require(
            "only-served-queues", body.job.queue in node.group.queues, f"{node} runs {body.job}"
        )
        if body.began:
            self.begun.add((body.job.job_id, body.job.run))

    @property
    def atomic(self) -> list[str]:
        """The job types whose bodies are atomic."""
        return self._world.plan.atomic

    def body_ended(self, body: Body, event: e.AttemptReported) -> None:
        if not body.void:
            self.truth[body.job.lease_id] = WITNESSED[type(event)]

    # The end

    def close(self) -> None:
        """Look once more at everything, when all is quiet."""
        tables = self._world.store.tables
        amiss = list(atomicity.amiss(self, tables, tables.jobs))
        self.require("write-iff-success", not amiss, "; ".join(amiss))
        if self._world.plan.level == "permanent":
            return
        stuck = [
            f"{parent.int} to {child.int}"
            for (parent, child), settled in look_at_edges(tables).items()
            if not settled and tables.state_of(parent) in TERMINAL
        ]
        self.require("cascade-complete", not stuck, f"edges {', '.join(stuck)}")
