"""A pump's own connection to PostgreSQL."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg
from django.db import connections

from backwave_django.store.dialects.arrays import write_lists_at_once
from backwave_django.store.dialects.values import Values
from backwave_django.store.dialects.wire import Wire, silent_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from psycopg.abc import PQGen

    from backwave_django.store.names import Statement

#: A plan over the whole backlog is never right for the hot statements. They are planned once for a
#: connection: planning takes longer than a small batch, and they leave the planner no choice that
#: depends on how full the tables are.
PLANNER: Final = {
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
}
_RELAX: Final = (
    b"SELECT set_config(s.name, s.reset_val, true) FROM pg_settings s WHERE s.name = ANY($1)"
)
_DJANGO_ONLY: Final = ("context", "cursor_factory", "prepare_threshold", "pool")
_SHORTEST_WAIT_MS: Final = 100
#: A server that is well gives a statement up before its client does, and says why.
_SERVERS_SHARE: Final = 0.8


class PatientConnection(psycopg.Connection[Any]):
    """A connection that gives the server up when it stays silent for ``patience_seconds``.

    A server that hangs, or a host that a firewall cut off, acknowledges what is sent or says
    nothing at all: its own time-outs do not come, and those of TCP come late or never. What was
    sent may still be carried out. The connection is good for nothing after that, but to be closed.
    """

    patience_seconds: float = 10.0

    def wait(self, gen: PQGen[Any], *args: Any, **kwargs: Any) -> Any:
        """Wait for what ``gen`` waits for. Raises ``OperationalError`` after the patience."""
        return super().wait(_patient(gen, self.patience_seconds), *args, **kwargs)


def _patient(gen: PQGen[Any], seconds: float) -> PQGen[Any]:
    """Pass ``gen`` on until the socket has been silent for too long."""
    send = gen.send
    try:
        wanted = next(gen)
        heard_at = time.perf_counter()
        while True:
            answer = yield wanted
            if answer:
                heard_at = time.perf_counter()
            elif time.perf_counter() - heard_at > seconds:
                raise silent_for(seconds)
            wanted = send(answer)
    except StopIteration as done:
        return done.value


class PostgresPump:
    """A pump's own connection, made with the parameters that Django would use.

    Prepared statements, binary values, and settings for the hot statements. ``pooler`` says that
    a transaction pooler sits in between: settings are then made in each transaction anew, and
    nothing is prepared.
    """

    guards_statements = False
    vendor = "postgresql"

    def __init__(
        self,
        using: str,
        *,
        application_name: str,
        lease_duration: timedelta,
        pooler: bool = False,
    ) -> None:
        self.using = using
        self._application_name = application_name
        self._patience_ms = max(int(lease_duration.total_seconds() * 1000 / 6), _SHORTEST_WAIT_MS)
        self._pooler = pooler
        self._connection: psycopg.Connection[Any] | None = None
        self._wire: Wire | None = None
        self._inside = False
        self._after: list[Callable[[], object]] = []
        self.values = Values()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction around the block; inside another one, a savepoint."""
        if self._inside:
            with self._savepoint():
                yield
            return
        wire = self._wire or self._open()
        wire.command(b"BEGIN")
        self._inside = True
        try:
            if self._pooler:
                self._make_settings(wire, local=True)
            yield
            wire.command(b"COMMIT")
        except BaseException:
            self._after.clear()
            with suppress(psycopg.Error):
                wire.command(b"ROLLBACK")
            raise
        finally:
            self._inside = False
        self._run_callbacks()

    def relax(self) -> None:
        """Undo the planner's settings until the transaction ends."""
        # RESET knows no LOCAL, and this is one statement where SET would be one for each.
        self._open().rows(_RELAX, [list(PLANNER)])

    def fetch(self, statement: Statement, parameters: Mapping[str, object]) -> list[Any]:
        """Run one statement and return its rows."""
        if self._pooler and not self._inside:
            with self.transaction():
                return self.fetch(statement, parameters)
        wire = self._wire or self._open()
        return wire.rows(statement.numbered, [parameters[name] for name in statement.names])

    def execute(self, statement: Statement, parameters: Mapping[str, object]) -> int:
        """Run one statement and return how many rows it changed."""
        if self._pooler and not self._inside:
            with self.transaction():
                return self.execute(statement, parameters)
        wire = self._wire or self._open()
        return wire.changed(statement.numbered, [parameters[name] for name in statement.names])

    def execute_many(
        self, statement: Statement, parameters: Sequence[Mapping[str, object]]
    ) -> None:
        """Run one statement for each of ``parameters``."""
        if parameters:
            names = statement.names
            wire = self._wire or self._open()
            wire.many(statement.numbered, [[each[name] for name in names] for each in parameters])

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
        wire, self._wire = self._wire, None
        self._inside = False
        self._after.clear()
        if wire is not None:
            wire.close()
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                connection.close()

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        run = self._open().command
        run(b"SAVEPOINT part")
        try:
            yield
        except BaseException:
            # What the part did is undone; the transaction goes on if the caller wants it to.
            with suppress(psycopg.Error):
                run(b"ROLLBACK TO SAVEPOINT part")
            raise
        run(b"RELEASE SAVEPOINT part")

    def _run_callbacks(self) -> None:
        callbacks, self._after = self._after, []
        for callback in callbacks:
            callback()

    def _open(self) -> Wire:
        if self._wire is None:
            self._connection = connection = self._connected()
            wire = Wire(
                connection,
                patience_seconds=self._patience_ms / 1000,
                prepares=not self._pooler,
            )
            # From here on ``drop`` closes it, also if it cannot be set up.
            self._wire = wire
            if not self._pooler:
                try:
                    self._make_settings(wire, local=False)
                except BaseException:
                    self.drop()  # nobody may use it as it is
                    raise
        return self._wire

    def _connected(self) -> psycopg.Connection[Any]:
        wrapper = connections.create_connection(self.using)
        parameters = wrapper.get_connection_params()
        for name in _DJANGO_ONLY:
            parameters.pop(name, None)
        seconds = max(self._patience_ms // 1000, 1)
        parameters.update(
            autocommit=True,
            application_name=self._application_name,
            connect_timeout=max(seconds, 2),  # libpq knows no shorter one
            keepalives=1,
            keepalives_idle=seconds,
            keepalives_interval=max(seconds // 3, 1),
            keepalives_count=3,
            tcp_user_timeout=self._patience_ms,
            prepare_threshold=None if self._pooler else 0,
        )
        connection = PatientConnection.connect(**parameters)
        connection.patience_seconds = self._patience_ms / 1000
        connection.prepared_max = 400
        write_lists_at_once(connection)
        return connection

    def _make_settings(self, wire: Wire, *, local: bool) -> None:
        patience = f"{int(self._patience_ms * _SERVERS_SHARE)}ms"
        settings = {
            **PLANNER,
            "TimeZone": "UTC",
            "lock_timeout": patience,
            "statement_timeout": patience,
            "idle_in_transaction_session_timeout": patience,
        }
        role = connections[self.using].settings_dict["OPTIONS"].get("assume_role")
        if role:
            settings["role"] = role
        calls = ", ".join(
            f"set_config(${3 * number + 1}, ${3 * number + 2}, ${3 * number + 3})"
            for number in range(len(settings))
        )
        values = [part for name, value in settings.items() for part in (name, value, local)]
        wire.rows(f"SELECT {calls}".encode(), values)
