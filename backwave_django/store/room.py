"""What every verb of the store works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from backwave_django.store.lanes import LaneMemory
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import StoreSettings
    from backwave_django.store.chores import Look
    from backwave_django.store.executor import Executor, Row

_CLOCK: Final = Statement("SELECT {clock}")


@dataclass(slots=True, kw_only=True)
class Room:
    """One executor and the numbers and factories that its verbs need.

    ``fixed_clock`` replaces the database's clock; ``exact`` turns off everything that may pass
    over a due job for a moment.
    """

    executor: Executor
    settings: StoreSettings
    new_id: Callable[[], UUID]
    fixed_clock: Callable[[], datetime] | None = None
    exact: bool = False
    hints: bool = True
    lanes: LaneMemory = field(default_factory=LaneMemory)
    #: The last look at the chores. Whoever makes a new chore through this room forgets it.
    look: Look | None = None
    #: The clock of the last answer that carried one.
    last_clock: datetime | None = None

    def fetch_alone(self, statement: Statement, parameters: Mapping[str, object]) -> list[Row]:
        """Run a statement that may be refused; it spoils no transaction of the caller's."""
        if not self.executor.guards_statements:
            return self.executor.fetch(statement, parameters)
        with self.executor.transaction():
            return self.executor.fetch(statement, parameters)

    def clock(self) -> datetime:
        """Return the database's clock."""
        if self.fixed_clock is not None:
            return self.fixed_clock()
        return self.told(self.executor.fetch(_CLOCK, {})[0][0])

    def told(self, value: object) -> datetime:
        """Return the clock that came with an answer of the database."""
        if self.fixed_clock is not None:
            return self.fixed_clock()
        self.last_clock = self.executor.values.instant(value)
        return self.last_clock
