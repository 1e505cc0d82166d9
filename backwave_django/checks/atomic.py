"""Checks of what atomic bodies need of the database that jobs live in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core import checks
from django.db import connections

from backwave_django import conf
from backwave_django.checks.dials import TAG
from backwave_django.jobs.registry import registry
from backwave_django.pumps.company import HINT

if TYPE_CHECKING:
    from collections.abc import Iterator

#: psycopg's number for READ COMMITTED, PostgreSQL's default; higher ones are stricter.
READ_COMMITTED = 2


@checks.register(TAG)
def check_atomic(**_kwargs: object) -> list[checks.CheckMessage]:
    """Report atomic job types that cannot work as the settings are. Opens no connection."""
    atomic = [job_type.wire_name for job_type in registry.all() if job_type.atomic]
    if conf.problems() or not atomic:
        return []
    config = conf.get_config()
    if connections[config.database].vendor == "sqlite":
        return list(_pumps_on_sqlite(atomic[0], config))
    return list(_isolation(atomic[0], config))


def _pumps_on_sqlite(wire_name: str, config: conf.Config) -> Iterator[checks.CheckMessage]:
    for group in config.groups.values():
        if group.pumps > 1:
            yield checks.Error(
                f"{wire_name!r} is atomic, jobs live in SQLite, and the group "
                f'"{group.name}" has {group.pumps} pumps.',
                hint=HINT,
                id="backwave.E035",
            )


def _isolation(wire_name: str, config: conf.Config) -> Iterator[checks.CheckMessage]:
    level = connections[config.database].settings_dict["OPTIONS"].get("isolation_level")
    if isinstance(level, int) and level > READ_COMMITTED:  # what is none, Django refuses
        yield checks.Error(
            f'{wire_name!r} is atomic, and DATABASES["{config.database}"] has an isolation_level '
            "above READ COMMITTED: a body that outlasts one heartbeat could never be committed.",
            hint="Leave isolation_level out of OPTIONS; a body that needs more can lock rows.",
            id="backwave.E036",
        )
