"""The end of an atomic body: its outcome in the transaction that holds what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import JobState
from backwave_django.store.applied import Fence
from backwave_django.store.names import Statement
from backwave_django.store.outcomes import apply_and_settle

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.core.outcomes import Outcome, Reported
    from backwave_django.store.room import Room

_WAITING: Final = Fence(waits=True)
_PATIENCE: Final = Statement("SELECT set_config('lock_timeout', %(patience)s, true)")
_RECORDED: Final = Statement(
    """
SELECT EXISTS (SELECT 1 FROM {outcome} o
    WHERE o.job_id = %(job)s AND o.run = %(run)s AND o.kind = %(kind)s)
  OR EXISTS (SELECT 1 FROM {job} j
    WHERE j.id = %(job)s AND j.run = %(run)s AND j.state = %(state)s)
"""
)


def report_inside(
    room: Room, outcome: Outcome, *, patience: timedelta | None, now: datetime
) -> Reported:
    """Apply a success in the transaction that is open; unless it is ``applied``, roll that back.

    A value that the database refuses raises: what is left of the outcome must not be committed
    with what the body wrote. With ``patience`` no lock is waited for any longer.
    """
    if patience is not None and room.executor.vendor == "postgresql":
        milliseconds = f"{int(patience.total_seconds() * 1000)}ms"
        room.executor.fetch(_PATIENCE, {"patience": milliseconds})
    (row,), _clock = apply_and_settle(room, [outcome], fence=_WAITING, now=now)
    return row


def is_recorded(room: Room, *, job_id: UUID, run: int) -> bool:
    """Tell whether a run of a job has succeeded.

    The job says so as well as its history, which may be switched off.
    """
    parameters = {
        "job": job_id,
        "run": run,
        "kind": OutcomeKind.SUCCEEDED.value,
        "state": JobState.SUCCEEDED.value,
    }
    return bool(room.executor.fetch(_RECORDED, parameters)[0][0])
