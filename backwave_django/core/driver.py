"""The decisions of one pump: events in, commands out.

Sans I/O: the driver never waits, reads no clock and touches no thread. The pump, the simulator
and the test harness are its callers, and obey the same commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core import verdicts
from backwave_django.core.bodies import Bodies
from backwave_django.core.bounds import DRAIN_NOTICE, EXIT_GRACE, HINT_WINDOW
from backwave_django.core.claiming import Claiming
from backwave_django.core.flight import Flight
from backwave_django.core.holdings import Attempt, Holdings
from backwave_django.core.leases import LeaseHealth
from backwave_django.core.outcomes import Verdict
from backwave_django.core.pacing import Insistence, Pacing
from backwave_django.core.upkeep import Contact, Upkeep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from backwave_django.core.contract import ClaimAnswer, ReportAnswer
    from backwave_django.core.dials import DriverConfig
    from backwave_django.core.leases import BeatAnswer

_SWEEPS: dict[type, type[c.StoreCommand]] = {
    e.Recovered: c.Recover,
    e.Disposed: c.Dispose,
    e.Expired: c.ExpireLeases,
    e.Settled: c.Settle,
    e.Purged: c.Purge,
}


class Driver:
    """The state machine of one pump.

    True between steps: bodies in slots plus slots promised to a claim in flight never exceed the
    pool; every lease that runs or whose outcome waits is renewed; no outcome is forgotten before
    the store said ``applied`` or ``stale``; no store command is issued while one is in flight;
    ``wake_at`` lies at or before every deadline.
    """

    def __init__(self, config: DriverConfig, *, now: datetime) -> None:
        self._config = config
        self._now = now
        self._pacing = Pacing(
            interval=config.poll_interval,
            ceiling=config.max_poll_interval,
            jitter=HINT_WINDOW * (crc32(config.pump_id.bytes) / 2**32),
            now=now,
        )
        self._claiming = Claiming(config)
        self._holdings = Holdings(pool_size=config.pool_size)
        self._bodies = Bodies(holdings=self._holdings, timeouts=config.timeouts)
        self._contact = Contact(config=config, now=now)
        self._upkeep = Upkeep(config=config, now=now)
        self._flight = Flight()
        self._insistence = Insistence(ceiling=config.poll_interval)
        self._drain_ends_at: datetime | None = None
        self._handed_back = False
        self._over = False

    @property
    def over(self) -> bool:
        """Whether ``Exit`` or ``Halt`` was issued."""
        return self._over

    @property
    def draining(self) -> bool:
        """Whether the pump was told to drain."""
        return self._drain_ends_at is not None

    @property
    def wake_at(self) -> datetime | None:
        """When to send ``Ticked`` if nothing else happens before; ``None`` for never."""
        return None if self._over else min(self._deadlines(), default=None)

    def step(self, event: e.Event, *, now: datetime) -> tuple[c.Command, ...]:
        """Take in one event; return what to do about it, in order."""
        assert not self._over, "step() after Exit or Halt"
        if now < self._now:
            self._shift(now - self._now)
        self._now = now
        commands = (*self._react(event), *self._overdue(), *self._next(event))
        assert len(self._holdings.running) + self._flight.reserved <= self._config.pool_size, (
            "more bodies than slots"
        )
        return commands

    # Reactions

    def _react(self, event: e.Event) -> tuple[c.Command, ...]:
        match event:
            case e.AttemptsEnded(ends=ends):
                self._ended(*ends)
            case e.Claimed() | e.ReportReturned() | e.HeartbeatReturned() | e.StoreFaulted():
                return self._heard(event)
            case e.Recovered() | e.Disposed() | e.Expired() | e.Settled() | e.Purged():
                self._swept(event)
            case e.SchedulesLoaded() | e.Minted():
                self._scheduled(event)
            case e.DueHinted() | e.CancelHinted() | e.DeadPumpsFound():
                self._told(event)
            case e.DrainRequested():
                return self._drain()
            case e.Ticked() | e.InboxEmpty():
                return ()  # deadlines are looked at on every step; these only bring the time
            case _:
                self._ended(event)
        return ()

    def _heard(
        self, event: e.Claimed | e.ReportReturned | e.HeartbeatReturned | e.StoreFaulted
    ) -> tuple[c.Command, ...]:
        match event:
            case e.Claimed(answer=answer):
                return self._claimed(answer)
            case e.ReportReturned(answer=answer):
                self._reported(answer)
                return ()
            case e.HeartbeatReturned(answer=answer):
                return self._beaten(answer)
            case _:
                return self._faulted(event)

    def _ended(self, *ends: e.AttemptEnded) -> None:
        for event in ends:
            if isinstance(event, e.AttemptCommitted):
                self._bodies.committed(event.lease_id)
                self._pacing.ask(now=self._now)
            elif attempt := self._holdings.landed(event.lease_id):
                self._judge(event, attempt)

    def _judge(self, event: e.AttemptReported, attempt: Attempt) -> None:
        if attempt.void:
            self._pacing.ask(now=self._now)
            return
        signalled = attempt.signalled
        if signalled is None and self.draining:
            signalled = c.CancelReason.DRAIN
        self._holdings.buffered[event.lease_id] = verdicts.judge(
            event, job=attempt.job, signalled=signalled, now=self._now
        )

    def _claimed(self, answer: ClaimAnswer) -> tuple[c.Command, ...]:
        asked = self._flight.answered(c.Claim).request
        self._contact.answered(now=self._now)
        self._pacing.claimed(answer, limit=asked.limit, now=self._now)
        if self.draining:
            # The drain overtook the claim: what it brought goes back untouched.
            for job in answer.jobs:
                self._holdings.buffered[job.lease_id] = verdicts.released(
                    job, started_at=self._now, now=self._now
                )
            return ()
        # What the dead pumps of this host held is on its way back: it counts as due.
        disposing = self._flight.holds(c.Dispose) or self._upkeep.disposes()
        idle = self._holdings.empty() and not disposing
        self._claiming.answered(answer, idle=idle, now=self._now)
        self._bodies.begin(answer.jobs, now=self._now)
        return (c.Execute(jobs=answer.jobs),) if answer.jobs else ()

    def _reported(self, answer: ReportAnswer) -> None:
        self._flight.answered(c.Report, c.Release)
        self._contact.answered(now=self._now)
        buffered, busy = self._holdings.buffered, self._holdings.busy
        refused = [row.lease_id for row in answer.rows if row.verdict is Verdict.BUSY]
        if refused:
            self._insistence.refused(again=busy.keys() >= set(refused), now=self._now)
        applied = False
        for row in answer.rows:
            outcome = buffered.pop(row.lease_id, None) or busy.pop(row.lease_id, None)
            if row.verdict is Verdict.BUSY and outcome is not None:
                busy[row.lease_id] = outcome
            applied = applied or row.verdict is Verdict.APPLIED
        if applied and not self._flight.reserved:
            self._pacing.ask(now=self._now)

    def _beaten(self, answer: BeatAnswer) -> tuple[c.Command, ...]:
        self._flight.answered(c.Heartbeat)
        self._contact.answered(now=self._now)
        self._contact.beaten(clock=answer.clock, now=self._now)
        self._contact.recover = self._contact.recover or bool(answer.unlisted)
        commands: tuple[c.Command, ...] = ()
        for renewal in answer.renewals:
            if renewal.health is LeaseHealth.LOST:
                commands += self._bodies.lose(renewal.lease_id)
            elif renewal.cancel_requested:
                commands += self._bodies.signal(renewal.lease_id, c.CancelReason.OPERATOR)
        return commands + self._drain() if answer.drain_requested else commands

    def _swept(self, event: e.Recovered | e.Disposed | e.Expired | e.Settled | e.Purged) -> None:
        command = self._flight.answered(_SWEEPS[type(event)])
        self._contact.answered(now=self._now)
        if isinstance(command, c.Recover):
            self._contact.recover = False
        elif event.answer.full:
            self._upkeep.repeat(command)
        if event.answer.count and not isinstance(command, c.Purge):
            self._pacing.ask(now=self._now)  # what was swept may be due

    def _scheduled(self, event: e.SchedulesLoaded | e.Minted) -> None:
        self._contact.answered(now=self._now)
        if isinstance(event, e.SchedulesLoaded):
            asked = self._flight.answered(c.LoadSchedules)
            self._upkeep.loaded(asked, event.answer, now=self._now)
            return
        self._flight.answered(c.Mint)
        if any(row.job_id is not None for row in event.answer.rows):
            self._pacing.ask(now=self._now)

    def _told(self, event: e.DueHinted | e.CancelHinted | e.DeadPumpsFound) -> None:
        match event:
            case e.DueHinted(queue=queue, priority=priority):
                if self._claiming.hinted(queue=queue, priority=priority):
                    self._pacing.hinted(now=self._now)
            case e.CancelHinted():
                self._contact.hinted(now=self._now)
            case _:
                self._upkeep.first(c.Dispose(pumps=event.pumps))

    def _drain(self) -> tuple[c.Command, ...]:
        if self.draining:
            return ()
        self._drain_ends_at = self._now + self._config.shutdown_timeout
        self._claiming.open = False
        return (c.SignalStopping(),)

    def _faulted(self, event: e.StoreFaulted) -> tuple[c.Command, ...]:
        for command in event.commands:
            self._flight.faulted(command)
            match command:
                case c.Claim():
                    self._pacing.ask(now=self._now)
                case c.Report() | c.Release():
                    self._handed_back = False
                    self._insistence.at = self._now if self._holdings.busy else None
                case (
                    c.Dispose()
                    | c.ExpireLeases()
                    | c.Settle()
                    | c.Purge()
                    | c.LoadSchedules()
                    | c.Mint()
                ):
                    self._upkeep.faulted(command)
                case _:
                    continue  # a fault asks for a heartbeat and a recovery anyway
        self._contact.faulted(now=self._now)
        return self._halt(event.problem) if event.fatal else ()

    def _halt(self, reason: str) -> tuple[c.Command, ...]:
        self._over = True
        return (*self._bodies.signal_all(c.CancelReason.HALT), c.Halt(reason=reason))

    # Deadlines

    def _overdue(self) -> tuple[c.Command, ...]:
        if self._over:
            return ()
        self._upkeep.tick(now=self._now)
        if not self._flight.reserved:
            self._pacing.echo(now=self._now, free=self._can_claim())
        commands = self._bodies.overdue(now=self._now)
        if commands:
            self._pacing.ask(now=self._now)  # a replaced slot is a free slot
        if len(self._holdings.replaced) > self._config.pool_size:
            return commands + self._halt("more bodies ignored their time-out than there are slots")
        if self._drain_ends_at is not None:
            commands += self._overdue_drain(self._drain_ends_at)
        return commands

    def _overdue_drain(self, ends_at: datetime) -> tuple[c.Command, ...]:
        landed = self._holdings.empty() and not self._flight
        if landed or self._now >= ends_at + EXIT_GRACE:
            return self._exit()
        commands: tuple[c.Command, ...] = ()
        if self._now >= ends_at - DRAIN_NOTICE:
            commands += self._bodies.signal_all(c.CancelReason.DRAIN)
        may_speak = not self._flight and not self._contact.waiting(now=self._now)
        if self._now >= ends_at and may_speak and not self._handed_back:
            self._handed_back = True
            self._bodies.release(now=self._now)
            rest = (*self._holdings.buffered.values(), *self._holdings.busy.values())
            commands += self._flight.issue((c.Release(outcomes=rest),))
        return commands

    def _exit(self) -> tuple[c.Command, ...]:
        self._over = True
        holdings = self._holdings
        return (
            c.Exit(
                abandoned=len(holdings.running) + len(holdings.replaced),
                unrecorded=len(holdings.buffered) + len(holdings.busy),
            ),
        )

    def _deadlines(self) -> Iterator[datetime]:
        if self._bodies.look_at is not None:
            yield self._bodies.look_at
        if self._drain_ends_at is not None:
            yield from self._drain_deadlines(self._drain_ends_at)
        if self._flight or self._handed_back:
            return
        if self._contact.retry_at is not None:
            yield self._contact.retry_at
            return
        yield self._now if self._contact.recover or self._upkeep.pending() else self._upkeep.look_at
        yield self._contact.beat_at
        if self._insistence.at is not None:
            yield self._insistence.at
        if self._can_claim():
            yield self._pacing.poll_at
            if self._pacing.echo_at is not None:
                yield self._pacing.echo_at

    def _drain_deadlines(self, ends_at: datetime) -> Iterator[datetime]:
        reasons = {c.CancelReason.DRAIN, c.CancelReason.OPERATOR}
        if any(attempt.signalled not in reasons for attempt in self._holdings.live()):
            yield ends_at - DRAIN_NOTICE
        if not self._handed_back and not self._flight and self._now < ends_at:
            yield ends_at
        yield ends_at + EXIT_GRACE

    def _shift(self, delta: timedelta) -> None:
        """Follow a clock that was set back: every span that was measured keeps its length."""
        self._pacing.shift(delta)
        self._contact.shift(delta)
        self._upkeep.shift(delta)
        self._bodies.shift(delta)
        self._insistence.shift(delta)
        self._drain_ends_at = self._drain_ends_at and self._drain_ends_at + delta

    # What to ask of the store next

    def _free(self, *, leaving: int = 0) -> int:
        return self._holdings.free(leaving=leaving, reserved=self._flight.reserved)

    def _can_claim(self) -> bool:
        return self._claiming.size(self._free()) > 0

    def _next(self, event: e.Event) -> tuple[c.Command, ...]:
        waiting = self._flight or self._contact.waiting(now=self._now) or self._handed_back
        if self._over or waiting:
            return ()
        if not self._claiming.open and not self.draining and self._holdings.empty():
            return self._exit()
        if self._contact.beat_at <= self._now:
            # After a fault leases are renewed before anything else is said.
            report = () if self._contact.recover else self._report(flush=True)
            self._contact.beating(now=self._now)
            return self._flight.issue((*report, c.Heartbeat(leases=self._holdings.leases())))
        if self._contact.recover:
            return self._flight.issue((c.Recover(held=self._holdings.held()),))
        report = self._report(flush=self._flush_due(event))
        if not isinstance(event, e.StoreAnswer):
            self._upkeep.resume()
        chore = self._upkeep.take(may_expire=self._contact.may_expire(now=self._now))
        return self._flight.issue((*report, *self._claims(report), *chore))

    def _flush_due(self, event: e.Event) -> bool:
        """Tell whether the buffered outcomes go now, or wait for company."""
        buffered = len(self._holdings.buffered)
        return buffered > 0 and (
            isinstance(event, e.InboxEmpty)
            or buffered >= self._config.max_outcome_batch
            or (self._pacing.poll_at <= self._now and self._can_claim())
            or not self._holdings.running
            or self.draining
        )

    def _report(self, *, flush: bool) -> tuple[c.Report, ...]:
        outcomes = self._holdings.batch(self._config.max_outcome_batch) if flush else ()
        if self._insistence.due(now=self._now):
            outcomes = (*outcomes, *self._holdings.busy.values())
        return (c.Report(outcomes=outcomes),) if outcomes else ()

    def _claims(self, report: tuple[c.Report, ...]) -> tuple[c.Claim, ...]:
        # Slots of outcomes that leave in the same turn are as good as free; busy ones hold none.
        leaving = sum(
            outcome.lease_id in self._holdings.buffered
            for one in report
            for outcome in one.outcomes
        )
        size = self._claiming.size(self._free(leaving=leaving))
        if not size or not (leaving or self._pacing.poll_at <= self._now):
            return ()
        self._pacing.issued()
        return self._claiming.claims(size)
