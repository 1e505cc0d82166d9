"""SQLite: its values, and a pump's own connection to it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections

from backwave_django.store.dialects.values import Values
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import timedelta

#: Changes nothing, and takes the write lock: a transaction that began by reading could not wait
#: for it later.
TAKE_WRITE_LOCK = Statement("DELETE FROM {settle} WHERE 0")

_PLAIN = frozenset({str, int, float, bool, type(None)})


class SqliteValues(Values):
    """Identifiers as 32 hexadecimal digits, instants as text, as Django keeps them; lists as JSON.

    ``zone`` is the zone that Django keeps instants in: UTC, unless the database's ``TIME_ZONE``
    says otherwise.
    """

    def __init__(self, zone: tzinfo | None = None) -> None:
        self._zone = UTC if zone is None else zone
        self._utc = self._zone is UTC or str(self._zone) == "UTC"

    def bound(self, parameters: Mapping[str, object]) -> Mapping[str, Any]:
        """Return ``parameters`` as sqlite3 wants them."""
        write = self.write
        return {
            name: value if type(value) in _PLAIN else write(value)
            for name, value in parameters.items()
        }

    def write(self, value: object) -> object:
        """Return ``value`` as SQLite keeps it."""
        if isinstance(value, UUID):
            return value.hex
        if isinstance(value, datetime):
            return str(value.astimezone(self._zone).replace(tzinfo=None))
        if isinstance(value, list | tuple):
            return json.dumps([self.write(each) for each in value])
        return str(value) if isinstance(value, str) else value

    def uuid(self, value: Any) -> UUID:
        """Return a stored identifier."""
        return UUID(value)

    def instant(self, value: Any) -> datetime:
        """Return a stored instant; Django's cursors have parsed those of plain columns."""
        if self._utc:
            if isinstance(value, str):
                return datetime.fromisoformat(value + "+00:00")
            parsed: datetime = value
            return parsed.replace(tzinfo=UTC)
        naive: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
        return naive.replace(tzinfo=self._zone).astimezone(UTC)


class SqlitePump:
    """A pump's own connection, made with the parameters that Django would use."""

    guards_statements = False
    vendor = "sqlite"

    def __init__(self, using: str, *, lease_duration: timedelta) -> None:
        self.using = using
        self._patience = lease_duration.total_seconds() / 6
        self._connection: sqlite3.Connection | None = None
        self._inside = False
        self._after: list[Callable[[], object]] = []
        self.values: Values = SqliteValues(connections[using].timezone)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take the write lock at once, and hold it for the block; inside it, a savepoint."""
        if self._inside:
            with self._savepoint():
                yield
            return
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        self._inside = True
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            self._after.clear()
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            self._inside = False
        self._run_callbacks()

    def relax(self) -> None:
        """Nothing: no setting was made."""

    def fetch(self, statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        """Run one statement and return its rows."""
        connection = self._connection or self._open()
        return connection.execute(statement.on("sqlite3"), self.values.bound(parameters)).fetchall()

    def execute(self, statement: Statement, parameters: Mapping[str, object]) -> int:
        """Run one statement and return how many rows it changed."""
        connection = self._connection or self._open()
        text = statement.on("sqlite3")
        return connection.execute(text, self.values.bound(parameters)).rowcount

    def execute_many(
        self, statement: Statement, parameters: Sequence[Mapping[str, object]]
    ) -> None:
        """Run one statement for each of ``parameters``."""
        if parameters:
            bound = [self.values.bound(each) for each in parameters]
            self._open().executemany(statement.on("sqlite3"), bound)

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` after the transaction, or now if there is none."""
        self._after.append(callback)
        if not self._inside:
            self._run_callbacks()

    def last_promise(self) -> Callable[[], object] | None:
        """Return the last callback that waits for the transaction."""
        return self._after[-1] if self._after else None

    def close(self) -> None:
        """Close the connection."""
        self.drop()

    def drop(self) -> None:
        """Close the connection; the next statement opens a new one."""
        connection, self._connection = self._connection, None
        self._inside = False
        self._after.clear()
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        run = self._open().execute
        run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            # What the part did is undone; the transaction goes on if the caller wants it to.
            with suppress(sqlite3.Error):
                run("ROLLBACK TO SAVEPOINT part")
            raise
        run("RELEASE SAVEPOINT part")

    def _run_callbacks(self) -> None:
        callbacks, self._after = self._after, []
        for callback in callbacks:
            callback()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connected()
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        wrapper = connections.create_connection(self.using)
        parameters = wrapper.get_connection_params()
        # Transactions are begun by hand, values are read by hand, and nobody waits past a sixth
        # of the lease, whatever patience the project's own requests have.
        parameters.update(isolation_level=None, detect_types=0, timeout=self._patience)
        connection: sqlite3.Connection = sqlite3.connect(**parameters)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            for command in getattr(wrapper, "init_commands", ()):
                if command.strip():
                    connection.execute(command)
        except BaseException:
            connection.close()
            raise
        return connection
