"""One round trip to the store for each store command, and the event that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.contract import Store
from backwave_django.core.errors import StoreBroken, StoreUnavailable, TurnFailed
from backwave_django.core.leases import Beat
from backwave_django.pumps.deaths import GONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from backwave_django.core.leases import PumpInfo, PumpStatus
    from backwave_django.pumps.clock import Clock
    from backwave_django.pumps.health import Vitals
    from backwave_django.pumps.progress import ProgressBoard

_MEASUREMENTS: Final = 3
_QUICK_SECONDS: Final = 1.0


class PumpStore(Store, Protocol):
    """A store on a connection that belongs to one pump."""

    def close(self) -> None:
        """Close the connection for good."""

    def drop(self) -> None:
        """Forget a connection that may be broken; the next call opens a new one."""


class Clocked(Protocol):
    """An answer that tells the database's clock."""

    @property
    def clock(self) -> datetime:
        """The database's clock, read while the answer was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A report and the claim that follows it, carried in one go."""

    report: c.Report
    claim: c.Claim


Answer = TypeVar("Answer", bound=Clocked)


class Exchange:
    """Carries the store commands of one pump. Used by its thread only."""

    def __init__(
        self,
        *,
        store: PumpStore,
        clock: Clock,
        info: PumpInfo,
        vitals: Vitals,
        status: Callable[[], PumpStatus],
        progress: ProgressBoard,
        greeting: Callable[[PumpStore, datetime], object] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._info = info
        self._vitals = vitals
        self._status = status
        self._progress = progress
        self._greeting = greeting

    def greet(self) -> None:
        """Register, and say once what a starting process has to say. Raises ``StoreError``."""
        self.register()
        if self._greeting is not None:
            self._greeting(self._store, self._clock.now())
            self._greeting = None

    def register(self) -> None:
        """Write the pump's registry row. Raises ``StoreError``."""
        sent_at = self._clock.mark()
        database_clock = self._store.register(self._info, now=self._clock.now())
        received_at = self._clock.mark()
        if not self._clock.observe(database_clock, sent_at=sent_at, received_at=received_at):
            self._measure()

    def ask(self, command: c.StoreCommand) -> e.Event:
        """Carry one command to the store; return the event that answers it."""
        try:
            event = self._carried(command)
        except (StoreUnavailable, StoreBroken) as error:
            return self._fault((command,), error)
        self._vitals.answered(command)
        return event

    def turn(
        self, turn: Turn
    ) -> tuple[e.ReportReturned | e.StoreFaulted, e.Claimed | e.StoreFaulted | None]:
        """Carry a report and a claim; return what answers each, or one fault of both."""
        report, claim = turn.report, turn.claim
        sent_at, now = self._clock.mark(), self._clock.now()
        try:
            reported, claimed = self._store.turn(report.outcomes, claim.request, now=now)
            self._heard(claimed, sent_at=sent_at)
        except TurnFailed as error:
            self._vitals.answered(report)
            return (
                e.ReportReturned(answer=error.answer),
                self._fault((claim,), error.fault),
            )
        except (StoreUnavailable, StoreBroken) as error:
            return self._fault((report, claim), error), None
        self._vitals.answered(report)
        self._vitals.answered(claim)
        return e.ReportReturned(answer=reported), e.Claimed(answer=claimed)

    def retire(self, *, problem: str) -> None:
        """Note in the registry that the pump ended. Raises ``StoreError``."""
        self._store.retire(pump_id=self._info.id, problem=problem, now=self._clock.now())

    def drop(self) -> None:
        """Forget the connection; the next command opens a new one."""
        self._store.drop()

    def close(self) -> None:
        """Close the connection for good."""
        self._store.close()

    def _carried(self, command: c.StoreCommand) -> e.Event:
        sent_at, now = self._clock.mark(), self._clock.now()
        store = self._store
        match command:
            case c.Claim():
                claimed = store.claim(command.request, now=now)
                return e.Claimed(answer=self._heard(claimed, sent_at=sent_at))
            case c.Report() | c.Release():
                reported = store.report(command.outcomes, now=now)
                return e.ReportReturned(answer=self._heard(reported, sent_at=sent_at))
            case c.Heartbeat():
                return self._beat(command, now=now, sent_at=sent_at)
            case c.Dispose():
                return self._dispose(command, now=now, sent_at=sent_at)
            case c.LoadSchedules() | c.Mint():
                return self._scheduled(command, now=now, sent_at=sent_at)
            case _:
                return self._swept(command, now=now, sent_at=sent_at)

    def _swept(
        self,
        command: c.Recover | c.ExpireLeases | c.Settle | c.Purge,
        *,
        now: datetime,
        sent_at: float,
    ) -> e.Event:
        store = self._store
        match command:
            case c.Recover():
                answer = store.recover(pump_id=self._info.id, held=command.held, now=now)
                return e.Recovered(answer=self._heard(answer, sent_at=sent_at))
            case c.ExpireLeases():
                answer = store.expire_leases(limit=command.limit, now=now)
                return e.Expired(answer=self._heard(answer, sent_at=sent_at))
            case c.Settle():
                answer = store.settle(limit=command.limit, now=now)
                return e.Settled(answer=self._heard(answer, sent_at=sent_at))
            case c.Purge():
                answer = store.purge(limit=command.limit, now=now)
                return e.Purged(answer=self._heard(answer, sent_at=sent_at))

    def _scheduled(
        self, command: c.LoadSchedules | c.Mint, *, now: datetime, sent_at: float
    ) -> e.Event:
        if isinstance(command, c.LoadSchedules):
            loaded = self._store.load_schedules(after=command.after, limit=command.limit)
            return e.SchedulesLoaded(answer=self._heard(loaded, sent_at=sent_at))
        minted = self._store.mint(command.decisions, now=now)
        return e.Minted(answer=self._heard(minted, sent_at=sent_at))

    def _beat(self, command: c.Heartbeat, *, now: datetime, sent_at: float) -> e.Event:
        progress = self._progress.take()
        beat = Beat(
            pump_id=self._info.id,
            leases=command.leases,
            lease_duration=self._info.lease_duration,
            status=self._status(),
            progress=progress,
        )
        try:
            answer = self._heard(self._store.heartbeat(beat, now=now), sent_at=sent_at)
            if not answer.registered:
                self.register()
        except (StoreUnavailable, StoreBroken):
            self._progress.put_back(progress)
            raise
        return e.HeartbeatReturned(answer=answer)

    def _dispose(self, command: c.Dispose, *, now: datetime, sent_at: float) -> e.Event:
        answer = self._store.dispose(pumps=command.pumps, now=now)
        for pump_id in command.pumps:
            # Only now: as long as their leases stand, the next node must find them as well.
            self._store.retire(pump_id=pump_id, problem=GONE, now=now)
        return e.Disposed(answer=self._heard(answer, sent_at=sent_at))

    def _heard(self, answer: Answer, *, sent_at: float) -> Answer:
        """Take in an answer's clock before anybody trusts the answer."""
        received_at = self._clock.mark()
        if not self._clock.observe(answer.clock, sent_at=sent_at, received_at=received_at):
            self._measure()
        return answer

    def _measure(self) -> None:
        """Ask for the database's clock and follow it: a machine slept, or a clock was set."""
        before = self._clock.now()
        for _ in range(_MEASUREMENTS):
            sent_at = self._clock.mark()
            database_clock = self._store.register(self._info, now=self._clock.now())
            received_at = self._clock.mark()
            self._clock.adopt(database_clock, sent_at=sent_at, received_at=received_at)
            if received_at - sent_at < _QUICK_SECONDS:
                break
        self._vitals.clock_moved(self._clock.now() - before)

    def _fault(self, commands: tuple[c.StoreCommand, ...], error: Exception) -> e.StoreFaulted:
        fatal = not isinstance(error, StoreUnavailable)
        if not fatal:
            self._store.drop()
        self._vitals.faulted(commands, str(error))
        return e.StoreFaulted(commands=commands, problem=str(error), fatal=fatal)


def merged(commands: Sequence[c.Command]) -> list[c.Command | Turn]:
    """Return the commands of one step, each report merged with the claim right after it."""
    plan: list[c.Command | Turn] = []
    for command in commands:
        last = plan[-1] if plan else None
        if isinstance(command, c.Claim) and isinstance(last, c.Report):
            plan[-1] = Turn(report=last, claim=command)
        else:
            plan.append(command)
    return plan
