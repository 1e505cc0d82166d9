"""Which pumps live, by the database's clock."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext_lazy as _

from backwave_django.conf import get_config
from backwave_django.models import Pump

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django_stubs_ext import StrPromise

#: Registry rows of dead pumps are purged after a day; a page shows no more than this anyway.
MOST_PUMPS = 500
#: The share of its lease that a pump may be silent for: by default it has missed two beats then.
LATE_AFTER = 2 / 3


class Pulse(StrEnum):
    """Whether a pump is alive, and whether it takes work."""

    LIVE = "live"
    LATE = "late"
    DEGRADED = "degraded"
    DRAINING = "draining"
    HALTED = "halted"
    STOPPED = "stopped"
    GONE = "gone"


PULSE_LABELS: dict[Pulse, StrPromise] = {
    Pulse.LIVE: _("live"),
    Pulse.LATE: _("late"),
    Pulse.DEGRADED: _("degraded"),
    Pulse.DRAINING: _("draining"),
    Pulse.HALTED: _("halted"),
    Pulse.STOPPED: _("stopped"),
    Pulse.GONE: _("gone"),
}
#: Pulses of pumps that claim jobs.
CLAIMING = frozenset({Pulse.LIVE, Pulse.LATE, Pulse.DEGRADED})


class PumpView(NamedTuple):
    """One pump with its pulse. ``silent`` is how long ago its last heartbeat was."""

    pump: Pump
    pulse: Pulse
    silent: timedelta
    lapses_at: datetime

    @property
    def claims(self) -> bool:
        """Whether this pump takes work."""
        return self.pulse in CLAIMING

    @property
    def label(self) -> StrPromise:
        """The pulse as people read it."""
        return PULSE_LABELS[self.pulse]

    def serves(self, queue: str) -> bool:
        """Tell whether this pump claims from ``queue``."""
        return self.claims and queue in self.pump.queues

    def knows(self, wire_name: str, version: int) -> bool:
        """Tell whether this pump can run jobs of that type with that payload version."""
        newest = dict(self.pump.wire_names).get(wire_name)
        return newest is not None and newest >= version


def view(pump: Pump, *, clock: datetime) -> PumpView:
    """Return ``pump`` as it is at the database's time ``clock``."""
    lease = timedelta(seconds=pump.lease_seconds)
    silent = max(clock - pump.seen_at, timedelta(0))
    return PumpView(pump, _pulse(pump, silent, lease), silent, pump.seen_at + lease)


def pump_views(*, clock: datetime, gone: bool = True) -> Sequence[PumpView]:
    """Return the pumps, those seen last first; without ``gone`` only those that are alive."""
    pumps = Pump.objects.using(get_config().database).order_by("-seen_at", "-id")
    views = [view(pump, clock=clock) for pump in pumps[:MOST_PUMPS]]
    return views if gone else [each for each in views if each.claims]


def pump_of(pump_id: UUID, *, clock: datetime) -> PumpView | None:
    """Return one pump, or ``None`` when its registry row was purged."""
    pump = Pump.objects.using(get_config().database).filter(pk=pump_id).first()
    return None if pump is None else view(pump, clock=clock)


def _pulse(pump: Pump, silent: timedelta, lease: timedelta) -> Pulse:
    if pump.health == Pulse.HALTED:
        return Pulse.HALTED
    if pump.stopped_at is not None:
        return Pulse.STOPPED
    if silent > lease:
        return Pulse.GONE
    if pump.health == Pulse.DRAINING or pump.drain_requested:
        return Pulse.DRAINING
    if pump.health == Pulse.DEGRADED:
        return Pulse.DEGRADED
    return Pulse.LATE if silent > lease * LATE_AFTER else Pulse.LIVE
