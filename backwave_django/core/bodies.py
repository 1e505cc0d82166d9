"""Running bodies: asking them to stop, giving up on them, and taking their slots back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core import commands as c
from backwave_django.core import verdicts
from backwave_django.core.bounds import SLOT_GRACE
from backwave_django.core.holdings import Attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.core.holdings import Holdings
    from backwave_django.core.jobs import LeasedJob


class Bodies:
    """What the driver does to bodies that run, and when it has to look at them again.

    ``look_at`` lies at or before the next time-out or slot replacement; it may be early, which
    costs one look.
    """

    def __init__(self, *, holdings: Holdings, timeouts: Mapping[str, timedelta]) -> None:
        self._holdings = holdings
        self._timeouts = timeouts
        self.look_at: datetime | None = None

    def begin(self, jobs: Iterable[LeasedJob], *, now: datetime) -> None:
        """Note that each job is given to a slot."""
        running, timeouts = self._holdings.running, self._timeouts
        for job in jobs:
            timeout = timeouts.get(job.wire_name) if timeouts else None
            timeout_at = None if timeout is None else now + timeout
            running[job.lease_id] = Attempt(job, now, timeout_at)
            self._look_by(timeout_at)

    def signal(self, lease_id: UUID, reason: c.CancelReason) -> tuple[c.Command, ...]:
        """Ask a body to stop. What an operator wants is not overruled by a drain."""
        attempt = self._holdings.running.get(lease_id)
        if attempt is None or attempt.void or attempt.signalled is reason:
            return ()
        if attempt.signalled is c.CancelReason.OPERATOR and reason is c.CancelReason.DRAIN:
            return ()
        attempt.signalled = reason
        return (c.SignalCancel(lease_id=lease_id, reason=reason),)

    def signal_all(self, reason: c.CancelReason) -> tuple[c.Command, ...]:
        """Ask every body whose end still counts to stop."""
        leases = [attempt.job.lease_id for attempt in self._holdings.live()]
        return tuple(command for lease in leases for command in self.signal(lease, reason))

    def lose(self, lease_id: UUID) -> tuple[c.Command, ...]:
        """The lease is lost: forget its outcome, and let its body know."""
        self._holdings.buffered.pop(lease_id, None)
        self._holdings.busy.pop(lease_id, None)
        signal = self.signal(lease_id, c.CancelReason.LEASE_LOST)
        if not signal:
            return ()
        self._holdings.running[lease_id].void = True
        return (*signal, c.Abandon(lease_id=lease_id))

    def committed(self, lease_id: UUID) -> None:
        """The outcome is in: forget the body, and what was decided without it meanwhile."""
        holdings = self._holdings
        for held in (holdings.running, holdings.buffered, holdings.busy):
            held.pop(lease_id, None)
        holdings.replaced.discard(lease_id)

    def release(self, *, now: datetime) -> None:
        """Turn every body whose end still counts into a release, and stop waiting for it."""
        for attempt in tuple(self._holdings.live()):
            attempt.void = True
            self._holdings.buffered[attempt.job.lease_id] = verdicts.released(
                attempt.job, started_at=attempt.started_at, now=now
            )

    def overdue(self, *, now: datetime) -> tuple[c.Command, ...]:
        """Time bodies out, and replace the slots of those that ignored it."""
        if self.look_at is None or now < self.look_at:
            return ()
        self.look_at = None
        commands: list[c.Command] = []
        for lease_id, attempt in tuple(self._holdings.running.items()):
            if attempt.replace_at is not None and attempt.replace_at <= now:
                del self._holdings.running[lease_id]
                self._holdings.replaced.add(lease_id)
                commands.append(c.ReplaceSlot(lease_id=lease_id))
                continue
            if attempt.timeout_at is not None and attempt.timeout_at <= now:
                commands += self._time_out(attempt, now=now)
            self._look_by(attempt.timeout_at)
            self._look_by(attempt.replace_at)
        return tuple(commands)

    def shift(self, delta: timedelta) -> None:
        """Follow a clock that was set back."""
        self.look_at = self.look_at and self.look_at + delta
        for attempt in self._holdings.running.values():
            attempt.timeout_at = attempt.timeout_at and attempt.timeout_at + delta
            attempt.replace_at = attempt.replace_at and attempt.replace_at + delta

    def _time_out(self, attempt: Attempt, *, now: datetime) -> tuple[c.Command, ...]:
        job = attempt.job
        attempt.timeout_at = None
        attempt.replace_at = now + SLOT_GRACE
        signal = self.signal(job.lease_id, c.CancelReason.TIMEOUT)
        if signal:
            attempt.void = True
            self._holdings.buffered[job.lease_id] = verdicts.timed_out(
                job,
                after=self._timeouts[job.wire_name],
                started_at=attempt.started_at,
                now=now,
            )
        return signal

    def _look_by(self, at: datetime | None) -> None:
        if at is not None and (self.look_at is None or at < self.look_at):
            self.look_at = at
