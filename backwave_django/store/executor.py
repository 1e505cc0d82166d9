"""How statements reach a database.

An executor knows no verb of the contract. It runs statements, makes transactions, and turns
values into what its database keeps and back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from backwave_django.store.dialects.values import Values
    from backwave_django.store.names import Statement

Row = tuple[Any, ...]


class Executor(Protocol):
    """Runs statements on one connection. Used by one thread at a time."""

    #: The alias of the database.
    using: str
    #: ``postgresql`` or ``sqlite``.
    vendor: str
    #: Whether a failing statement may spoil a transaction that is not ours.
    guards_statements: bool
    #: How values are written and read.
    values: Values

    def transaction(self) -> AbstractContextManager[None]:
        """Commit what happens inside, or nothing; inside another one, be a savepoint of it."""

    def relax(self) -> None:
        """Let the planner plan for this transaction as the server is set up to."""

    def fetch(self, statement: Statement, parameters: Mapping[str, object]) -> list[Row]:
        """Run one statement and return its rows."""

    def execute(self, statement: Statement, parameters: Mapping[str, object]) -> int:
        """Run one statement and return how many rows it changed."""

    def execute_many(
        self, statement: Statement, parameters: Sequence[Mapping[str, object]]
    ) -> None:
        """Run one statement for each of ``parameters``, in few round trips."""

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once what was written is visible to others; never if it is not."""

    def last_promise(self) -> Callable[[], object] | None:
        """Return what was last given to ``on_commit`` in this transaction, and waits still."""

    def close(self) -> None:
        """Close the connection for good."""

    def drop(self) -> None:
        """Forget a connection that may be broken; the next statement opens a new one."""
