"""A virtual node: the real driver, and the shell's rules for carrying out what it wants."""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.dials import DriverConfig
from backwave_django.core.driver import Driver
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.leases import PumpInfo
from backwave_django.core.retries import Retry, RetryTable
from tests.simulation.bodies import Body, behaviour
from tests.simulation.plans import Group, NodePlan
from tests.simulation.transactions import begin
from tests.simulation.trips import Errand, Trip
from tests.simulation.vigil import Notes

if TYPE_CHECKING:
    from tests.simulation.world import World

#: What the clock of an answer may be off before a node measures again.
TOLERANCE = 1.0
#: So many turns of the loop at one instant are a loop that never rests.
MOST_TURNS = 400

RETRIES = RetryTable(
    default=Retry(max_attempts=3, initial=timedelta(seconds=1), multiplier=2.0),
    own={
        "once": Retry(max_attempts=1),
        "twice": Retry(max_attempts=2, initial=timedelta(seconds=1)),
        "hasty": Retry(max_attempts=4, initial=timedelta(0), multiplier=1.0),
    },
)
TIMEOUTS = {"hasty": timedelta(seconds=3), "rare": timedelta(seconds=8)}


@dataclass(frozen=True)
class Ended:
    """How a pump of this node ended."""

    time: float
    command: c.Exit | c.Halt


