"""Which faults of a database time heals, told apart by class and SQLSTATE, never by message."""

from __future__ import annotations

import functools
import sqlite3
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from django.db import Error as DjangoError
from django.db import InterfaceError, OperationalError

from backwave_django.core.errors import StoreBroken, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from psycopg import DataError as _PsycopgDataError
    from psycopg import Error as _PsycopgError
    from psycopg import InterfaceError as _PsycopgInterfaceError
    from psycopg import OperationalError as _PsycopgOperationalError
except ImportError:  # SQLite needs no psycopg

    class _PsycopgError(Exception):  # type: ignore[no-redef]  # stands in for the absent driver
        """Never raised: psycopg is not installed."""

    class _PsycopgDataError(_PsycopgError):  # type: ignore[no-redef]  # as above
        """Never raised: psycopg is not installed."""

    class _PsycopgInterfaceError(_PsycopgError):  # type: ignore[no-redef]  # as above
        """Never raised: psycopg is not installed."""

    class _PsycopgOperationalError(_PsycopgError):  # type: ignore[no-redef]  # as above
        """Never raised: psycopg is not installed."""


#: Connection trouble, and resources that run out for a while (connections, memory, disk).
_TRANSIENT_CLASSES: Final = frozenset({"08", "53"})
_TRANSIENT_STATES: Final = frozenset(
    {
        "25006",  # read-only: a failover left us on a standby
        "25P03",  # idle in transaction for too long
        "25P04",  # transaction time-out
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock not available in time
        "57014",  # statement time-out
        "57P01",  # server stops
        "57P02",  # server crashed
        "57P03",  # server starts
        "57P05",  # idle session time-out
    }
)
#: The database read the statement and refuses a value in it.
_DATA_CLASSES: Final = frozenset({"22", "54"})
#: Primary codes (the low byte of an extended code): busy, locked, interrupted, full, protocol.
_SQLITE_TRANSIENT: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_PROTOCOL,
    }
)

DATABASE_ERRORS: Final = (DjangoError, _PsycopgError, sqlite3.Error)

#: States that have one cause in all likelihood, and what to do about it.
_PREPARED: Final = (
    "; a pooler of transactions sits in between: write "
    'BACKWAVE["POOLER"] = "transaction" and BACKWAVE["DIRECT_URL"]'
)
_ADVICE: Final = {"26000": _PREPARED, "42P05": _PREPARED}

_P = ParamSpec("_P")
_R = TypeVar("_R")


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE of ``error`` or of what it was raised from."""
    found: object = getattr(_origin(error), "sqlstate", None)
    return found if isinstance(found, str) else None


def is_transient(error: BaseException) -> bool:
    """Tell whether time heals ``error``."""
    origin = _origin(error)
    if isinstance(origin, sqlite3.Error):
        code: int | None = getattr(origin, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in _SQLITE_TRANSIENT
    state = sqlstate(origin)
    if state is not None:
        return state[:2] in _TRANSIENT_CLASSES or state in _TRANSIENT_STATES
    # Without a SQLSTATE it was the driver that noticed: the connection is gone or never came.
    lost = (_PsycopgOperationalError, _PsycopgInterfaceError, OperationalError, InterfaceError)
    return isinstance(origin, lost)


def is_refused_data(error: BaseException) -> bool:
    """Tell whether the database, or its driver, refuses a value as data."""
    origin = _origin(error)
    if isinstance(origin, UnicodeEncodeError | OverflowError | sqlite3.DataError):
        return True
    state = sqlstate(origin)
    if state is not None:
        return state[:2] in _DATA_CLASSES
    return isinstance(origin, _PsycopgDataError)


def is_duplicate(error: BaseException) -> bool:
    """Tell whether ``error`` says that a unique value is taken."""
    origin = _origin(error)
    if isinstance(origin, sqlite3.Error):
        return getattr(origin, "sqlite_errorcode", None) == sqlite3.SQLITE_CONSTRAINT_UNIQUE
    return sqlstate(origin) == "23505"


def is_deadlock(error: BaseException) -> bool:
    """Tell whether ``error`` says that two transactions waited for each other."""
    return sqlstate(error) == "40P01"


def translated(error: Exception) -> StoreError:
    """Return the store error that ``error`` means."""
    kind = StoreUnavailable if is_transient(error) else StoreBroken
    state = sqlstate(error)
    words = " ".join(str(error).split()) or type(_origin(error)).__name__
    return kind(f"{words} [{state}]{_ADVICE.get(state, '')}" if state else words)


def guarded(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let ``method`` raise ``StoreUnavailable`` or ``StoreBroken`` for a database's exceptions."""

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except DATABASE_ERRORS as error:
            raise translated(error) from error

    return call


def _origin(error: BaseException) -> BaseException:
    """The driver's own exception: Django wraps it and keeps it as the cause."""
    if isinstance(error, DjangoError | StoreError) and error.__cause__ is not None:
        return _origin(error.__cause__)
    return error
