"""A database of one's own for a command, with Django working on it."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django
from django.core.management import call_command

from testproject.devpostgres import PrivatePostgres

SETTINGS = "tests.field.settings"


@contextmanager
def stage(database: str, *, settings: Mapping[str, str] | None = None) -> Iterator[Path]:
    """Set Django up on an empty database; yield a directory that goes with it.

    ``settings`` are of PostgreSQL. Call it before anything imports a model, once in a process.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="field-")))
        if database == "postgresql":
            server = stack.enter_context(
                PrivatePostgres(settings={"fsync": "off", **(settings or {})})
            )
            os.environ["DATABASE_URL"] = server.create_database("field")
        else:
            os.environ["DATABASE_URL"] = f"sqlite:///{directory / 'field.sqlite3'}"
        os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
        os.environ["DEBUG"] = "0"
        os.environ["FIELD_LEDGER"] = str(directory / "ledger")
        django.setup()
        call_command("migrate", verbosity=0)
        yield directory


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
