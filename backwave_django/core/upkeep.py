"""Contact with the store, and the chores that come round by themselves."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING

from backwave_django.core.bounds import PURGE_BATCH, PURGE_INTERVAL, SWEEP_BATCH
from backwave_django.core.commands import Dispose, ExpireLeases, Purge, Settle

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.core.commands import StoreCommand
    from backwave_django.core.dials import DriverConfig

#: Retries of a store that is down come at least this often, however slow the polls are.
MAX_BACKOFF = timedelta(seconds=10)


class Contact:
    """Whether the store answers, since when, and when to try again.

    After a fault the order is heartbeat, recover, then the rest: leases that an outage let lapse
    are renewed by those who still hold them before anybody sweeps.
    """

    def __init__(self, *, config: DriverConfig, now: datetime) -> None:
        self._interval = config.heartbeat_interval
        self._first_backoff = config.poll_interval
        self._most_backoff = max(config.poll_interval, MAX_BACKOFF)
        self._backoff = config.poll_interval
        self._unbroken_since: datetime | None = None
        self._answered_at: datetime | None = None
        self._beaten = False
        self.retry_at: datetime | None = None
        self.beat_at = now
        self.recover = False

    def faulted(self, *, now: datetime) -> None:
        """No answer came: wait, then renew leases before anything else."""
        self.retry_at = now + self._backoff
        self._backoff = min(self._backoff * 2, self._most_backoff)
        self._unbroken_since = None
        self._beaten = False
        self.beat_at = now
        self.recover = True

    def answered(self, *, now: datetime) -> None:
        """An answer came."""
        self.retry_at = None
        self._backoff = self._first_backoff
        silent = self._answered_at is not None and now - self._answered_at > 2 * self._interval
        if self._unbroken_since is None or silent:
            # A process that was stopped and continued has been out of contact, too.
            self._unbroken_since = now
            self._beaten = False
        self._answered_at = now

    def beaten(self, *, now: datetime) -> None:
        """A heartbeat was answered."""
        self._beaten = True
        self.beat_at = now + self._interval

    def waiting(self, *, now: datetime) -> bool:
        """Tell whether a fault's backoff still lasts."""
        return self.retry_at is not None and now < self.retry_at

    def may_expire(self, *, now: datetime) -> bool:
        """Tell whether everybody who is healthy has had the time to renew."""
        return (
            self._beaten
            and self._unbroken_since is not None
            and now - self._unbroken_since >= self._interval
        )

    def shift(self, delta: timedelta) -> None:
        """Follow a clock that was set back."""
        self.beat_at += delta
        self.retry_at = self.retry_at and self.retry_at + delta
        self._unbroken_since = self._unbroken_since and self._unbroken_since + delta
        self._answered_at = self._answered_at and self._answered_at + delta


class Upkeep:
    """The queue of due maintenance commands; one of them rides along with each turn."""

    def __init__(self, *, config: DriverConfig, now: datetime) -> None:
        self._every = config.maintenance_interval
        self._purges = config.purge
        self._due: deque[StoreCommand] = deque()
        self.due_at = now
        self._purge_at = now + PURGE_INTERVAL

    def tick(self, *, now: datetime) -> None:
        """Line up what has come due."""
        if now >= self.due_at:
            self.due_at = now + self._every
            self.again(ExpireLeases(limit=SWEEP_BATCH))
            self.again(Settle(limit=SWEEP_BATCH))
        if self._purges and now >= self._purge_at:
            self._purge_at = now + PURGE_INTERVAL
            self.again(Purge(limit=PURGE_BATCH))

    def again(self, command: StoreCommand) -> None:
        """Line up a command, once."""
        if command not in self._due:
            self._due.append(command)

    def first(self, command: Dispose) -> None:
        """Put a command before all others."""
        self._due.appendleft(command)

    def take(self, *, may_expire: bool) -> tuple[StoreCommand, ...]:
        """Return the next chore, if any. Lapsed leases wait until it is fair to sweep them."""
        while self._due:
            command = self._due.popleft()
            if may_expire or not isinstance(command, ExpireLeases):
                return (command,)
        return ()

    def pending(self) -> bool:
        """Tell whether a chore is due."""
        return bool(self._due)

    def shift(self, delta: timedelta) -> None:
        """Follow a clock that was set back."""
        self.due_at += delta
        self._purge_at += delta
