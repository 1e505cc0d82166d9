"""Virtual time, one database, and the nodes around it: runs a plan and says what broke."""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from backwave_django.core import events as e
from backwave_django.core.contract import StoreSettings
from backwave_django.core.memory import MemoryStore
from backwave_django.core.states import TERMINAL
from tests.simulation.nodes import Node
from tests.simulation.operators import Operators
from tests.simulation.oracles import Violated
from tests.simulation.plans import Fault, Plan
from tests.simulation.reactions import Audience
from tests.simulation.sessions import LOCK_TRIED_EVERY, Sessions
from tests.simulation.watch import Watch
from tests.simulation.weather import Weather
from tests.simulation.work import Work

EPOCH = datetime.fromisoformat("2030-01-01T00:00:00+00:00")
#: After all is well again, every job must have ended by then: all retries together are shorter.
LIVENESS_BOUND = 1_500.0
MOST_EVENTS = 150_000
UNLUCKY_RUNS = 5
#: Whether a run is over is looked at once in so many events.
LOOK_EVERY = 16


@dataclass(frozen=True)
class Report:
    """What a run showed. ``broke`` is the id of an invariant, or empty."""

    plan: Plan
    broke: str = ""
    detail: str = ""
    seen: Counter[str] = field(default_factory=Counter)
    transitions: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    lasted: float = 0.0


