"""How long terminal jobs and the records about them are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backwave_django.core.states import JobState

if TYPE_CHECKING:
    from datetime import datetime

WEEK = timedelta(days=7)
MONTH = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Ages after which a purge may delete. ``None`` keeps for ever."""

    succeeded: timedelta | None = WEEK
    cancelled: timedelta | None = WEEK
    expired: timedelta | None = WEEK
    dead_lettered: timedelta | None = MONTH
    quarantined: timedelta | None = MONTH
    operator_actions: timedelta | None = timedelta(days=365)
    dead_pumps: timedelta | None = timedelta(days=1)

    def horizons(self, *, now: datetime) -> tuple[tuple[JobState, datetime], ...]:
        """Return, per terminal state that is purged at all, the instant before which it goes."""
        ages = (
            (JobState.SUCCEEDED, self.succeeded),
            (JobState.CANCELLED, self.cancelled),
            (JobState.EXPIRED, self.expired),
            (JobState.DEAD_LETTERED, self.dead_lettered),
            (JobState.QUARANTINED, self.quarantined),
        )
        return tuple((state, now - age) for state, age in ages if age is not None)
