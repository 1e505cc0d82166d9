"""Emptying the database after a test, as ``flush`` does and several times as fast.

Only tables that have rows are emptied. What migrations made, content types and permissions, stays:
``flush`` deletes it, and makes it again.
"""

from functools import cache

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

MADE_BY_MIGRATIONS = {"django_content_type", "auth_permission"}


def empty_databases(case: TransactionTestCase) -> None:
    """Empty what the tests of ``case`` may have written to: its ``_fixture_teardown``."""
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        empty(connections[alias])


def empty(connection: BaseDatabaseWrapper) -> None:
    """Delete all rows that no migration made."""
    filled = _filled(connection)
    if not filled:
        return
    names = [connection.ops.quote_name(name) for name in filled]
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {', '.join(names)} CASCADE")
        else:
            for name in names:
                cursor.execute(f"DELETE FROM {name}")  # noqa: S608 - our own tables


def _filled(connection: BaseDatabaseWrapper) -> list[str]:
    looks = " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {connection.ops.quote_name(name)})"  # noqa: S608 - our own tables
        for name in _tables(connection.alias)
    )
    with connection.cursor() as cursor:
        cursor.execute(looks)
        return [name for (name,) in cursor.fetchall()]


@cache
def _tables(alias: str) -> tuple[str, ...]:
    """The tables of all models, once the test database is there."""
    names = connections[alias].introspection.django_table_names(
        only_existing=True, include_views=False
    )
    return tuple(sorted({*names} - MADE_BY_MIGRATIONS))
