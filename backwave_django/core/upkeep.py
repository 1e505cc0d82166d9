"""Contact with the store, and the chores that come round by themselves."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING

from backwave_django.core.bounds import PURGE_BATCH, PURGE_INTERVAL, SWEEP_BATCH
from backwave_django.core.commands import (
    Dispose,
    ExpireLeases,
    LoadSchedules,
    Mint,
    Purge,
    Settle,
)
from backwave_django.core.minting import LOAD, Minting

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.core.commands import StoreCommand
    from backwave_django.core.dials import DriverConfig
    from backwave_django.core.schedule_answers import SchedulesAnswer

#: A store that is down is asked again at least this often, however slow the polls are.
MAX_BACKOFF = timedelta(seconds=10)


class Contact:
    """Whether the store answers, since when, and when to try again.

    After a fault the order is heartbeat, recover, then the rest: leases that an outage let lapse
    are renewed by those who still hold them before anybody sweeps.
    """

    def __init__(self, *, config: DriverConfig, now: datetime) -> None:
        self._interval = config.heartbeat_interval
        # A healthy pump is silent for up to one interval; one that was silent for longer than a
        # lease has left at the end of it cannot know whether the others could renew theirs.
        left = config.lease_duration - config.heartbeat_interval
        # An answer that is later than that by the database's clock, and was not waited for so long,
        # says that the clock was set: what was renewed by the old one may have lapsed already.
        self._longest_trip = config.lease_duration / 4
        self._sent_at = now
        self._repeated = False
        self._longest_silence = max(self._interval * 1.25, min(self._interval * 2, left))
        # Who comes back from an outage sweeps one interval later: by then all others, too, must
        # have found out that it is over, and have renewed.
        self._most_backoff = min(MAX_BACKOFF, config.heartbeat_interval / 2)
        self._first_backoff = min(config.poll_interval, self._most_backoff)
        self._backoff = self._first_backoff
        self._unbroken_since: datetime | None = None
        self._answered_at: datetime | None = None
        self._beaten = False
        self._again = False
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
        before = self._answered_at
        if self._unbroken_since is None or before is None or now - before > self._longest_silence:
            # A process that was stopped and continued has been out of contact, too.
            self._unbroken_since = now
            self._beaten = False
        self._answered_at = now

    def hinted(self, *, now: datetime) -> None:
        """A heartbeat will bring news: bring it forward."""
        self.beat_at = min(self.beat_at, now)
        self._again = True

    def beating(self, *, now: datetime) -> None:
        """A heartbeat is on its way: what is hinted from now on wants another."""
        self._sent_at = now
        self._again = False

    def beaten(self, *, clock: datetime, now: datetime) -> None:
        """A heartbeat was answered, when the database's clock said ``clock``."""
        self._beaten = True
        # Once: a clock that is never followed would have it repeated for ever.
        self._repeated = not self._repeated and clock - self._sent_at > self._longest_trip
        self.beat_at = now if self._again or self._repeated else now + self._interval

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
        self._sent_at += delta
        self.retry_at = self.retry_at and self.retry_at + delta
        self._unbroken_since = self._unbroken_since and self._unbroken_since + delta
        self._answered_at = self._answered_at and self._answered_at + delta


class Upkeep:
    """The queue of due maintenance commands; one of them rides along with each turn."""

    def __init__(self, *, config: DriverConfig, now: datetime) -> None:
        self._every = config.maintenance_interval
        self._purges = config.purge
        self._due: deque[StoreCommand] = deque()
        self._repeated: deque[StoreCommand] = deque()
        self.due_at = now
        self._purge_at = now + PURGE_INTERVAL
        self._minting = Minting(known=config.mints)

    def tick(self, *, now: datetime) -> None:
        """Line up what has come due."""
        for look in self._minting.due(upkeep=now >= self.due_at, now=now):
            self.first(look)
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

    def repeat(self, command: StoreCommand) -> None:
        """Note that a sweep was full: it goes on after whatever waits in the inbox."""
        self._repeated.append(command)

    def resume(self) -> None:
        """Line up the sweeps that were full: the inbox has had its turn."""
        while self._repeated:
            self.again(self._repeated.popleft())

    def first(self, command: Dispose | LoadSchedules) -> None:
        """Put a command before all others, once."""
        if command not in self._due:
            self._due.appendleft(command)

    def loaded(self, asked: LoadSchedules, answer: SchedulesAnswer, *, now: datetime) -> None:
        """Schedules were read: line up what follows from that, before all others."""
        self._due.extendleft(reversed(self._minting.loaded(asked, answer, now=now)))

    def faulted(self, command: StoreCommand) -> None:
        """A command got no answer: line it up again. Decisions about schedules are made anew."""
        self.again(LOAD if isinstance(command, Mint) else command)

    def take(self, *, may_expire: bool) -> tuple[StoreCommand, ...]:
        """Return the next chore, if any. Lapsed leases wait until it is fair to sweep them."""
        while self._due:
            command = self._due.popleft()
            if may_expire or not isinstance(command, ExpireLeases):
                return (command,)
        return ()

    @property
    def look_at(self) -> datetime:
        """When the next command comes due."""
        look_at = min(self.due_at, self._purge_at) if self._purges else self.due_at
        return min(look_at, self._minting.look_at or look_at)

    def disposes(self) -> bool:
        """Tell whether the leases of dead pumps are still to be ended."""
        return any(isinstance(command, Dispose) for command in self._due)

    def pending(self) -> bool:
        """Tell whether a chore is due."""
        return bool(self._due or self._repeated)

    def shift(self, delta: timedelta) -> None:
        """Follow a clock that was set back."""
        self.due_at += delta
        self._purge_at += delta
