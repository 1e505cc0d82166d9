"""The pump: the loop around one driver. It obeys and decides nothing.

One thread owns the driver, the inbox's far end and the connection to the store. Other threads only
put events into the inbox.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from django.db import connections

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.driver import Driver
from backwave_django.core.errors import StoreError, StoreUnavailable
from backwave_django.core.leases import LeaseHealth
from backwave_django.core.outcomes import Verdict
from backwave_django.pumps.exchange import Exchange, Turn, merged
from backwave_django.pumps.health import Vitals
from backwave_django.pumps.inbox import Inbox
from backwave_django.pumps.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.dials import DriverConfig
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.core.leases import PumpInfo, PumpStatus
    from backwave_django.pumps.attempts import Attempts
    from backwave_django.pumps.clock import Clock
    from backwave_django.pumps.exchange import PumpStore
    from backwave_django.pumps.progress import ProgressBoard

logger = logging.getLogger("backwave.pump")

job_logger = logging.getLogger("backwave.job")

_Errand: TypeAlias = c.Command | Turn | e.Claimed | e.StoreFaulted


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a pump ended.

    ``problem`` is empty unless it halted. ``abandoned`` counts bodies that still run,
    ``unrecorded`` outcomes that no store took.
    """

    problem: str = ""
    abandoned: int = 0
    unrecorded: int = 0