class World:
    """One run of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.time = 0.0
        self.database_offset = 0.0
        self.closing = False
        self.patience = plan.lease / 6
        self.seen: Counter[str] = Counter()
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0
        self._drawn = 1 << 100
        self.weather = Weather(plan)
        self.store = MemoryStore(
            clock=self.database_clock,
            ids=self.draw_id,
            settings=StoreSettings(
                unroutable_grace=timedelta(seconds=plan.grace),
                observers=Audience(plan.observed, self.draw_id),
            ),
        )
        self.watch = Watch(self)
        self.sessions = Sessions(self)
        groups = {group.name: group for group in plan.groups}
        self.nodes = [
            Node(self, number=number, plan=node, group=groups[node.group])
            for number, node in enumerate(plan.nodes)
        ]
        self.work = Work(self)
        self.operators = Operators(self)

    # Time

    def instant(self, seconds: float) -> datetime:
        return EPOCH + timedelta(seconds=seconds)

    def seconds(self, instant: datetime) -> float:
        return (instant - EPOCH).total_seconds()

    def database_clock(self) -> datetime:
        return self.instant(self.time + self.database_offset)

    def after(self, span: float, act: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (self.time + span, self._count, act))

    def reached(self, situation: str) -> None:
        """Note that something worth naming happened."""
        self.seen[situation] += 1

    def draw_id(self) -> UUID:
        self._drawn += 1
        return UUID(int=self._drawn)

    # A run

    def run(self) -> Report:
        """Run the plan to its end; say which invariant broke first, if any."""
        try:
            self._begin()
            self._live()
            self._close()
        except Violated as violation:
            return self._report(violation.invariant, violation.detail)
        except AssertionError as bug:
            # The driver and the store assert what is cheap; an id leads their message, if any.
            said = str(bug) or "assertion"
            return self._report(said.split(":")[0] if ":" in said else "assertion", said)
        return self._report()

    def _report(self, broke: str = "", detail: str = "") -> Report:
        return Report(
            plan=self.plan,
            broke=broke,
            detail=f"at {self.time:.3f}: {detail}" if broke else "",
            seen=self.seen,
            transitions=self.watch.transitions,
            lasted=self.time,
        )

    def _begin(self) -> None:
        for node in self.nodes:
            self.after(node.plan.start, node.start)
        self.work.begin()
        self.operators.begin()
        for fault in self.weather.timed:
            self.after(fault.at, partial(self._strike, fault))
        for outage in self.weather.outages if self.plan.atomic else ():
            self.after(outage.begins, self.sessions.end_all)

    def _live(self) -> None:
        calm_from = max(self.plan.ends, self.weather.clears_at)
        if self.plan.schedules or self.plan.level == "permanent":
            self._run_until(self.plan.ends)
            self.watch.vigil.ticked()
            self.operators.stop_schedules()
            self._run_until(calm_from)
        if self.plan.level == "permanent":
            self._run_until(calm_from + 3 * self.plan.lease)
            return
        bound = calm_from + LIVENESS_BOUND + 20 * self.plan.lease
        self._run_until(bound, done=self._nothing_to_come)
        tables = self.store.tables
        left = [job for job in tables.jobs.values() if not is_over(job.state)]
        # Pumps that do not know a job type may, by bad luck, be the first at it every time.
        unlucky = any(job.unroutable_since is not None and job.run > UNLUCKY_RUNS for job in left)
        names = ", ".join(str(job.id.int) for job in left)
        self.watch.require("every-job-terminates", not left or unlucky, f"jobs {names}")

    def _nothing_to_come(self) -> bool:
        """Whether no work is left, and nobody will bring any: then faults harm nothing."""
        tables = self.store.tables
        waiting = self.work.waiting or tables.settle_queue or self.time < self.operators.last_at
        return not waiting and all(is_over(job.state) for job in tables.jobs.values())

    def _close(self) -> None:
        """Drain everybody. Pumps end in time, whatever the store does."""
        self.closing = True
        for node in self.nodes:
            node.tell(e.DrainRequested())
        longest = max(group.shutdown for group in self.plan.groups)
        self._run_until(self.time + longest + 3 * self.plan.lease, done=self._nobody_lives)
        living = [str(node) for node in self.nodes if node.alive and not node.frozen]
        self.watch.require("drain-ends", not living, ", ".join(living))
        self.watch.close()

    def _nobody_lives(self) -> bool:
        return not any(node.alive for node in self.nodes)

    def _run_until(self, time: float, *, done: Callable[[], bool] = lambda: False) -> None:
        heap, turns = self._heap, 0
        while heap and heap[0][0] <= time:
            turns += 1
            if turns % LOOK_EVERY == 0:
                self.watch.require("no-hot-loop", self._count < MOST_EVENTS, "there is no end")
                if done():
                    return
            self.time, _, act = heapq.heappop(heap)
            act()
        self.time = max(self.time, time)

    # Faults that strike at a time

    def _strike(self, fault: Fault) -> None:
        node = self.nodes[fault.node] if fault.node is not None else self.nodes[0]
        match fault.kind:
            case "crash":
                node.crash()
                if fault.lasts >= 0:
                    self.after(fault.lasts, node.start)
            case "suspend":
                node.freeze()
                life, stood = node.life, fault.lasts if fault.how == "clock stops" else 0.0
                self.after(fault.lasts, lambda: node.thaw(life=life, clock_stood_for=stood))
            case "leave":
                node.tell(e.DrainRequested())
            case "clock":
                node.offset += fault.lasts
                node.trouble_at = node.odd_at = self.time
            case "database clock":
                self.database_offset += fault.lasts
                self.watch.clock_stepped_at = self.time
            case _:
                self._hold(fault)

    def _hold(self, fault: Fault) -> None:
        """Another transaction holds a job and its lease for a while."""
        job_id, tables = self.work.ids[int(fault.what)], self.store.tables
        lease = tables.lease_of.get(job_id)
        if job_id in self.sessions.locked:
            self.after(LOCK_TRIED_EVERY, partial(self._hold, fault))
            return
        for row_id in (job_id, lease.id if lease else job_id):
            self.store.hold(row_id)
            self.watch.held_until[row_id] = self.time + fault.lasts
            self.after(fault.lasts, partial(self._let_go, row_id))

    def _let_go(self, row_id: UUID) -> None:
        # Where holds overlap, the first that ends is the end of all: others may lock the row then.
        if row_id not in self.sessions.locked:
            self.store.release(row_id)


def is_over(state: object) -> bool:
    return state in TERMINAL


def run(plan: Plan) -> Report:
    """Run a plan from its beginning."""
    return World(plan).run()
