"""Where stores come from: on Django's connection, or on a connection of a pump's own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from django.db import connections, transaction

from backwave_django.conf import get_config
from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs.observers import observers
from backwave_django.store.adapter import DatabaseStore
from backwave_django.store.dialects.sqlite import TAKE_WRITE_LOCK, SqlitePump, SqliteValues
from backwave_django.store.dialects.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from backwave_django.conf import Config
    from backwave_django.core.contract import StoreSettings
    from backwave_django.store.executor import Executor, Row
    from backwave_django.store.names import Statement


class DjangoExecutor:
    """Django's connection of the calling thread, in whatever transaction the caller has begun."""

    guards_statements = True

    def __init__(self, using: str) -> None:
        self.using = using
        wrapper = connections[using]
        self.vendor = wrapper.vendor
        zone = wrapper.timezone
        self.values: Values = SqliteValues(zone) if self.vendor == "sqlite" else Values()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction, or a savepoint in the caller's."""
        wrapper = connections[self.using]
        outermost = not wrapper.in_atomic_block
        with transaction.atomic(using=self.using):
            if outermost and self.vendor == "sqlite":
                # A transaction that begins by reading may not wait for the write lock later.
                self.execute(TAKE_WRITE_LOCK, {})
            yield

    def relax(self) -> None:
        """Nothing: no setting was made."""

    def fetch(self, statement: Statement, parameters: Mapping[str, object]) -> list[Row]:
        """Run one statement and return its rows."""
        with connections[self.using].cursor() as cursor:
            cursor.execute(statement.on(self.vendor), self.values.bound(parameters))
            rows: list[Row] = cursor.fetchall()
            return rows

    def execute(self, statement: Statement, parameters: Mapping[str, object]) -> int:
        """Run one statement and return how many rows it changed."""
        with connections[self.using].cursor() as cursor:
            cursor.execute(statement.on(self.vendor), self.values.bound(parameters))
            changed: int = cursor.rowcount
            return changed

    def execute_many(
        self, statement: Statement, parameters: Sequence[Mapping[str, object]]
    ) -> None:
        """Run one statement for each of ``parameters``."""
        if parameters:
            with connections[self.using].cursor() as cursor:
                bound = [self.values.bound(each) for each in parameters]
                cursor.executemany(statement.on(self.vendor), bound)

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` after the caller's transaction, or now if there is none."""
        transaction.on_commit(callback, using=self.using, robust=True)

    def last_promise(self) -> Callable[[], object] | None:
        """Return the last callback of this transaction, if no savepoint lies in between."""
        wrapper = connections[self.using]
        if not wrapper.run_on_commit:
            return None
        savepoints, callback, *_ = wrapper.run_on_commit[-1]
        return callback if savepoints == set(wrapper.savepoint_ids) else None

    def close(self) -> None:
        """Close Django's connection, unless a transaction of the caller's lives on it."""
        wrapper = connections[self.using]
        if not wrapper.in_atomic_block:
            wrapper.close()

    def drop(self) -> None:
        """Close Django's connection; Django opens a new one when it is next used."""
        self.close()


#: A store on a pump's own connection; ``close`` ends it, ``drop`` forgets a broken connection.
PumpStore: TypeAlias = DatabaseStore


def default_store(using: str | None = None, *, config: Config | None = None) -> DatabaseStore:
    """Return a store on Django's connection ``using``; that of ``BACKWAVE`` unless one is named.

    It works in whatever transaction the calling thread has begun there. ``config`` is that of
    the settings unless one is given.
    """
    config = config or get_config()
    executor = DjangoExecutor(using or config.database)
    return DatabaseStore(executor, observed(config.store_settings), hints=config.hints)


@lru_cache(maxsize=4)
def observed(settings: StoreSettings) -> StoreSettings:
    """Return the settings of a store that knows the observers of this process's code."""
    return replace(settings, observers=observers)


def open_pump_store(
    using: str,
    settings: StoreSettings,
    *,
    application_name: str,
    lease_duration: timedelta,
) -> PumpStore:
    """Return a store on a connection of its own. Nothing is opened before the first call."""
    config = get_config()
    return DatabaseStore(
        _pump_executor(
            using,
            application_name=application_name,
            lease_duration=lease_duration,
            pooler=config.pooler is not None,
        ),
        settings,
        hints=config.hints,
    )


def _pump_executor(
    using: str, *, application_name: str, lease_duration: timedelta, pooler: bool
) -> Executor:
    vendor = connections[using].vendor
    if vendor == "sqlite":
        return SqlitePump(using, lease_duration=lease_duration)
    if vendor == "postgresql":
        # Here, because a project on SQLite has no psycopg.
        from backwave_django.store.dialects.postgresql import PostgresPump  # noqa: PLC0415

        return PostgresPump(
            using,
            application_name=application_name,
            lease_duration=lease_duration,
            pooler=pooler,
        )
    raise ConfigurationError(
        f"DATABASES[{using!r}] is {vendor}.", "Jobs live in PostgreSQL or SQLite."
    )
