"""When to ask again: for work, and for outcomes whose rows somebody else held."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backwave_django.core.bounds import BODIES_FIRST, BUSY_RETRY, HINT_WINDOW

if TYPE_CHECKING:
    from datetime import datetime

    from backwave_django.core.contract import ClaimAnswer


class Pacing:
    """The poll slot of one pump and its idle delay.

    Each empty poll doubles the delay up to the ceiling, never past the next known due time; work
    restores it. A hint brings the next poll forward without restoring the delay.
    """

    def __init__(
        self, *, interval: timedelta, ceiling: timedelta | None, jitter: timedelta, now: datetime
    ) -> None:
        self._interval = interval
        self._ceiling = max(ceiling or interval, interval)
        self._jitter = jitter
        self._delay = interval
        self._waited = interval
        self._found = False
        self._asked = False
        self.poll_at = now
        self.echo_at: datetime | None = None

    def ask(self, *, now: datetime) -> None:
        """Poll at once; if a claim is on its way, once more after it."""
        self.poll_at = min(self.poll_at, now)
        self._asked = True

    def issued(self) -> None:
        """A poll, of one claim or several, is on its way."""
        self._waited = self._delay
        self._found = self._asked = False

    def hinted(self, *, now: datetime) -> None:
        """Poll at once, and once more when the window in which senders keep quiet is over."""
        self.ask(now=now)
        if self.echo_at is None:
            self.echo_at = now + HINT_WINDOW + self._jitter

    def echo(self, *, now: datetime, free: bool) -> None:
        """Turn a due echo into a poll, unless the pool is full: then an end asks for one anyway."""
        if self.echo_at is not None and self.echo_at <= now:
            self.echo_at = None
            if free:
                self.ask(now=now)

    def claimed(self, answer: ClaimAnswer, *, limit: int, now: datetime) -> None:
        """Take in the answer of a claim of ``limit``; the last one of a poll sets the next poll.

        An answer that is neither short nor full came before everything was looked at, so that its
        jobs can begin. They get a moment to do so.
        """
        found, next_due = bool(answer.jobs), answer.next_due
        self._found = self._found or found
        withheld = next_due is not None and next_due <= now
        busy = self._found or withheld or not answer.short
        self._delay = self._interval if busy else min(self._waited * 2, self._ceiling)
        if self._asked or not answer.short:
            early = found and len(answer.jobs) < limit
            self.poll_at = now + BODIES_FIRST if early else now
            return
        self.poll_at = now + (self._interval if busy else self._waited)
        if next_due is not None and not withheld:
            self.poll_at = min(self.poll_at, next_due)

    def shift(self, delta: timedelta) -> None:
        """Follow a clock that was set back."""
        self.poll_at += delta
        if self.echo_at is not None:
            self.echo_at += delta


class Insistence:
    """When busy outcomes are offered again: soon at first, then ever more rarely.

    Mostly their rows are held for one statement: a claim that came too late for a job locks its
    row nevertheless, until its commit. Those that are still busy then are held by somebody who
    takes time; the delay doubles up to the poll interval, until others get busy.
    """

    def __init__(self, *, ceiling: timedelta) -> None:
        self._ceiling = ceiling
        self._delay = ceiling
        self.at: datetime | None = None

    def refused(self, *, again: bool, now: datetime) -> None:
        """Take in that outcomes are busy; ``again`` if all of them were busy before."""
        self._delay = min(self._delay * 2 if again else BUSY_RETRY, self._ceiling)
        self.at = now + self._delay

    def due(self, *, now: datetime) -> bool:
        """Tell, once, whether they are to be offered now."""
        if self.at is None or now < self.at:
            return False
        self.at = None
        return True

    def shift(self, delta: timedelta) -> None:
        """Follow a clock that was set back."""
        if self.at is not None:
            self.at += delta
