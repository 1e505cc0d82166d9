"""What one pump holds: bodies that run, and outcomes that no store has taken yet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.commands import CancelReason
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.core.outcomes import Outcome


@dataclass(slots=True)
class Attempt:
    """A body in a slot.

    ``void``: whatever it still does counts for nothing, because its lease is lost, or because its
    outcome was decided without it. A void body keeps its slot until it ends or is replaced.
    """

    job: LeasedJob
    started_at: datetime
    timeout_at: datetime | None = None
    signalled: CancelReason | None = None
    void: bool = False
    replace_at: datetime | None = None


class Holdings:
    """The bodies and outcomes of one pump.

    Between steps: a lease is in ``running`` (not void), or in ``buffered``, or in neither; never
    in both but for a void body whose outcome was decided without it.
    """

    def __init__(self, *, pool_size: int) -> None:
        self._pool_size = pool_size
        self.running: dict[UUID, Attempt] = {}
        self.buffered: dict[UUID, Outcome] = {}
        self.busy: dict[UUID, Outcome] = {}
        #: Leases of bodies that run on although their slots were given to others.
        self.replaced: set[UUID] = set()

    def landed(self, lease_id: UUID) -> Attempt | None:
        """Take a body that ended out of its slot; ``None`` if it holds none any more."""
        attempt = self.running.pop(lease_id, None)
        if attempt is None:
            self.replaced.discard(lease_id)
        return attempt

    def free(self, *, leaving: int = 0, reserved: int = 0) -> int:
        """Return how many jobs fit in, once ``leaving`` buffered outcomes are gone.

        Buffered outcomes hold their slots, so that a store that is down is not asked for more.
        Those that are busy do not, as long as there are no more of them than slots.
        """
        waiting = len(self.buffered) - leaving + max(0, len(self.busy) - self._pool_size)
        return max(0, self._pool_size - len(self.running) - waiting - reserved)

    def leases(self) -> tuple[UUID, ...]:
        """Return every lease that is worth renewing."""
        live = [lease_id for lease_id, attempt in self.running.items() if not attempt.void]
        return (*live, *self.buffered, *self.busy)

    def held(self) -> tuple[UUID, ...]:
        """Return every lease this pump knows of, void ones included."""
        return tuple(dict.fromkeys((*self.running, *self.buffered, *self.busy)))

    def live(self) -> Iterator[Attempt]:
        """Iterate over the bodies whose end still counts."""
        return (attempt for attempt in self.running.values() if not attempt.void)

    def batch(self, size: int) -> tuple[Outcome, ...]:
        """Return the oldest ``size`` outcomes that are not busy."""
        return tuple(islice(self.buffered.values(), size))

    def empty(self) -> bool:
        """Tell whether nothing is left whose end counts."""
        return not (self.buffered or self.busy or any(True for _ in self.live()))
