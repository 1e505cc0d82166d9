"""The connections on which hints arrive from other processes."""

from __future__ import annotations

import copy
import logging
import os
import selectors
import socket
import sqlite3
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from django.db import connections
from django.db.utils import load_backend

from backwave_django.jobs.ids import new_id
from backwave_django.store.hints import CHANNEL, Hint, decode, is_probe, probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

logger = logging.getLogger("backwave.pump")

FIRST_BACKOFF_SECONDS: Final = 0.5
MOST_BACKOFF_SECONDS: Final = 10.0
WATCH_SECONDS: Final = 0.05
#: How long a silent connection is trusted before the server is asked whether it is still there.
SILENCE_SECONDS: Final = 60.0
#: How long a hint may take from this process to itself; it takes a millisecond.
PROBE_SECONDS: Final = 5.0
#: So that a connection is noticed to be dead when the other side cannot say so.
_NOT_FOR_EVER: Final = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class PostgresListener:
    """One LISTEN connection: never in a transaction, never pooled, never shared with jobs."""

    def __init__(self, *, using: str, direct_url: str | None = None) -> None:
        self._using = using
        self._direct_url = direct_url
        self._closed = threading.Event()
        #: Whether anything was ever heard, or its absence complained of.
        self._proven = False
        #: What came with the answer to a statement.
        self._beside: deque[psycopg.Notify] = deque()
        # Writing to one end wakes the thread that waits for the database and for the other.
        self._waking, self._wake = socket.socketpair()

    def close(self) -> None:
        """Let ``run`` return at once."""
        self._closed.set()
        with suppress(OSError):  # it has returned before
            self._wake.send(b".")

    def run(self, tell: Callable[[Hint], None]) -> None:
        """Listen until closed; connect anew, ever more patiently, when the connection is lost.

        Whatever was said meanwhile is lost: after a reconnection everybody looks once.
        """
        import psycopg  # noqa: PLC0415 - only PostgreSQL needs it

        backoff, lost = FIRST_BACKOFF_SECONDS, False
        try:
            while not self._closed.is_set():
                try:
                    with self._connected() as connection:
                        if lost:
                            logger.info("listening for hints again")
                            tell(Hint(None))
                        backoff, lost = FIRST_BACKOFF_SECONDS, False
                        self._listen(connection, tell)
                except psycopg.Error as error:
                    if not lost:
                        logger.warning("the connection for hints is lost: %s", error)
                    lost = True
                    self._closed.wait(backoff)
                    backoff = min(backoff * 2, MOST_BACKOFF_SECONDS)
        finally:
            self._waking.close()
            self._wake.close()

    def _listen(self, connection: psycopg.Connection[Any], tell: Callable[[Hint], None]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            connection.add_notify_handler(self._beside.append)
            selector.register(self._waking, selectors.EVENT_READ)
            self._proven = self._proven or not self._sent_probe()
            encoding = connection.info.encoding
            while not self._closed.is_set():
                if not selector.select(SILENCE_SECONDS if self._proven else PROBE_SECONDS):
                    self._hears_nothing(connection)
                for payload in self._heard(connection, encoding):
                    self._proven = True
                    if not is_probe(payload):
                        tell(decode(payload))

    def _heard(self, connection: psycopg.Connection[Any], encoding: str) -> Iterator[str]:
        """Iterate over what has arrived. Raises ``OperationalError`` if nobody is there any more.

        Straight from libpq: psycopg's own iterator polls the socket twice more for each message.
        """
        server = connection.pgconn
        server.consume_input()
        while notice := server.notifies():
            yield notice.extra.decode(encoding, errors="replace")
        while self._beside:
            yield self._beside.popleft().payload

    def _hears_nothing(self, connection: psycopg.Connection[Any]) -> None:
        """Find out whether the connection is dead, or was never told anything."""
        connection.execute("SELECT 1")
        if not self._proven:
            self._proven = True
            logger.warning(
                "hints do not arrive: pumps find new jobs by polling only. What is announced on "
                "DATABASES[%r] is not heard on %s. Behind a pooler of transactions write "
                'BACKWAVE["POOLER"] = "transaction" and BACKWAVE["DIRECT_URL"]',
                self._using,
                "the same" if self._direct_url is None else 'BACKWAVE["DIRECT_URL"]',
            )

    def _connected(self) -> psycopg.Connection[Any]:
        connection = _connected(_parameters(self._using, direct_url=self._direct_url))
        connection.execute(f'LISTEN "{CHANNEL}"')
        return connection

    def _sent_probe(self) -> bool:
        """Announce a word to this process, the way that all hints go; tell whether it is out."""
        import psycopg  # noqa: PLC0415 - only PostgreSQL needs it

        try:
            with _connected(_parameters(self._using)) as connection:
                connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, probe(new_id().hex)])
        except psycopg.Error:  # the pumps will complain of the same
            return False
        return True


class FileWatch:
    """Looks whether another connection has written to a SQLite file: one number, no lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._closed = threading.Event()

    @classmethod
    def of(cls, *, using: str) -> Self | None:
        """Return the watch of a database, or ``None`` when it is not a file."""
        name = Path(str(connections[using].settings_dict["NAME"]))
        return cls(name) if name.is_file() else None

    def close(self) -> None:
        """Let ``run`` return at once."""
        self._closed.set()

    def run(self, tell: Callable[[Hint], None]) -> None:
        """Watch until closed."""
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=0)
        try:
            seen = _version(connection)
            while not self._closed.wait(WATCH_SECONDS):
                version = _version(connection)
                if version is not None and version != seen:
                    seen = version
                    tell(Hint(None))
        finally:
            connection.close()


def _version(connection: sqlite3.Connection) -> int | None:
    try:
        row = connection.execute("PRAGMA data_version").fetchone()
    except sqlite3.OperationalError:
        return None  # busy, or being recovered: the next look will tell
    return int(row[0])


def _connected(parameters: dict[str, Any]) -> psycopg.Connection[Any]:
    # Here, because a project on SQLite has no psycopg.
    from backwave_django.store.dialects.postgresql import PatientConnection  # noqa: PLC0415

    return PatientConnection.connect(**parameters, autocommit=True)


def _parameters(using: str, *, direct_url: str | None = None) -> dict[str, Any]:
    """Return what Django would connect with, less what is Django's own and the pool."""
    name = {"application_name": f"backwave:hints:{os.getpid()}"}
    if direct_url is not None:
        return {"conninfo": direct_url, **_NOT_FOR_EVER, **name}
    settings = copy.deepcopy(connections[using].settings_dict)
    settings["OPTIONS"].pop("pool", None)
    wrapper = load_backend(settings["ENGINE"]).DatabaseWrapper(settings, using)
    parameters: dict[str, Any] = wrapper.get_connection_params()
    for own in ("context", "cursor_factory", "prepare_threshold"):
        parameters.pop(own, None)
    return {**_NOT_FOR_EVER, **parameters, **name}
