"""A bound on what one page may cost: after three seconds its statement is given up."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import OperationalError, transaction

from backwave_django.monitor.clock import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

PATIENCE_SECONDS: Final = 3
#: SQLite counts the steps of its virtual machine, about 20 million of which take a second.
_STEPS_PER_CALL: Final = 1_000_000
_MOST_CALLS: Final = 20 * PATIENCE_SECONDS
_QUERY_CANCELED: Final = "57014"


class TookTooLong(Exception):
    """The statements inside ``patience`` were given up."""


@contextmanager
def patience() -> Iterator[None]:
    """Give up the read statements inside after ``PATIENCE_SECONDS``: raises ``TookTooLong``."""
    here = connection()
    limited = _on_sqlite if here.vendor == "sqlite" else _on_postgresql
    with limited(here):
        yield


@contextmanager
def _on_postgresql(here: BaseDatabaseWrapper) -> Iterator[None]:
    try:
        with transaction.atomic(using=here.alias):
            before = _swap_timeout(here, f"{PATIENCE_SECONDS}s")
            yield
            # A caller's own transaction goes on after this with the limit that it had.
            _swap_timeout(here, before)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _QUERY_CANCELED:
            raise
        raise TookTooLong from error


def _swap_timeout(here: BaseDatabaseWrapper, value: str) -> str:
    with here.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), "
            "set_config('statement_timeout', %s, true)",
            [value],
        )
        before: str = cursor.fetchone()[0]
        return before


@contextmanager
def _on_sqlite(here: BaseDatabaseWrapper) -> Iterator[None]:
    here.ensure_connection()
    here.connection.set_progress_handler(_counter(), _STEPS_PER_CALL)
    try:
        yield
    except OperationalError as error:
        if getattr(error.__cause__, "sqlite_errorname", None) != "SQLITE_INTERRUPT":
            raise
        raise TookTooLong from error
    finally:
        here.connection.set_progress_handler(None, 0)


def _counter() -> Callable[[], int]:
    """Return a handler that ends the statement when it was called too often."""
    left = _MOST_CALLS

    def called() -> int:
        nonlocal left
        left -= 1
        return int(left < 0)

    return called
