"""How a pump shares its free slots between its queues.

Weighted dispatch is smooth weighted round robin: every slot given adds each queue's weight to its
credit, the richest queue takes the slot and pays the sum of all weights. Over any run of slots
the shares follow the weights, and no queue waits longer than one round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Share(NamedTuple):
    """Claim at most ``limit`` jobs from ``queues``, the first of which comes first."""

    queues: tuple[str, ...]
    limit: int


class Dispatcher:
    """Splits free slots into claims. Credit moves when a claim is issued, not when it is met."""

    def __init__(self, *, queues: tuple[str, ...], weights: Mapping[str, int] | None) -> None:
        self._queues = queues
        self._weights = weights
        self._credit = dict.fromkeys(queues, 0)

    def shares(self, free: int) -> tuple[Share, ...]:
        """Return the claims that fill ``free`` slots, every one of them offered to some queue."""
        if self._weights is None or len(self._queues) == 1:
            return (Share(self._queues, free),)
        slots = dict.fromkeys(self._queues, 0)
        for _ in range(free):
            slots[self._richest(self._weights)] += 1
        return tuple(
            Share((name, *(other for other in self._queues if other != name)), count)
            for name, count in slots.items()
            if count
        )

    def _richest(self, weights: Mapping[str, int]) -> str:
        for name in self._queues:
            self._credit[name] += weights[name]
        # max() takes the first of equals, so ties go in the order the queues were given.
        name = max(self._queues, key=self._credit.__getitem__)
        self._credit[name] -= sum(weights.values())
        return name