class Node:
    """One process with one pump. A new life begins at each start: old timers mean nothing then."""

    def __init__(self, world: "World", *, number: int, plan: NodePlan, group: Group) -> None:
        self._world = world
        self.number = number
        self.plan = plan
        self.group = group
        self.lease = timedelta(seconds=world.plan.lease)
        self.timeouts = TIMEOUTS
        self.life = 0
        self.alive = False
        self.frozen = False
        #: Seconds by which this node's idea of the database's clock is off true time.
        self.offset = 0.0
        self.trips: Counter[str] = Counter()
        #: When something last went wrong with this node alone, and with its sense of time.
        self.trouble_at = -1e9
        self.odd_at = -1e9
        self.slow_at = -1e9
        self.born_at = 0.0
        self.drained_at: float | None = None
        self.endings: list[Ended] = []
        self.bodies: dict[UUID, Body] = {}
        self._begin_anew()

    # Life and death

    def _begin_anew(self) -> None:
        self.pump_id = UUID(int=(1 << 64) + self.number * 1000 + self.life)
        self.driver: Driver | None = None
        self.bodies = {}
        self.drained_at = None
        self.info: PumpInfo | None = None
        self.notes = Notes()
        self._inbox: deque[e.Event] = deque()
        self._batch: deque[e.Event] = deque()
        self._pending: deque[c.Command] = deque()
        self._stash: deque[tuple[e.Event, ...]] = deque()
        self._waiting = False
        self._timer = 0
        self._turns = (0.0, 0)

    def start(self) -> None:
        """Begin a life: register, then run the loop."""
        if self.alive or self._world.closing:
            return
        world, before = self._world, self.pump_id
        if world.weather.is_cut_off(self.number, world.time):
            world.after(0.5, self.start)
            return
        self.life += 1
        crashed = self.driver is not None and not self.driver.over
        self._begin_anew()
        self.alive, self.frozen, self.born_at = True, False, world.time
        self.offset = world.database_offset
        self.info = self._made_info()
        world.store.register(self.info, now=self.now())
        self.driver = Driver(self._config(), now=self.now())
        if crashed and self.plan.tells_of_the_dead:
            self._inbox.append(e.DeadPumpsFound(pumps=(before,)))
        self.turn()

    def crash(self) -> None:
        """Everything in memory is gone. What is under way to the store is not."""
        if self.alive:
            self._forget()
            self.trouble_at = self._world.time

    def _forget(self) -> None:
        """This life is over, and that of all bodies with it."""
        self.life += 1
        self.alive = False
        bodies, self.bodies = self.bodies, {}
        for body in bodies.values():
            if body.transaction is not None:
                body.transaction.die()

    def freeze(self) -> None:
        """Stop the process, bodies and all, as a suspended machine does."""
        if self.alive and not self.frozen:
            self.frozen = True
            self.trouble_at = self._world.time
            for body in self.bodies.values():
                body.left = max(body.ends_at - self._world.time, 0.0)
                body.version += 1

    def thaw(self, *, life: int, clock_stood_for: float) -> None:
        """Go on where it stopped; the clock may not have noticed."""
        if life != self.life or not self.frozen:
            return
        self.frozen = False
        self.trouble_at = self.odd_at = self._world.time
        self.offset -= clock_stood_for
        for body in tuple(self.bodies.values()):
            self._ends_in(body, body.left)
            if body.transaction is not None:
                body.transaction.thaw()
        while self._stash:
            self.hear(*self._stash.popleft())
        self.turn()

    def tell(self, event: e.Event) -> None:
        """Put an event into the inbox."""
        if self.alive:
            if isinstance(event, e.DrainRequested) and self.drained_at is None:
                self.drained_at = self._world.time
            self._inbox.append(event)
            self.turn()

    def _made_info(self) -> PumpInfo:
        return PumpInfo(
            id=self.pump_id,
            group=self.group.name,
            node=f"node-{self.number}",
            hostname="host",
            pid=self.number,
            boot_id="boot",
            pid_namespace="pid",
            version="0",
            queues=tuple(self.group.queues),
            pool_size=self.group.pool_size,
            lease_duration=self.lease,
            wire_names=tuple((name, 1) for name in self.group.knows),
            started_at=self.now(),
        )

    def _config(self) -> DriverConfig:
        group, most = self.group, self.group.most_poll
        return DriverConfig(
            pump_id=self.pump_id,
            queues=tuple(group.queues),
            weights=group.weights,
            pool_size=group.pool_size,
            max_claim_batch=group.batch,
            max_outcome_batch=group.outcome_batch,
            poll_interval=timedelta(seconds=group.poll),
            max_poll_interval=None if most is None else timedelta(seconds=most),
            maintenance_interval=timedelta(seconds=group.maintenance),
            lease_duration=self.lease,
            heartbeat_interval=timedelta(seconds=self._world.plan.heartbeat),
            shutdown_timeout=timedelta(seconds=group.shutdown),
            retries=RETRIES,
            timeouts=self.timeouts,
            mints=dict.fromkeys(group.knows, 1),
        )

    # The clock

    def now(self) -> datetime:
        return self._world.instant(self._world.time + self.offset)

    def observe(self, clock: datetime | None, *, sent: float) -> None:
        """Follow the database's clock: a little always, and at once when it is far off."""
        if clock is None:
            return
        stamp = self._world.seconds(clock)
        least, most = stamp - self._world.time, stamp - sent
        if least - TOLERANCE <= self.offset <= most + TOLERANCE:
            self.offset = min(max(self.offset, least), most)
        else:
            self._world.reached("clock measured again")
            self.offset = self._world.database_offset

    # The loop

    def hear(self, *answers: e.Event) -> None:
        """The answers of the round trip under way."""
        if self.frozen:
            self._stash.append(answers)
            return
        self._waiting = False
        first, *rest = answers
        if isinstance(first, e.StoreFaulted):
            first = self._with_skipped(first)
        self._step(first)
        for event in rest:
            # The second answer comes after all that the first one leads to, which is local.
            self._obey_locals()
            if self.alive:
                self._step(
                    self._with_skipped(event) if isinstance(event, e.StoreFaulted) else event
                )
        self.turn()

    def _with_skipped(self, fault: e.StoreFaulted) -> e.StoreFaulted:
        """After a fault the rest of the commands for the store is not tried."""
        skipped = tuple(one for one in self._pending if isinstance(one, c.StoreCommand))
        self._pending = deque(one for one in self._pending if one not in skipped)
        return e.StoreFaulted(
            commands=(*fault.commands, *skipped), problem=fault.problem, fatal=fault.fatal
        )

    def turn(self) -> None:
        """Run the loop until it waits for an answer, an event or the time."""
        while self.alive and not self._waiting and not self.frozen and self.driver is not None:
            self._count_turn()
            if self._pending:
                self._obey(self._pending.popleft())
            elif self._batch:
                self._step(self._batch.popleft())
            elif self._inbox:
                self._batch, self._inbox = deque(e.together(self._inbox)), deque()
            else:
                self._step(e.InboxEmpty())
                if not self._pending and self.alive:
                    self._sleep()
                    return

    def _count_turn(self) -> None:
        time, turns = self._turns
        turns = turns + 1 if time == self._world.time else 0
        self._turns = (self._world.time, turns)
        self._world.watch.require("no-hot-loop", turns < MOST_TURNS, f"{self} at {time}")

    def _sleep(self) -> None:
        assert self.driver is not None
        self._world.watch.vigil.resting(self)
        wake_at = self.driver.wake_at
        assert wake_at is not None, "a driver that is not over has a deadline"
        self._timer += 1
        timer, life = self._timer, self.life
        span = self._world.seconds(wake_at) - self._world.time - self.offset
        self._world.after(max(span, 0.0), lambda: self._woken(timer, life))

    def _woken(self, timer: int, life: int) -> None:
        if (timer, life) == (self._timer, self.life):
            self._inbox.append(e.Ticked())
            self.turn()

    def _step(self, event: e.Event) -> None:
        assert self.driver is not None
        self._timer += 1
        for one in event.ends if isinstance(event, e.AttemptsEnded) else (event,):
            self._world.watch.told(self, one)
        commands = self.driver.step(event, now=self.now())
        self._pending.extendleft(reversed(commands))

    def _obey_locals(self) -> None:
        while self._pending and not isinstance(self._pending[0], c.StoreCommand) and self.alive:
            self._obey(self._pending.popleft())

    def _obey(self, command: c.Command) -> None:
        match command:
            case c.Execute(jobs=jobs):
                for job in jobs:
                    self._execute(job)
            case c.SignalStopping():
                for body in self.bodies.values():
                    self._ask(body, None)
            case c.SignalCancel() | c.Abandon() | c.ReplaceSlot():
                # A body that has just ended is gone from here; its end waits in the inbox.
                if command.lease_id in self.bodies:
                    self._signal(self.bodies[command.lease_id], command)
            case c.Exit() | c.Halt():
                self._end(command)
            case _:
                self._send(command)

    def _signal(self, body: Body, command: c.SignalCancel | c.Abandon | c.ReplaceSlot) -> None:
        match command:
            case c.SignalCancel(reason=reason):
                self._ask(body, reason)
            case c.Abandon():
                self._world.reached("attempt abandoned")
                body.void = True
            case c.ReplaceSlot():
                self._world.reached("slot replaced")
                body.replaced = True

    def _send(self, command: c.StoreCommand) -> None:
        commands: tuple[c.StoreCommand, ...] = (command,)
        if isinstance(command, c.Report) and self._pending:
            following = self._pending[0]
            if isinstance(following, c.Claim):
                self._pending.popleft()
                commands = (command, following)
        for one in commands:
            self._world.watch.vigil.asked(self, one)
        self._waiting = True
        Trip(self._world, self, Errand(commands)).leave()

    def _end(self, command: c.Exit | c.Halt) -> None:
        self._pending.clear()
        self.endings.append(Ended(self._world.time, command))
        self._world.watch.vigil.ended(self, command)
        self._forget()
        world = self._world
        if not world.weather.is_cut_off(self.number, world.time):
            problem = command.reason if isinstance(command, c.Halt) else ""
            world.store.retire(pump_id=self.pump_id, problem=problem, now=self.now())
        if not world.closing and world.plan.level != "permanent":
            world.after(1.0, self.start)

    # Bodies

    def _execute(self, job: LeasedJob) -> None:
        world = self._world
        story, extra = world.work.story_of(job)
        kind, span, heeds = behaviour(story, job.run, knows=self.group.knows, extra=extra)
        body = Body(job, kind, heeds, self.now(), world.time + span)
        self.bodies[job.lease_id] = body
        span = begin(world, self, body, span)
        world.watch.executed(self, body)
        self._ends_in(body, span)

    def _ends_in(self, body: Body, span: float) -> None:
        if body.is_over:
            return
        body.ends_at = self._world.time + span
        body.version += 1
        version, life = body.version, self.life
        self._world.after(span, lambda: self._body_ends(body, version, life))

    def _body_ends(self, body: Body, version: int, life: int) -> None:
        if (version, life) != (body.version, self.life) or self.frozen:
            return
        if body.transaction is not None:
            body.transaction.body_ended()
            return
        del self.bodies[body.job.lease_id]
        event = body.ends(now=self.now())
        self._world.watch.body_ended(body, event)
        self.tell(event)

    def _ask(self, body: Body, reason: c.CancelReason | None) -> None:
        body.asked = reason or body.asked
        body.stopping = True
        if body.heeds and body.began:
            self._ends_in(body, min(0.2, max(body.ends_at - self._world.time, 0.0)))

    def __str__(self) -> str:
        return f"node {self.number} (life {self.life})"
