"""Database connections of attempts: nothing of one attempt reaches the next.

Django's connections belong to threads. A worker thread gives its own back after every attempt,
whatever the body did to them.
"""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from django.db import connections

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("backwave.job")

#: How long a server may take to end a session; it takes a millisecond.
_GOODBYE_SECONDS: Final = 0.25
_GOODBYE_BYTES: Final = 4096


def close_connections() -> None:
    """Close what this thread has open, and forget it: the next use starts from the settings.

    A transaction that was left open is rolled back. Raises nothing.
    """
    for connection in connections.all(initialized_only=True):
        _drop(connection)


def keep_healthy_connections() -> None:
    """Close what this thread has open unless it can be made as good as new. Raises nothing."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None and _is_clean(connection) and _is_reset(connection):
            connection.queries_log.clear()
        else:
            _drop(connection)


def _drop(connection: BaseDatabaseWrapper) -> None:
    try:
        if connection.connection is not None and getattr(connection, "pool", None):
            if connection.errors_occurred:
                # Whose server became a standby would be handed out for ever: the pool makes anew.
                connection.connection.close()
            else:
                with suppress(Exception):  # one that does not obey is closed
                    _reset(connection)
            # In any case: the pool counts what does not come back as handed out, for ever.
            connection.close()
        else:
            _end_session(connection)
    except Exception:  # a broken connection breaks here; it is let go all the same
        logger.debug("a connection to %r did not close", connection.alias, exc_info=True)
    finally:
        # The wrapper goes too: it may still believe in a transaction that the body left open.
        del connections[connection.alias]


def _end_session(connection: BaseDatabaseWrapper) -> None:
    """Close a connection, and wait a moment until the server's side of it is gone as well.

    Without that the next attempt would open a session beside one that is on its way out, and a
    server would see more of them than there are workers.
    """
    raw = connection.connection
    if raw is None or connection.vendor != "postgresql":
        connection.close()
        return
    with socket.socket(fileno=os.dup(raw.fileno())) as other_end:
        connection.close()
        other_end.settimeout(_GOODBYE_SECONDS)
        with suppress(OSError):
            while other_end.recv(_GOODBYE_BYTES):
                continue


def _is_clean(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block or connection.errors_occurred:
        return False
    try:
        if _in_transaction(connection.connection) or not connection.get_autocommit():
            return False
        if connection.settings_dict["CONN_MAX_AGE"] == 0:
            connection.close_at = None  # zero is for requests: here it would keep nothing
        connection.close_if_unusable_or_obsolete()
    except Exception:  # whatever is wrong with it, it is not clean
        return False
    return connection.connection is not None


def _in_transaction(raw: Any) -> bool:
    """Whether the driver's connection is inside a transaction that Django may not know of."""
    if hasattr(raw, "in_transaction"):
        return bool(raw.in_transaction)
    status = getattr(getattr(raw, "info", None), "transaction_status", 0)
    return bool(status)


def _is_reset(connection: BaseDatabaseWrapper) -> bool:
    """Undo what a body may have set in its session; false when that is not to be had."""
    if connection.vendor == "postgresql" and not getattr(connection, "pool", None):
        try:
            _reset(connection)
        except Exception:  # whatever is wrong with it, it is not as good as new
            return False
    return True


def _forgetting(connection: BaseDatabaseWrapper) -> Any:
    """Return what makes a session forget all that was set in it, in one round trip.

    The time zone is among it: asked for by itself, it would take a second one.
    """
    from psycopg import sql  # noqa: PLC0415 - a project on SQLite has no psycopg

    words = "RESET SESSION AUTHORIZATION; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all()"
    zone = connection.timezone_name
    if not zone:
        return sql.SQL(words)
    return sql.SQL(words + "; SELECT set_config('TimeZone', {}, false)").format(sql.Literal(zone))


def _reset(connection: BaseDatabaseWrapper) -> None:
    """Undo a session's settings before another attempt gets its connection.

    What Django set at the start is set again; a connection that does not obey is closed.
    """
    from psycopg import ClientCursor  # noqa: PLC0415 - a project on SQLite has no psycopg

    raw = connection.connection
    try:
        raw.rollback()
        raw.autocommit = True
        # Whatever cursors the project has: only a statement that is not prepared may be several.
        ClientCursor(raw).execute(_forgetting(connection))
        configure = getattr(connection, "_configure_connection", None)
        if configure is not None:
            configure(raw)
    except Exception:
        with suppress(Exception):
            raw.close()
        raise
