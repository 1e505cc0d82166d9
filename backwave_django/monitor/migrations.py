"""Which of our migrations a database lacks."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_APP = "backwave"


def unapplied(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the names of migrations that were not applied yet, in order.

    Asks by their names alone: Django's own loader imports the migrations of all apps for it, which
    a worker would carry around for as long as it lives.
    """
    package, _ = MigrationLoader.migrations_module(_APP)
    if package is None:
        return []  # the project makes the tables in its own way
    applied = MigrationRecorder(connection).applied_migrations()
    names = (module.name for module in iter_modules(import_module(package).__path__))
    return sorted(name for name in names if name[0].isdigit() and (_APP, name) not in applied)
