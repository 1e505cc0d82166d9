"""How far running bodies say they are, until the next heartbeat takes it along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backwave_django.core.leases import Progress
from backwave_django.pumps.failures import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

MAX_MESSAGE_CHARS: Final = 200


class ProgressBoard:
    """The last word of each running body. Bodies write, the pump takes; safe from any thread."""

    def __init__(self) -> None:
        self._notes: dict[UUID, Progress] = {}

    def note(self, lease_id: UUID, done: int, total: int | None, message: str) -> None:
        """Replace what the body said before."""
        self._notes[lease_id] = Progress(
            lease_id=lease_id,
            done=int(done),
            total=None if total is None else int(total),
            message=clean(str(message))[:MAX_MESSAGE_CHARS],
        )

    def take(self) -> tuple[Progress, ...]:
        """Return what is new since the last time."""
        taken = []
        for lease_id in tuple(self._notes):
            note = self._notes.pop(lease_id, None)
            if note is not None:
                taken.append(note)
        return tuple(taken)

    def put_back(self, notes: Sequence[Progress]) -> None:
        """Keep what a failed heartbeat did not deliver, unless the body has said more since."""
        for note in notes:
            self._notes.setdefault(note.lease_id, note)

    def forget(self, lease_id: UUID) -> None:
        """Drop the last word of a body that ended."""
        self._notes.pop(lease_id, None)
