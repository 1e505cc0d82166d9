"""The watch over nodes: what each of them must do in time, and what it must never do."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.bounds import EXIT_GRACE, SLOT_GRACE
from backwave_django.core.leases import LeaseHealth
from backwave_django.core.limits import UNLIMITED
from backwave_django.core.outcomes import Verdict
from backwave_django.core.states import JobState

if TYPE_CHECKING:
    from tests.simulation.bodies import Body
    from tests.simulation.nodes import Node
    from tests.simulation.watch import Watch
    from tests.simulation.world import World

#: Empty polls in a row, each sooner than half an interval after the last, that nothing asked for.
MOST_HASTY_POLLS = 25


@dataclass
class Notes:
    """What was noted about one life of a node."""

    #: Leases whose outcome the store has answered.
    answered: set[UUID] = field(default_factory=set)
    offered: Counter[str] = field(default_factory=Counter)
    #: Leases that a heartbeat said are lost, and such that are to be cancelled.
    lost: set[UUID] = field(default_factory=set)
    cancelled: set[UUID] = field(default_factory=set)
    #: Leases of atomic bodies that are known to be committed.
    committed: set[UUID] = field(default_factory=set)
    polled_at: float = -1e9
    hasty: int = 0


class Vigil:
    """Checks of what nodes do. Latencies are generous; what is never done is not late."""

    def __init__(self, watch: "Watch", world: "World") -> None:
        self._watch = watch
        self._world = world

    # What a node asks and hears

    def asked(self, node: "Node", command: Any) -> None:
        """A node sends a command to the store."""
        match command:
            case c.Report(outcomes=outcomes) | c.Release(outcomes=outcomes):
                again = [o.job_id.int for o in outcomes if o.lease_id in node.notes.answered]
                self._require("outcome-reported-once", not again, f"{node}: jobs {again}")
            case c.Claim(request=request):
                self._claimed(node, request)
            case _:
                return

    def _claimed(self, node: "Node", request: Any) -> None:
        notes, group, time = node.notes, node.group, self._world.time
        whole = set(request.queues) == set(group.queues)
        self._require("work-conserving", whole, f"{node} claims from {request.queues} only")
        notes.hasty = notes.hasty + 1 if time - notes.polled_at < group.poll / 2 else 0
        notes.polled_at = time
        self._require("idle-pacing", notes.hasty <= MOST_HASTY_POLLS, f"{node} polls in haste")
        if group.weights is None:
            return
        notes.offered[request.queues[0]] += request.limit
        total = notes.offered.total()
        for name, weight in group.weights.items():
            fair = total * weight / sum(group.weights.values())
            astray = abs(notes.offered[name] - fair)
            # Claims of one poll are sent one by one: a whole poll may be under way.
            room = len(group.weights) + group.pool_size
            self._require("weighted-shares", astray <= room, f"{node}: {name} is {astray:.1f} off")

    def told(self, node: "Node", event: e.Event) -> None:
        """A node is about to take in an event."""
        lease_id = getattr(event, "lease_id", None) if node.notes.committed else None
        if lease_id in node.notes.committed:
            node.notes.answered.add(lease_id)
        match event:
            case e.ReportReturned(answer=answer):
                done = (row.lease_id for row in answer.rows if row.verdict is not Verdict.BUSY)
                node.notes.answered.update(done)
            case e.Claimed(answer=answer) if answer.short and not answer.jobs:
                return
            case e.HeartbeatReturned(answer=answer):
                for one in answer.renewals:
                    lost = one.health is LeaseHealth.LOST
                    node.notes.lost |= {one.lease_id} if lost else set()
                    node.notes.cancelled |= {one.lease_id} if one.cancel_requested else set()
                return
            case e.InboxEmpty() | e.Ticked():
                return
            case e.Expired(answer=answer) | e.Settled(answer=answer) if not answer.count:
                return
        node.notes.hasty = 0

    # A node at rest

    def resting(self, node: "Node") -> None:
        """A node is about to wait: nothing that it could do now may be left undone."""
        driver, world = node.driver, self._world
        assert driver is not None
        kept = driver._holdings.buffered
        excused = driver._contact.retry_at is not None or driver._handed_back
        self._require("flushed-when-idle", not kept or excused, f"{node} sits on {len(kept)}")
        self._news_heeded(node)
        since = world.time - 2 * world.plan.lease - 2 * self._long(node)
        fresh = node.born_at >= since or self._watch.clock_stepped_at >= since
        met = world.weather.outage_met(begins=since, ends=world.time)
        if not (fresh or met or node.odd_at >= since or self._watch.troubled(node)):
            self._bodies_in_time(node)
            self._leases_in_time(node)
            self._nothing_due(node)

    def _news_heeded(self, node: "Node") -> None:
        driver, notes = node.driver, node.notes
        assert driver is not None
        for lease_id, attempt in driver._holdings.running.items():
            heeded = attempt.void or lease_id not in notes.lost
            self._require("lost-lease-abandoned", heeded, f"{node}: {attempt.job.job_id.int}")
            heard = attempt.void or attempt.signalled or lease_id not in notes.cancelled
            self._require("cancel-heard", bool(heard), f"{node}: job {attempt.job.job_id.int}")

    def _long(self, node: "Node") -> float:
        """The longest that a node may take to notice something."""
        group, plan = node.group, self._world.plan
        poll = max(group.most_poll or 0.0, group.poll)
        return poll + plan.heartbeat + group.maintenance + 2 * self._world.patience + 1

    def _bodies_in_time(self, node: "Node") -> None:
        driver = node.driver
        assert driver is not None
        for lease_id, body in node.bodies.items():
            self._body_in_time(node, body)
            attempt = driver._holdings.running.get(lease_id)
            lost = lease_id not in self._world.store.tables.leases
            if lost and self._watch.ledger[body.job.job_id][body.job.run]:
                continue  # an atomic body that is committed ended its lease itself
            if lost and attempt is not None and not attempt.void:
                old = (node.now() - body.started_at).total_seconds() > self._world.plan.lease
                self._require("lost-lease-abandoned", not old, f"{node}: {body.job.job_id.int}")

    def _body_in_time(self, node: "Node", body: "Body") -> None:
        limit = node.timeouts.get(body.job.wire_name)
        if limit is None or body.void:
            return
        late = node.now() - body.started_at - limit - timedelta(seconds=2 * self._world.patience)
        asked = body.asked is not None or late < timedelta(seconds=1)
        self._require("time-out-signalled", asked, f"{node}: job {body.job.job_id.int}")
        replaced = body.replaced or late < SLOT_GRACE + timedelta(seconds=1)
        self._require("slot-replaced", replaced, f"{node}: job {body.job.job_id.int}")

    def _leases_in_time(self, node: "Node") -> None:
        world, driver = self._world, node.driver
        assert driver is not None
        since = world.database_clock() - timedelta(seconds=2 * self._long(node))
        held = set(driver._holdings.held())
        lapsed = since - timedelta(seconds=world.plan.lease)
        for lease in world.store.tables.leases.values():
            held_until = max(self._watch.held_until.get(r, -1e9) for r in (lease.id, lease.job_id))
            free = not driver.draining and held_until < world.time - 2 * self._long(node)
            swept = lease.expires_at >= lapsed or not free
            self._require("lapsed-lease-swept-in-bound", swept, f"job {lease.job_id.int}")
            if lease.pump_id != node.pump_id or lease.acquired_at >= since:
                continue
            if held_until >= world.time - 2 * self._long(node):
                continue
            known = lease.id in held
            self._require("orphan-recovered", known, f"{node}: job {lease.job_id.int}")
            body, asked_at = node.bodies.get(lease.id), world.operators.cancelled_at
            late = asked_at.get(lease.job_id, world.time) < world.time - 2 * self._long(node)
            if lease.cancel_requested and body is not None and not body.void and late:
                heard = body.asked is not None
                self._require("cancel-heard", heard, f"{node}: job {lease.job_id.int}")

    def _nothing_due(self, node: "Node") -> None:
        world, driver = self._world, node.driver
        tables = world.store.tables
        assert driver is not None
        slots = sum(not body.replaced for body in node.bodies.values())
        busy = len(driver._holdings.busy)
        waits = driver.draining or driver._contact.retry_at is not None
        if waits or slots + busy >= node.group.pool_size:
            return
        since = world.database_clock() - timedelta(seconds=2 * self._long(node))
        for job in tables.by_state[JobState.SCHEDULED].values():
            due = job.due_at < since and job.new.queue in node.group.queues
            if due and not self._withheld(job):
                self._require("due-work-starts", False, f"{node} rests, job {job.id.int} is due")  # noqa: FBT003 - what failed is in the loop

    def _withheld(self, job: Any) -> bool:
        """Whether something else may keep a job from being claimed, now or a moment ago."""
        tables = self._world.store.tables
        queue = tables.queues.get(job.new.queue)
        switched = queue is not None and (
            queue.limit is not None
            or queue.rate is not None
            or queue.paused_at is not None
            or queue.window is not None
        )
        moved = any(action.target == str(job.id) for action in tables.actions[-3:])
        held = self._watch.held_until.get(job.id, -1e9) >= self._world.time - 60
        key = job.new.limit_key
        return switched or moved or held or (key is not None and tables.cap_of(key) != UNLIMITED)

    def ticked(self) -> None:
        """Nothing went wrong: every tick that has come due was decided about."""
        world = self._world
        if world.plan.faults or any(action.kind == "drain" for action in world.plan.actions):
            return
        for name, row in world.store.tables.schedules.items():
            known = any(row.spec.wire_name in node.group.knows for node in world.nodes)
            slack = 4 + max(group.maintenance for group in world.plan.groups)
            age = world.plan.ends - (world.seconds(row.cursor) if row.cursor else 0.0)
            late = age > (row.spec.rule.every_seconds or 0.0) + slack
            fine = not (row.enabled and known and late)
            self._require("ticks-are-decided", fine, f"schedule {name} is {age:.1f} s behind")

    # A node's end

    def ended(self, node: "Node", command: c.Exit | c.Halt) -> None:
        """A pump is over."""
        world = self._world
        if isinstance(command, c.Halt):
            world.reached("pump halted")
            return
        world.reached("pump drained")
        if command.unrecorded:
            world.reached("outcomes unrecorded at exit")
        if node.drained_at is None:
            return
        took = world.time - node.drained_at
        longest = node.group.shutdown + EXIT_GRACE.total_seconds() + 2 * world.patience + 0.1
        since = node.drained_at - 2 * world.patience
        odd = max(node.odd_at, node.slow_at, self._watch.clock_stepped_at) >= since
        self._require("drain-in-time", took <= longest or odd, f"{node} took {took:.1f} s")
        if self._calm_since(node.drained_at, node):
            recorded = command.unrecorded == 0
            self._require("drain-records-all", recorded, f"{node} kept {command.unrecorded}")
            # Of a clock that was set back since: a recovery takes none for its own that may be
            # younger than itself, so such a lease waits for a heartbeat after its hour, or lapses.
            latest = world.database_clock() - timedelta(seconds=world.plan.heartbeat)
            left = [
                lease
                for lease in world.store.tables.leases.values()
                if lease.pump_id == node.pump_id
                and (lease.acquired_at <= latest or self._watch.clock_stepped_at < 0)
            ]
            self._require("drain-leaves-nothing", not left, f"{node} left {len(left)} leases")

    def _calm_since(self, time: float, node: "Node") -> bool:
        world = self._world
        held = any(until >= time for until in self._watch.held_until.values())
        since = time - world.plan.lease
        met = world.weather.outage_met(begins=since, ends=world.time)
        return not (held or met or self._watch.troubled(node))

    def _require(self, invariant: str, good: bool, detail: str) -> None:  # noqa: FBT001 - as `assert`
        self._watch.require(invariant, good, detail)
