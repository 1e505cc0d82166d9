"""What any driver owes any history: a small model that watches one and objects.

It knows no instant of the driver's clock, only how much time the driver was shown: a clock that
is set back shows none, and no span may become longer by it.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.bounds import DRAIN_NOTICE, EXIT_GRACE
from backwave_django.core.dials import DriverConfig
from backwave_django.core.driver import Driver
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.leases import LeaseHealth
from backwave_django.core.outcomes import OutcomeKind, Verdict
from tests.core.drivers import SECOND, T0

ZERO = timedelta(0)

KINDS: dict[type[e.AttemptEnded], OutcomeKind] = {
    e.AttemptSucceeded: OutcomeKind.SUCCEEDED,
    e.AttemptFailed: OutcomeKind.FAILED,
    e.AttemptOutputRefused: OutcomeKind.OUTPUT_REFUSED,
    e.AttemptSnoozed: OutcomeKind.SNOOZED,
    e.AttemptUnroutable: OutcomeKind.UNROUTABLE,
    e.AttemptUndecodable: OutcomeKind.UNDECODABLE,
    e.AttemptReleased: OutcomeKind.RELEASED,
}


@dataclass
class Body:
    """A body in a slot. ``void``: its end counts for nothing any more."""

    job: LeasedJob
    began: timedelta
    signalled: c.CancelReason | None = None
    void: bool = False


@dataclass
class Watched:
    """A driver, and all that it must not forget. Each event goes through ``tell``."""

    config: DriverConfig
    now: datetime = T0
    shown: timedelta = ZERO
    in_flight: list[c.StoreCommand] = field(default_factory=list)
    bodies: dict[UUID, Body] = field(default_factory=dict)
    replaced: set[UUID] = field(default_factory=set)
    owed: dict[UUID, OutcomeKind] = field(default_factory=dict)
    busy: set[UUID] = field(default_factory=set)
    lost: set[UUID] = field(default_factory=set)
    to_execute: tuple[LeasedJob, ...] = ()
    #: What must come before anything else: first the heartbeat, then the recovery.
    penance: list[type[c.StoreCommand]] = field(default_factory=list)
    beaten: timedelta | None = None
    contact: timedelta | None = None
    drained: timedelta | None = None
    handed_back: bool = False
    end: c.Exit | c.Halt | None = None
    offered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.driver = Driver(self.config, now=self.now)

    def pass_time(self, span: timedelta) -> None:
        """Move the clock; a negative span sets it back."""
        self.now += span
        self.shown += max(span, ZERO)

    def tell(self, event: e.Event) -> tuple[c.Command, ...]:
        """Give the driver an event; check what it does about it."""
        self._expect(event)
        commands = self.driver.step(event, now=self.now)
        self._check_order(commands)
        for command in commands:
            assert self.end is None, "something follows the end"
            self._take(command)
        if self.end is None:
            self._check_rest(event, commands)
        return commands

    # What an event obliges to

    def _expect(self, event: e.Event) -> None:  # noqa: C901, PLR0912 - one case per event
        match event:
            case e.Claimed(answer=answer):
                self._landed(c.Claim)
                if self.drained is None:
                    self.to_execute = answer.jobs
                else:
                    self.owed |= {job.lease_id: OutcomeKind.RELEASED for job in answer.jobs}
            case e.ReportReturned(answer=report):
                self._landed(c.Report, c.Release)
                for row in report.rows:
                    self._answered(row.lease_id, row.verdict)
            case e.HeartbeatReturned(answer=news):
                self._landed(c.Heartbeat)
                self.beaten = self.shown
                for renewal in news.renewals:
                    if renewal.health is LeaseHealth.LOST:
                        self._lose(renewal.lease_id)
            case e.StoreFaulted(commands=commands):
                self._faulted(commands)
            case e.Recovered() | e.Disposed() | e.Expired() | e.Settled() | e.Purged():
                self.in_flight.pop(0)
                self._answer()
            case e.AttemptsEnded(ends=ends):
                for one in ends:
                    self._ended(one)
            case _ if isinstance(event, e.AttemptEnded):
                self._ended(event)
            case _:
                return  # time and hints oblige to nothing by themselves

    def _ended(self, event: e.AttemptEnded) -> None:
        self.replaced.discard(event.lease_id)
        body = self.bodies.pop(event.lease_id, None)
        if isinstance(event, e.AttemptCommitted):
            self._forget(event.lease_id)
            return
        if body is None or body.void:
            return
        kind = KINDS.get(type(event), OutcomeKind.CANCELLED)
        stopping = self.drained is not None and body.signalled is None
        if isinstance(event, e.AttemptCancelled) and (
            stopping or body.signalled is c.CancelReason.DRAIN
        ):
            kind = OutcomeKind.RELEASED
        self.owed[event.lease_id] = kind

    def _landed(self, *kinds: type[c.StoreCommand]) -> None:
        assert isinstance(self.in_flight.pop(0), kinds)
        self._answer()

    def _answer(self) -> None:
        self.contact = self.shown if self.contact is None else self.contact

    def _answered(self, lease_id: UUID, verdict: Verdict) -> None:
        if lease_id not in self.owed:
            return
        if verdict is Verdict.BUSY:
            self.busy.add(lease_id)
        else:
            self._forget(lease_id)

    def _lose(self, lease_id: UUID) -> None:
        self._forget(lease_id)
        body = self.bodies.get(lease_id)
        if body is not None and not body.void:
            self.lost.add(lease_id)

    def _forget(self, lease_id: UUID) -> None:
        self.owed.pop(lease_id, None)
        self.busy.discard(lease_id)

    def _faulted(self, commands: tuple[c.Command, ...]) -> None:
        for command in commands:
            assert command == self.in_flight.pop(0)
            self.handed_back = self.handed_back and not isinstance(command, c.Release)
        self.penance = [c.Heartbeat, c.Recover]
        self.beaten = self.contact = None

    # What commands do

    def _check_order(self, commands: tuple[c.Command, ...]) -> None:
        asked = [one for one in commands if isinstance(one, c.StoreCommand)]
        assert not (asked and self.in_flight), "a store command while one is in flight"
        assert not (asked and self.handed_back), "a store command after the last words"
        for command in asked:
            if isinstance(command, c.Release):
                continue  # a drain's last words wait for nothing
            if self.penance == [c.Recover] and isinstance(command, c.Heartbeat):
                continue  # a cancellation was hinted meanwhile
            if self.penance:
                assert isinstance(command, self.penance.pop(0)), "not in order after a fault"

    def _take(self, command: c.Command) -> None:
        match command:
            case c.Execute(jobs=jobs):
                assert jobs == self.to_execute
                self.to_execute = ()
                for job in jobs:
                    self.bodies[job.lease_id] = Body(job, self.shown)
            case c.SignalCancel(lease_id=lease_id, reason=reason):
                self._signalled(self.bodies[lease_id], reason)
            case c.Abandon(lease_id=lease_id):
                self.lost.remove(lease_id)
                self.bodies[lease_id].void = True
            case c.ReplaceSlot(lease_id=lease_id):
                del self.bodies[lease_id]
                self.replaced.add(lease_id)
            case c.Exit() | c.Halt():
                self._ends(command)
            case c.SignalStopping():
                self.drained = self.shown if self.drained is None else self.drained
            case _:
                self._asked(command)

    def _signalled(self, body: Body, reason: c.CancelReason) -> None:
        assert not body.void
        assert body.signalled is not reason, "the same signal twice"
        body.signalled = reason
        if reason is c.CancelReason.TIMEOUT:
            assert self.shown - body.began >= self.config.timeouts[body.job.wire_name]
            body.void = True
            self.owed[body.job.lease_id] = OutcomeKind.TIMED_OUT

    def _asked(self, command: c.StoreCommand) -> None:
        match command:
            case c.Report(outcomes=outcomes):
                self._check_outcomes({one.lease_id: one.kind for one in outcomes}, len(outcomes))
            case c.Release(outcomes=outcomes):
                self.handed_back = True
                for body in self.bodies.values():
                    if not body.void:
                        body.void = True
                        self.owed[body.job.lease_id] = OutcomeKind.RELEASED
                self._check_outcomes({one.lease_id: one.kind for one in outcomes}, len(self.owed))
            case c.Heartbeat() | c.Recover():
                self._check_leases(command)
            case c.ExpireLeases():
                assert self.beaten is not None
                assert self.contact is not None
                assert self.shown - self.contact >= self.config.heartbeat_interval
            case c.Claim(request=request):
                assert self.drained is None
                self.offered[request.queues[0]] += request.limit
            case _:
                pass  # chores may come at any time
        self.in_flight.append(command)

    def _check_leases(self, command: c.Heartbeat | c.Recover) -> None:
        """Renewed is what counts; held is also what runs on for nothing."""
        if isinstance(command, c.Recover):
            assert Counter(command.held) == Counter(set(self.bodies) | set(self.owed))
            return
        live = {lease for lease, body in self.bodies.items() if not body.void}
        assert Counter(command.leases) == Counter(live | set(self.owed))

    def _check_outcomes(self, reported: dict[UUID, OutcomeKind], count: int) -> None:
        assert len(reported) == count, "an outcome twice, or one left out"
        assert reported.items() <= self.owed.items()

    def _ends(self, command: c.Exit | c.Halt) -> None:
        self.end = command
        if isinstance(command, c.Exit):
            assert self.drained is not None
            assert command.unrecorded == len(self.owed)
            assert command.abandoned == len(self.bodies) + len(self.replaced)
            late = self.drained + self.config.shutdown_timeout + EXIT_GRACE
            if self.shown < late:
                assert not self.owed
                assert not self.in_flight
                assert all(body.void for body in self.bodies.values())

    # What holds between steps

    def _check_rest(self, event: e.Event, commands: tuple[c.Command, ...]) -> None:
        assert not self.to_execute, "claimed and not executed"
        assert not self.lost, "lost and not abandoned"
        claims = [one.request.limit for one in self.in_flight if isinstance(one, c.Claim)]
        assert len(self.bodies) + sum(claims) <= self.config.pool_size, "more bodies than slots"
        if any(isinstance(one, c.Claim) for one in commands):
            assert sum(claims) == self._fair_size(), "a claim of the wrong size"
        wait = self._wait()
        if isinstance(event, e.Ticked) and not self.in_flight and not commands:
            assert wait > ZERO, "a tick changed nothing and is wanted again at once"
        if isinstance(event, e.InboxEmpty) and not self.in_flight and not self.handed_back:
            assert not (set(self.owed) - self.busy) or self.penance, "an outcome stayed behind"
        assert wait <= self._patience(), "woken too late"

    def _fair_size(self) -> int:
        leaving = {
            one.lease_id
            for command in self.in_flight
            if isinstance(command, c.Report)
            for one in command.outcomes
        }
        waiting = len(set(self.owed) - self.busy - leaving)
        waiting += max(0, len(self.busy) - self.config.pool_size)
        free = self.config.pool_size - len(self.bodies) - waiting
        return min(free, self.config.max_claim_batch)

    def _wait(self) -> timedelta:
        wake_at = self.driver.wake_at
        return timedelta.max if wake_at is None else max(wake_at - self.now, ZERO)

    def _patience(self) -> timedelta:
        """The longest wait that misses no deadline, by the time that was shown."""
        ends = [timedelta.max, *self._of_bodies(), *self._of_drain()]
        if not self.in_flight and not self.handed_back:
            if self.penance:
                ends.append(self.shown + max(10 * SECOND, self.config.poll_interval))
            else:
                beaten = self.shown if self.beaten is None else self.beaten
                ends.append(beaten + self.config.heartbeat_interval)
                ends.append(self.shown + self.config.maintenance_interval)
        return max(min(ends) - self.shown, ZERO) if min(ends) < timedelta.max else timedelta.max

    def _of_bodies(self) -> list[timedelta]:
        timeouts = self.config.timeouts
        return [
            body.began + timeouts[body.job.wire_name]
            for body in self.bodies.values()
            if not body.void and body.job.wire_name in timeouts
        ]

    def _of_drain(self) -> list[timedelta]:
        if self.drained is None:
            return []
        end = self.drained + self.config.shutdown_timeout
        deadlines = [end + EXIT_GRACE]
        asked = {c.CancelReason.DRAIN, c.CancelReason.OPERATOR}
        if any(not b.void and b.signalled not in asked for b in self.bodies.values()):
            deadlines.append(end - DRAIN_NOTICE)
        return deadlines
