"""Whether the pumps of this process are well, for their heartbeats and for a supervisor."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.leases import PumpHealth, PumpStatus
from backwave_django.pumps.identity import memory_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from pathlib import Path

    from backwave_django.pumps.clock import Clock

logger = logging.getLogger("backwave.pump")

#: Commands that come once and not again: the next heartbeat speaks for them.
_ONE_OFF: Final = frozenset({c.Recover, c.Dispose, c.Release, c.Mint})
_FAILED: Final = (e.AttemptFailed, e.AttemptOutputRefused)


class Vitals:
    """How one pump is. Its own thread writes; others read.

    A pump is degraded from its first store fault until each kind of command that failed has been
    answered again, or until two heartbeats were answered with no fault in between.
    """

    def __init__(self, *, name: str, clock: Clock, heartbeat_interval: timedelta) -> None:
        self._name = name
        self._clock = clock
        # Contact is due with every heartbeat; a pump that missed one whole turn is late.
        self._patience_seconds = 2 * heartbeat_interval.total_seconds() + 1
        self._faulted: set[type[c.StoreCommand]] = set()
        self._clean_since_beat = False
        self._answered_at: float | None = None
        self._problem = ""
        self._succeeded = 0
        self._failed = 0
        self.draining = False
        self.over = False

    @property
    def degraded(self) -> bool:
        """Whether the store has failed this pump, and not yet made up for it."""
        return bool(self._faulted)

    def is_well(self) -> bool:
        """Tell whether the pump reported in time and the store answered it."""
        answered_at = self._answered_at
        if self.over or answered_at is None:
            return False
        return self._clock.mark() - answered_at <= self._patience_seconds

    def ended(self, event: e.Event) -> None:
        """Count the event if bodies have ended."""
        if not isinstance(event, e.AttemptsEnded):
            return
        for one in event.ends:
            if isinstance(one, e.AttemptSucceeded | e.AttemptCommitted):
                self._succeeded += 1
            elif isinstance(one, _FAILED):
                self._failed += 1

    def answered(self, command: c.StoreCommand) -> None:
        """Note that the store answered, and log once when that ends a bad time."""
        self._answered_at = self._clock.mark()
        if not self._faulted:
            return
        self._faulted.discard(type(command))
        if isinstance(command, c.Heartbeat):
            if self._clean_since_beat:
                self._faulted.clear()
            self._clean_since_beat = True
        if not self._faulted:
            self._problem = ""
            logger.info("%s: healed, the database answers again", self._name)

    def faulted(self, commands: Sequence[c.StoreCommand], problem: str) -> None:
        """Note that the store failed, and log once when that begins a bad time."""
        if self._faulted:
            logger.debug("%s: still degraded: %s", self._name, problem)
        else:
            logger.warning("%s: degraded, will try again: %s", self._name, problem)
        self._clean_since_beat = False
        self._faulted.update(type(command) for command in commands)
        self._problem = problem

    def clock_moved(self, shift: timedelta) -> None:
        """Log that the database's clock is not where it was thought to be."""
        logger.warning(
            "%s: the database's clock is %+.1f s from where it was: this machine slept, or a "
            "clock was set",
            self._name,
            shift.total_seconds(),
        )

    def status(self, *, executing: int, abandoned: int) -> PumpStatus:
        """Return what the next heartbeat says."""
        health = PumpHealth.HEALTHY
        if self.draining:
            health = PumpHealth.DRAINING
        elif self._faulted:
            health = PumpHealth.DEGRADED
        return PumpStatus(
            health=health,
            executing=executing,
            abandoned=abandoned,
            succeeded=self._succeeded,
            failed=self._failed,
            memory_bytes=memory_bytes(),
            problem=self._problem,
        )


class HealthFile:
    """A file whose age says how long ago all pumps of this process were well."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._complained = False

    def update(self, pumps: Sequence[Vitals]) -> None:
        """Touch the file if every pump is well. A file that cannot be written is said once."""
        if not pumps or not all(vitals.is_well() for vitals in pumps):
            return
        try:
            self._path.touch()
        except OSError:
            if not self._complained:
                logger.exception("the health file %s cannot be written", self._path)
            self._complained = True
