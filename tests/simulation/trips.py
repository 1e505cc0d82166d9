"""Round trips: a node's command on its way to the store, and what comes back of it.

A trip leaves, is applied on the other side, and its answer arrives; anything can get lost on the
way. A trip that gets no answer is a fault after the store's patience is over, whether or not it
was applied; some are applied only after that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.leases import Beat

if TYPE_CHECKING:
    from tests.simulation.nodes import Node
    from tests.simulation.world import World


@dataclass(frozen=True)
class Errand:
    """What a node asks in one go: one command, or a report with the claim after it."""

    commands: tuple[c.StoreCommand, ...]

    @property
    def name(self) -> str:
        return "Turn" if len(self.commands) > 1 else type(self.commands[0]).__name__


class Trip:
    """One errand under way."""

    def __init__(self, world: "World", node: "Node", errand: Errand) -> None:
        self._world = world
        self._node = node
        self._errand = errand
        self._life = node.life
        assert node.info is not None
        self._info = node.info
        self._sent = world.time
        self._now = node.now()
        nth = node.trips[errand.name]
        node.trips[errand.name] += 1
        self._fate = world.weather.trip(node.number, errand.name, nth)
        if self._fate == "slow":
            node.slow_at = world.time
        self._address = (node.number, errand.name, nth)
        self._answers: tuple[e.Event, ...] = ()
        self._clock: datetime | None = None

    def leave(self) -> None:
        world = self._world
        if world.weather.is_cut_off(self._node.number, world.time):
            # Refused at once, or nobody answers.
            quick = world.plan.share("refused", *self._address) < 0.5
            self._fail_in(0.01 if quick else world.patience)
        elif self._fate in {"before", "fatal"}:
            self._fail_in(0.02)
        elif self._fate == "late":
            self._fail_in(world.patience)
            # The network keeps what was sent no longer than the connection's own time-outs.
            delay = world.plan.share("late", *self._address) * 2 * world.patience
            world.after(world.patience + delay, self._apply_late)
        else:
            world.after(self._latency("there"), self._apply)

    def _latency(self, way: str) -> float:
        span = 0.001 + 0.02 * self._world.plan.share(way, *self._address)
        return span + 0.4 * self._world.patience if self._fate == "slow" else span

    def _apply(self) -> None:
        world = self._world
        if world.weather.is_cut_off(self._node.number, world.time):
            self._fail_at(self._sent + world.patience)
            return
        self._answers = self._carried()
        world.after(self._latency("back"), self._arrive)

    def _apply_late(self) -> None:
        if not self._world.weather.is_cut_off(self._node.number, self._world.time):
            self._world.reached("applied after the caller gave up")
            self._carried()

    def _arrive(self) -> None:
        world = self._world
        lost = self._fate == "after" or world.weather.is_cut_off(self._node.number, world.time)
        if lost:
            world.reached(f"answer lost: {self._errand.name}")
            self._fail_at(self._sent + world.patience)
        elif self._life == self._node.life:
            self._node.observe(self._clock, sent=self._sent)
            self._node.hear(*self._answers)

    def _fail_in(self, span: float) -> None:
        self._world.after(span, self._fail)

    def _fail_at(self, time: float) -> None:
        self._world.after(max(time - self._world.time, 0.0), self._fail)

    def _fail(self) -> None:
        if self._life == self._node.life:
            weather = self._world.weather
            if not weather.outage_met(begins=self._sent, ends=self._world.time):
                self._node.trouble_at = self._world.time
            self._node.hear(self._fault(self._errand.commands))

    def _fault(self, commands: tuple[c.StoreCommand, ...]) -> e.StoreFaulted:
        return e.StoreFaulted(commands=commands, problem="no answer", fatal=self._fate == "fatal")

    # On the other side

    def _carried(self) -> tuple[e.Event, ...]:
        """Apply the errand; the events that answer it."""
        if len(self._errand.commands) == 1:
            return (self._one(self._errand.commands[0]),)
        report, claim = self._errand.commands
        first = self._one(report)
        if self._fate == "between":
            self._world.reached("report applied, claim failed")
            return first, self._fault((claim,))
        return first, self._one(claim)

    def _one(self, command: c.StoreCommand) -> e.Event:
        answer = self._world.watch.perform(
            type(command).__name__,
            self._call(command),
            now=self._now,
            node=self._node,
            request=command,
        )
        self._clock = answer.clock
        made: dict[type[c.StoreCommand], Callable[..., e.Event]] = {
            c.Claim: e.Claimed,
            c.Report: e.ReportReturned,
            c.Release: e.ReportReturned,
            c.Heartbeat: e.HeartbeatReturned,
            c.Recover: e.Recovered,
            c.Dispose: e.Disposed,
            c.ExpireLeases: e.Expired,
            c.Settle: e.Settled,
            c.Purge: e.Purged,
            c.LoadSchedules: e.SchedulesLoaded,
            c.Mint: e.Minted,
        }
        return made[type(command)](answer=answer)

    def _call(self, command: c.StoreCommand) -> Callable[[], Any]:
        store, now, pump_id = self._world.store, self._now, self._info.id
        match command:
            case c.Claim():
                return lambda: store.claim(command.request, now=now)
            case c.Report() | c.Release():
                return lambda: store.report(command.outcomes, now=now)
            case c.Heartbeat():
                return lambda: self._beat(command)
            case c.Recover():
                return lambda: store.recover(pump_id=pump_id, held=command.held, now=now)
            case c.Dispose():
                return lambda: self._dispose(command)
            case _:
                return self._sweep(command)

    def _sweep(self, command: c.StoreCommand) -> Callable[[], Any]:
        store, now = self._world.store, self._now
        match command:
            case c.ExpireLeases(limit=limit):
                return lambda: store.expire_leases(limit=limit, now=now)
            case c.Settle(limit=limit):
                return lambda: store.settle(limit=limit, now=now)
            case c.Purge(limit=limit):
                return lambda: store.purge(limit=limit, now=now)
            case c.LoadSchedules(after=after, limit=limit):
                return lambda: store.load_schedules(after=after, limit=limit)
            case c.Mint(decisions=decisions):
                return lambda: store.mint(decisions, now=now)
            case _:
                raise AssertionError(f"the simulator knows no {command}")

    def _beat(self, command: c.Heartbeat) -> Any:
        store, info = self._world.store, self._info
        beat = Beat(pump_id=info.id, leases=command.leases, lease_duration=info.lease_duration)
        answer = store.heartbeat(beat, now=self._now)
        if not answer.registered:
            store.register(info, now=self._now)
        return answer

    def _dispose(self, command: c.Dispose) -> Any:
        answer = self._world.store.dispose(pumps=command.pumps, now=self._now)
        for pump_id in command.pumps:
            self._world.store.retire(pump_id=pump_id, problem="its process is gone", now=self._now)
        return answer
