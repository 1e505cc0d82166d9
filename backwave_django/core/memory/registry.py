"""The registry of pumps, and the heartbeat that keeps it and the leases alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.leases import (
    BeatAnswer,
    LeaseHealth,
    PumpHealth,
    PumpStatus,
    Renewal,
)
from backwave_django.core.memory.rows import PumpRow

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.leases import Beat, PumpInfo
    from backwave_django.core.memory.tables import Tables


def register(tables: Tables, pump: PumpInfo, *, now: datetime) -> datetime:
    """Write the registry row anew; see the contract."""
    known = tables.pumps.get(pump.id)
    tables.pumps[pump.id] = PumpRow(
        info=pump,
        status=PumpStatus(),
        health=PumpHealth.HEALTHY,
        problem="",
        seen_at=now,
        drain_requested=known is not None and known.drain_requested,
    )
    return tables.clock()


def retire(tables: Tables, *, pump_id: UUID, problem: str, now: datetime) -> None:
    """Note that the pump is gone; see the contract."""
    pump = tables.pumps.get(pump_id)
    if pump is not None:
        pump.health = PumpHealth.HALTED if problem else PumpHealth.STOPPED
        pump.problem = problem
        pump.stopped_at = now


def heartbeat(tables: Tables, beat: Beat, *, now: datetime) -> BeatAnswer:
    """Renew leases and exchange news; see the contract."""
    renewals = tuple(_renew(tables, lease_id, beat, now=now) for lease_id in beat.leases)
    _note_progress(tables, beat, {row.lease_id for row in renewals if _is_renewed(row)})
    owned = [lease.id for lease in tables.leases.values() if lease.pump_id == beat.pump_id]
    pump = tables.pumps.get(beat.pump_id)
    if pump is not None:
        pump.seen_at = now
        pump.status = beat.status
        pump.health = beat.status.health
        pump.problem = beat.status.problem
    return BeatAnswer(
        renewals=renewals,
        unlisted=tuple(lease_id for lease_id in owned if lease_id not in beat.leases),
        drain_requested=pump is not None and pump.drain_requested,
        registered=pump is not None,
        clock=tables.clock(),
    )


def _renew(tables: Tables, lease_id: UUID, beat: Beat, *, now: datetime) -> Renewal:
    lease = tables.leases.get(lease_id)
    if lease is None or lease.pump_id != beat.pump_id:
        return Renewal(lease_id, LeaseHealth.LOST)
    if tables.is_held(lease_id):
        return Renewal(lease_id, LeaseHealth.BUSY, lease.cancel_requested)
    lease.expires_at = now + beat.lease_duration
    return Renewal(lease_id, LeaseHealth.RENEWED, lease.cancel_requested)


def _is_renewed(row: Renewal) -> bool:
    return row.health is LeaseHealth.RENEWED


def _note_progress(tables: Tables, beat: Beat, renewed: set[UUID]) -> None:
    """Keep what attempts say of themselves, as far as their leases still are this pump's."""
    for progress in beat.progress:
        if progress.lease_id in renewed:
            lease = tables.leases[progress.lease_id]
            lease.progress = (progress.done, progress.total, progress.message)
