"""Checks of the databases that jobs live in and that their bodies use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core import checks
from django.db import connections

from backwave_django import conf
from backwave_django.checks.dials import TAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


SUPPORTED = ("postgresql", "sqlite")
#: The first SQLite with RETURNING, and what psycopg_pool opens unless it is told.
OLDEST_SQLITE = (3, 35)
DEFAULT_POOL_SIZE = 4


@checks.register(TAG)
def check_databases(**_kwargs: object) -> list[checks.CheckMessage]:
    """Report databases whose settings do not suit jobs. Opens no connection."""
    if conf.problems():
        return []
    config = conf.get_config()
    connection = connections[config.database]
    found: list[checks.CheckMessage] = []
    if connection.vendor not in SUPPORTED:
        found.append(
            checks.Error(
                f'DATABASES["{config.database}"] is a {connection.display_name} database, '
                "which Backwave has no statements for.",
                hint='Point BACKWAVE["DATABASE"] at an alias on PostgreSQL or SQLite.',
                id="backwave.E031",
            )
        )
    elif connection.vendor == "sqlite":
        found += _sqlite_warnings(config.database, connection.settings_dict)
    else:
        found += _pooler_warnings(config, connection.settings_dict)
    for alias in connections:
        found += _pool_warnings(alias, connections[alias].settings_dict, config)
    return found


@checks.register(checks.Tags.database)
def check_server(
    *,
    databases: Sequence[str] | None = None,
    **_kwargs: object,
) -> list[checks.CheckMessage]:
    """Report a database server that is too old. Runs with ``check --database``."""
    if conf.problems():
        return []
    alias = conf.get_config().database
    connection = connections[alias]
    if alias not in (databases or ()) or connection.vendor != "sqlite":
        return []  # Django refuses a PostgreSQL that is too old for us
    version = connection.get_database_version()
    if version >= OLDEST_SQLITE:
        return []
    return [
        checks.Error(
            f"SQLite {'.'.join(map(str, version))} has no RETURNING clause.",
            hint="Run a Python that is built with SQLite 3.35 or newer.",
            id="backwave.E032",
        )
    ]


def _sqlite_warnings(alias: str, values: Mapping[str, Any]) -> Iterator[checks.CheckMessage]:
    options = values["OPTIONS"]
    where = f'DATABASES["{alias}"]'
    name = str(values["NAME"])
    if name == ":memory:" or "mode=memory" in name:
        yield checks.Warning(
            f"{where} is in memory: each process has a database of its own, and no pump of "
            "another process ever sees a job.",
            hint='Write the path of a file as NAME; tests may write TEST["NAME"].',
            id="backwave.W006",
        )
        return
    if "journal_mode=wal" not in str(options.get("init_command", "")).lower().replace(" ", ""):
        yield checks.Warning(
            f"{where} does not ask for write-ahead logging: readers block pumps.",
            hint='Write OPTIONS = {"init_command": "PRAGMA journal_mode=WAL; '
            'PRAGMA synchronous=NORMAL;", ...}.',
            id="backwave.W002",
        )
    if str(options.get("transaction_mode", "")).upper() != "IMMEDIATE":
        yield checks.Warning(
            f"{where} begins transactions without the write lock: a transaction that writes "
            'late fails with "database is locked", whatever the timeout.',
            hint='Write OPTIONS = {"transaction_mode": "IMMEDIATE", ...}.',
            id="backwave.W003",
        )


def _pooler_warnings(
    config: conf.Config, values: Mapping[str, Any]
) -> Iterator[checks.CheckMessage]:
    if config.pooler is None:
        return
    if config.hints and config.direct_url is None:
        yield checks.Warning(
            'BACKWAVE["POOLER"] is "transaction" and there is no DIRECT_URL: pumps cannot listen '
            "for wake-ups through the pooler, and start jobs at the next poll.",
            hint='Write BACKWAVE["DIRECT_URL"], past the pooler, or "HINTS": False.',
            id="backwave.W007",
        )
    prepares = values["OPTIONS"].get("prepare_threshold") is not None
    if prepares or not values.get("DISABLE_SERVER_SIDE_CURSORS"):
        yield checks.Warning(
            f'DATABASES["{config.database}"] uses what outlives a transaction, and '
            'BACKWAVE["POOLER"] is "transaction".',
            hint='Write "DISABLE_SERVER_SIDE_CURSORS": True, and no "prepare_threshold" in '
            "OPTIONS.",
            id="backwave.W008",
        )


def _pool_warnings(
    alias: str, values: Mapping[str, Any], config: conf.Config
) -> Iterator[checks.CheckMessage]:
    pool = values["OPTIONS"].get("pool")
    if not pool:
        return
    options = pool if isinstance(pool, dict) else {}
    size = options.get("max_size") or options.get("min_size", DEFAULT_POOL_SIZE)
    for group in config.groups.values():
        needed = group.pool_size * group.pumps
        if needed > size:
            yield checks.Warning(
                f'DATABASES["{alias}"]["OPTIONS"]["pool"] holds {size} connections, and the group '
                f'"{group.name}" runs {needed} attempts at once in one process.',
                hint=f'Write "max_size": {needed} or more there, or lower POOL_SIZE.',
                id="backwave.W005",
            )
