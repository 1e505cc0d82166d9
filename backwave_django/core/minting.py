"""When a pump looks at schedules, and what it does about those that have come due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.bounds import MINT_BATCH, SCHEDULE_BATCH
from backwave_django.core.commands import LoadSchedules, Mint
from backwave_django.core.schedules import decide

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backwave_django.core.commands import StoreCommand
    from backwave_django.core.schedule_answers import SchedulesAnswer

LOAD = LoadSchedules(limit=SCHEDULE_BATCH)


class Minting:
    """The schedules as one pump last saw them, boiled down to when the next of them ticks.

    ``known`` maps the wire names that this process can run to the newest payload version of
    each: it mints for those. ``None`` leaves schedules to others.
    """

    def __init__(self, *, known: Mapping[str, int] | None) -> None:
        self._known = known
        self._next_at: datetime | None = None

    @property
    def look_at(self) -> datetime | None:
        """When the next tick comes that this pump knows of."""
        return self._next_at

    def due(self, *, upkeep: bool, now: datetime) -> tuple[LoadSchedules, ...]:
        """Return the command to look at schedules, when it is time; with ``upkeep`` it is."""
        ticks = self._next_at is not None and self._next_at <= now
        if self._known is None or not (upkeep or ticks):
            return ()
        self._next_at = None
        return (LOAD,)

    def loaded(
        self, asked: LoadSchedules, answer: SchedulesAnswer, *, now: datetime
    ) -> tuple[StoreCommand, ...]:
        """Return what follows from the schedules that were read: mints, and the next to read."""
        decisions = []
        for schedule in answer.schedules:
            decision = decide(schedule, now=now, known=self._known)
            next_at = schedule.next_at if decision is None else decision.next_at
            if decision is not None:
                decisions.append(decision)
            # What is due and was left to others would have this pump look all the time.
            if next_at is not None and next_at > now:
                self._next_at = min(self._next_at or next_at, next_at)
        mints = [
            Mint(decisions=tuple(decisions[begin : begin + MINT_BATCH]))
            for begin in range(0, len(decisions), MINT_BATCH)
        ]
        if not answer.full:
            return tuple(mints)
        return (*mints, LoadSchedules(limit=asked.limit, after=answer.schedules[-1].name))
