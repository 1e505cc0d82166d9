"""What is done to a PostgreSQL server under its pumps."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql

from testproject.devpostgres import PrivatePostgres

TEMPLATE = "ground_template"
PUMPS = "backwave:field:%"
LISTENERS = "backwave:hints:%"
#: What tests call sessions of bodies, by way of PGAPPNAME.
BODIES = "ground:bodies"
_numbers = itertools.count(1)


class OwnServer:
    """A server of this case's own, on which Django's connection of the test works as well."""

    def __init__(self, server: PrivatePostgres, name: str) -> None:
        self._server = server
        self.name = name
        self.url = server.url(name)

    def stop(self, mode: str = "fast") -> None:
        connection.close()
        self._server.stop(mode)

    def start(self) -> None:
        self._server.start()

    def set(self, **values: str) -> None:
        """Give sessions that begin from now on these settings."""
        with admin(self.url) as session:
            for setting, value in values.items():
                session.execute(
                    sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                        sql.Identifier(self.name), sql.Identifier(setting), sql.Literal(value)
                    )
                )

    def suspend(self) -> None:
        """Let it hang; connections stay open, new ones are accepted and never answered."""
        connection.close()
        self._server.suspend()

    def resume(self) -> None:
        self._server.resume()


def clone(server: PrivatePostgres) -> str:
    """Return the name of a fresh database with all tables, and nothing in them."""
    name = f"ground_{next(_numbers)}"
    with admin(server.url()) as session:
        session.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(TEMPLATE)
            )
        )
    return name


@contextmanager
def repointed(server: PrivatePostgres, name: str) -> Iterator[None]:
    """Let Django's connection work on this database instead of the test's."""
    values = connection.settings_dict
    before = dict(values)
    connection.close()
    values.update(NAME=name, HOST="127.0.0.1", PORT=server.port, USER="postgres", PASSWORD="")
    try:
        yield
    finally:
        connection.close()
        values.update(before)


@contextmanager
def admin(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A session outside of everything."""
    with psycopg.connect(url, autocommit=True, application_name="ground:admin") as session:
        yield session


def fetch(text: str, *values: str) -> list[tuple[Any, ...]]:
    """Ask the database on the test's own connection."""
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)
        return list(cursor.fetchall())


def run(text: str) -> None:
    """Do something on the test's own connection."""
    with connection.cursor() as cursor:
        cursor.execute(text)


def sessions(*, but: tuple[str, ...] = ()) -> dict[str, int]:
    """The sessions on this database by name, without the asking one."""
    rows = fetch(
        "SELECT application_name, count(*) FROM pg_stat_activity WHERE backend_type = "
        "'client backend' AND datname = current_database() AND pid <> pg_backend_pid() GROUP BY 1"
    )
    return {name: int(count) for name, count in rows if name not in but}


def cut(name: str) -> int:
    """Cut the sessions of this name; return how many there were."""
    (row,) = fetch(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name LIKE %s",
        name,
    )
    return int(row[0])


@contextmanager
def read_only_database(name: str) -> Iterator[None]:
    """Let every new session on the database be read-only, as on a standby; old ones are cut."""
    identifier = sql.Identifier(name)
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(identifier)
        )
        cut("%backwave:%")
        try:
            yield
        finally:
            cursor.execute("SET default_transaction_read_only = off")
            # Sessions that were opened meanwhile keep what they began with.
            cursor.execute(
                sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(identifier)
            )


@contextmanager
def held(url: str, statement: str) -> Iterator[None]:
    """Hold the locks of a statement in a transaction that somebody has left open."""
    with psycopg.connect(url, application_name="ground:holder") as session:
        session.execute(statement)
        try:
            yield
        finally:
            session.rollback()


class Background:
    """Repeats something on a thread as long as it is entered."""

    def __init__(self, step: Any, *, every_seconds: float) -> None:
        self._step = step
        self._every = every_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.problem: Exception | None = None

    def _run(self) -> None:
        try:
            while not self._over.wait(self._every):
                self._step()
        except Exception as problem:
            self.problem = problem
        finally:
            connection.close()

    def __enter__(self) -> "Background":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)
        assert self.problem is None, self.problem
