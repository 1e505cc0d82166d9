"""The databases of runs, and what can be done to them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from testproject.devpostgres import PrivatePostgres
from tests.torture.loops import Random, Stop

#: Deadlocks are to be found before anybody's patience ends, which would hide them.
SETTINGS = {"fsync": "off", "deadlock_timeout": "50ms", "max_connections": "100"}


class Database(Protocol):
    """One database of a run's own."""

    vendor: str
    url: str

    def faults(self) -> tuple[str, ...]:
        """Name the methods that do something to it; all of them take a random stream."""

    def log(self) -> str:
        """Return what its server has written."""

    def is_stuck(self) -> bool:
        """Tell whether somebody keeps everybody else from writing."""


class SqliteFile:
    """A file. There is no server to do anything to, but others may hold its only lock."""

    vendor = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def faults(self) -> tuple[str, ...]:
        return ("hold_locks",)

    def log(self) -> str:
        return ""

    def is_stuck(self) -> bool:
        with closing(sqlite3.connect(self.path, timeout=0.1, isolation_level=None)) as session:
            try:
                session.execute("BEGIN IMMEDIATE")
                session.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return True
        return False

    def hold_locks(self, rng: Random) -> None:
        """Hold the write lock for longer than a pump waits."""
        session = sqlite3.connect(self.path, timeout=5, isolation_level=None)
        with closing(session), suppress(sqlite3.OperationalError):
            session.execute("BEGIN IMMEDIATE")
            Stop().pause(rng.uniform(0.2, 1.5))
            session.execute("ROLLBACK")


class PostgresServer:
    """A server of the run's own."""

    vendor = "postgresql"

    def __init__(self, server: PrivatePostgres) -> None:
        self._server = server
        self.url = server.create_database("torture")

    def faults(self) -> tuple[str, ...]:
        return ("hold_locks", "cut_some", "cut_all", "restart", "crash")

    def log(self) -> str:
        return self._server.log_path.read_text(errors="replace")

    def is_stuck(self) -> bool:
        return False

    def hold_locks(self, rng: Random) -> None:
        """Hold the rows of some jobs and leases, as an open transaction of somebody else's does."""
        table, most = rng.choice(("backwave_job", "backwave_lease")), rng.randrange(1, 60)
        self._run(
            f"SELECT 1 FROM {table} ORDER BY random() LIMIT {most} FOR UPDATE SKIP LOCKED",  # noqa: S608
            hold_seconds=rng.uniform(0.2, 1.5),
        )

    def cut_some(self, rng: Random) -> None:
        """End some sessions."""
        self._cut(share=rng.uniform(0.05, 0.5))

    def cut_all(self, _rng: Random) -> None:
        """End every session."""
        self._cut(share=1.0)

    def restart(self, _rng: Random) -> None:
        """Stop the server in good order, and start it."""
        self._server.restart("fast")

    def crash(self, _rng: Random) -> None:
        """Let it fall over; it recovers from its log."""
        self._server.restart("immediate")

    def _cut(self, *, share: float) -> None:
        self._run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "  # noqa: S608
            f"current_database() AND pid <> pg_backend_pid() AND random() < {share}"
        )

    def _run(self, statement: str, *, hold_seconds: float = 0.0) -> None:
        # Here, because a run on SQLite needs no psycopg.
        import psycopg  # noqa: PLC0415

        with suppress(psycopg.OperationalError), psycopg.connect(self.url) as session:
            session.execute(statement)
            if hold_seconds:
                Stop().pause(hold_seconds)
            session.rollback()


@contextmanager
def opened(vendor: str, *, directory: Path) -> Iterator[SqliteFile | PostgresServer]:
    """A fresh database for as long as the block lasts."""
    if vendor == "sqlite":
        yield SqliteFile(directory / "torture.sqlite3")
        return
    with PrivatePostgres(settings=SETTINGS) as server:
        yield PostgresServer(server)
