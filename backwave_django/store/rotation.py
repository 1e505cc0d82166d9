"""A pump's way round the limit keys of its queues, while they are more than one claim looks at.

Each claim looks at the keys after the cursor, and so on round and round. A round in which nothing
was found is remembered until it is over: only then is it known that nothing can start, and when
something may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


@dataclass(slots=True)
class Rotation:
    """One fruitless round. Nothing in it is needed for correctness."""

    queues: frozenset[str] = frozenset()
    began: str | None = None
    next_due: datetime | None = None

    def reset(self) -> None:
        """Begin anew: something was found, or all keys were in sight."""
        self.began = self.next_due = None

    def is_over(
        self,
        queues: Iterable[str],
        *,
        cursor: str,
        reached: str,
        next_due: datetime | None,
    ) -> bool:
        """Take in that a claim found nothing from ``cursor`` to ``reached``; end the round there.

        ``next_due`` is what it saw; once the round is over, that of the rotation is of all of it.
        """
        first = self.began is None or self.queues != frozenset(queues)
        if first:
            self.queues, self.began, self.next_due = frozenset(queues), cursor, next_due
        elif next_due is not None:
            self.next_due = min(self.next_due or next_due, next_due)
        began = self.began or ""
        if reached != began and (
            first or in_round(reached, after=began) > in_round(cursor, after=began)
        ):
            return False
        self.began = None
        return True


def in_round(key: str, *, after: str) -> tuple[bool, str]:
    """Return where a key stands in a round that begins after ``after``."""
    return key <= after, key