class Pump:
    """One driver at work on a thread of its own.

    ``greeting`` is called once, with the pump's store, when the database first answers; ``ended``
    is called with the pump on its own thread when it is over; ``ending`` says how.
    """

    def __init__(
        self,
        *,
        name: str,
        config: DriverConfig,
        info: PumpInfo,
        open_store: Callable[[], PumpStore],
        clock: Clock,
        attempts: Attempts,
        inbox: Inbox,
        progress: ProgressBoard,
        ended: Callable[[Pump], object],
        greeting: Callable[[PumpStore, datetime], object] | None = None,
    ) -> None:
        self.name = name
        self.config = config
        self.info = info
        self.inbox = inbox
        self.ending: Ending | None = None
        self.vitals = Vitals(name=name, clock=clock, heartbeat_interval=config.heartbeat_interval)
        self._clock = clock
        self._open_store = open_store
        self._progress = progress
        self._ended = ended
        self._greeting = greeting
        self._workers = Workers(name=name, size=config.pool_size, attempts=attempts, inbox=inbox)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin. What happens from here on is the pump's own business, until ``ended``."""
        self._thread.start()

    def drain(self) -> None:
        """Ask the pump to finish what it runs and to end. Safe in a signal handler."""
        self.inbox.put(e.DrainRequested())

    def join(self, *, seconds: float) -> None:
        """Wait for the pump's thread."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            exchange = Exchange(
                store=self._open_store(),
                clock=self._clock,
                info=self.info,
                vitals=self.vitals,
                status=self._status,
                progress=self._progress,
                greeting=self._greeting,
            )
            try:
                self._work(exchange)
            except Exception as error:
                logger.exception("%s: halted by a fault that should not be", self.name)
                self._halt(exchange, f"{type(error).__name__}: {error}")
            finally:
                self._workers.close()
                exchange.close()
        except Exception as error:
            logger.exception("%s: halted", self.name)
            self.ending = self.ending or Ending(problem=f"{type(error).__name__}: {error}")
        finally:
            connections.close_all()
            self.vitals.over = True
            self._ended(self)

    def _work(self, exchange: Exchange) -> None:
        if self._register(exchange):
            _Loop(pump=self, exchange=exchange, workers=self._workers, clock=self._clock).run()
        else:
            self.ending = Ending()

    def _register(self, exchange: Exchange) -> bool:
        """Say hello, however long the store takes to hear; false when told to drain meanwhile."""
        beat = c.Heartbeat(leases=())  # what stands for contact in the pump's vitals
        held: list[e.Event] = []
        while True:
            try:
                exchange.greet()
            except StoreUnavailable as error:
                exchange.drop()
                self.vitals.faulted((beat,), str(error))
            else:
                self.vitals.answered(beat)
                break
            held += self.inbox.wait(seconds=self.config.poll_interval.total_seconds())
            if any(isinstance(event, e.DrainRequested) for event in held):
                return False
        for event in held:
            self.inbox.put(event)
        return True

    def end(self, command: c.Halt | c.Exit, *, exchange: Exchange) -> None:
        """Do as the driver says: it is over."""
        match command:
            case c.Halt(reason=reason):
                logger.error("%s: halted: %s", self.name, reason)
                self._halt(exchange, reason)
            case c.Exit(abandoned=abandoned, unrecorded=unrecorded):
                self.ending = Ending(abandoned=abandoned, unrecorded=unrecorded)
                self._retire(exchange, problem="")

    def _halt(self, exchange: Exchange, problem: str) -> None:
        """Stop at once: bodies are asked to end, leases lapse, the registry says why."""
        self._workers.cancel_all(c.CancelReason.HALT)
        self.ending = Ending(problem=problem, abandoned=self._workers.executing)
        exchange.drop()
        self._retire(exchange, problem=problem)

    def _retire(self, exchange: Exchange, *, problem: str) -> None:
        try:
            exchange.retire(problem=problem)
        except StoreError as error:
            logger.warning("%s: could not note its end: %s", self.name, error)

    def _status(self) -> PumpStatus:
        return self.vitals.status(
            executing=self._workers.executing, abandoned=self._workers.abandoned
        )


class _Loop:
    """Events in, commands out, until the driver says that it is over."""

    def __init__(self, *, pump: Pump, exchange: Exchange, workers: Workers, clock: Clock) -> None:
        self._pump = pump
        self._inbox = pump.inbox
        self._vitals = pump.vitals
        self._exchange = exchange
        self._workers = workers
        self._clock = clock
        self._driver = Driver(pump.config, now=clock.now())
        self._pending: deque[_Errand] = deque()

    def run(self) -> None:
        """Go on until ``Exit`` or ``Halt``."""
        while self._goes_on():
            for event in e.together(self._inbox.take() or self._awaited()):
                self._tell(event)
                if not self._goes_on():
                    return

    def _awaited(self) -> list[e.Event]:
        """Say that nothing else is there, and wait for what comes or comes due.

        What is about to be there counts as there.
        """
        ending, seconds = self._workers.settling()
        if seconds > 0:
            events = self._inbox.wait(seconds=seconds, at_least=ending)
            if events:
                return events
        self._workers.spread()
        self._tell(e.InboxEmpty())
        if not self._goes_on():
            return []
        return self._inbox.wait(seconds=self._seconds(self._driver.wake_at)) or [e.Ticked()]

    def _goes_on(self) -> bool:
        return not self._driver.over

    def _seconds(self, wake_at: datetime | None) -> float:
        assert wake_at is not None, "a driver that is not over has a deadline"
        return self._clock.seconds_until(wake_at)

    def _tell(self, event: e.Event) -> None:
        """Give one event to the driver and carry out what it wants, and what that leads to."""
        self._vitals.ended(event)
        self._step(event)
        while self._pending:
            self._obey(self._pending.popleft())

    def _step(self, event: e.Event) -> None:
        """Put what the driver wants before all that it wanted earlier."""
        commands = self._driver.step(event, now=self._clock.now())
        if commands:
            self._pending.extendleft(reversed(merged(commands)))

    def _obey(self, command: _Errand) -> None:
        match command:
            case Turn():
                self._workers.spread()
                first, second = self._exchange.turn(command)
                if second is not None:
                    # The claim's answer comes after all that the report's answer leads to.
                    self._pending.appendleft(second)
                self._answered(first)
            case e.Claimed() | e.StoreFaulted():
                self._answered(command)
            case c.Execute():
                self._workers.execute(command.jobs)
            case c.Halt() | c.Exit():
                self._pending.clear()
                self._pump.end(command, exchange=self._exchange)
            case c.SignalStopping() | c.SignalCancel() | c.Abandon() | c.ReplaceSlot():
                self._signal(command)
            case _:
                self._workers.spread()
                self._answered(self._exchange.ask(command))

    def _answered(self, event: e.Event) -> None:
        """Give an answer to the driver. After a fault the rest of the turn is not asked.

        Leases are renewed first then: a sweep that was to follow could take those of others.
        """
        if isinstance(event, e.StoreFaulted):
            skipped = [one for one in self._pending if isinstance(one, c.StoreCommand)]
            self._pending = deque(one for one in self._pending if one not in skipped)
            event = replace(event, commands=(*event.commands, *skipped))
        for lease_id in _refused(event):
            self._tell_refused(lease_id)
        self._step(event)

    def _signal(
        self, command: c.SignalStopping | c.SignalCancel | c.Abandon | c.ReplaceSlot
    ) -> None:
        workers = self._workers
        match command:
            case c.SignalStopping():
                self._vitals.draining = True
                workers.stop_all()
            case c.SignalCancel(lease_id=lease_id, reason=reason):
                if reason is c.CancelReason.TIMEOUT:
                    self._warn(lease_id, "ran past its time-out")
                workers.cancel(lease_id, reason)
            case c.Abandon(lease_id=lease_id):
                self._warn(lease_id, "lost its lease, what it still does counts for nothing")
                workers.abandon(lease_id)
            case c.ReplaceSlot(lease_id=lease_id):
                self._warn(lease_id, "does not end, its slot is given to a new worker")
                workers.replace(lease_id)

    def _tell_refused(self, lease_id: UUID) -> None:
        """Log that a body has run for nothing: who looks for its outcome must find out why."""
        job = self._workers.ended_job(lease_id)
        if job is not None:
            _warn(
                job, "lost its lease before its outcome was recorded, unless that answer was lost"
            )

    def _warn(self, lease_id: UUID, what: str) -> None:
        job = self._workers.job_of(lease_id)
        if job is not None:
            _warn(job, what)


def _refused(event: e.Event) -> tuple[UUID, ...]:
    """Return the leases that an answer says are gone."""
    match event:
        case e.ReportReturned(answer=answer):
            return tuple(row.lease_id for row in answer.rows if row.verdict is Verdict.STALE)
        case e.HeartbeatReturned(answer=answer):
            lost = LeaseHealth.LOST
            return tuple(one.lease_id for one in answer.renewals if one.health is lost)
        case _:
            return ()


def _warn(job: LeasedJob, what: str) -> None:
    extra = {"job_id": str(job.job_id), "wire_name": job.wire_name}
    job_logger.warning("job %s (%s) %s", job.job_id, job.wire_name, what, extra=extra)
