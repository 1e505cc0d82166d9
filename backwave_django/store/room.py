"""What every verb of the store works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from backwave_django.store.faults import DATABASE_ERRORS, is_deadlock
from backwave_django.store.lanes import LaneMemory
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import StoreSettings
    from backwave_django.store.chores import Look
    from backwave_django.store.executor import Executor, Row

T = TypeVar("T")

#: Whatever is in the way may have changed each time it is looked at. Where many fight for a few
#: keys that happens three times in a row, to somebody who asked for nothing but to enqueue.
_TRIES: Final = 10

#: A server takes a second to notice one.
_MOST_DEADLOCKS: Final = 3

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
    #: The last look at the chores.
    look: Look | None = None
    #: The clock of the last answer that carried one.
    last_clock: datetime | None = None

    def tried(self, act: Callable[[bool], T], *, again_on: type[Exception]) -> T:
        """Return what ``act`` returns in a transaction, or raise what it raises at last.

        After ``again_on`` all is undone, and it is called again with what is true by then. It is
        told whether this is the last time. So it is after a deadlock, which lets the others go on;
        but one with what the caller's own transaction holds does not end by that.
        """
        deadlocks_left = _MOST_DEADLOCKS
        for tries_left in reversed(range(_TRIES)):
            try:
                with self.executor.transaction():
                    return act(tries_left == 0)
            except again_on:
                if not tries_left:
                    raise
            except DATABASE_ERRORS as error:
                deadlocks_left -= 1
                if not (tries_left and deadlocks_left and is_deadlock(error)):
                    raise
        raise AssertionError("the last try returns or raises")

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
