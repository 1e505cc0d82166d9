"""pgqueuer on asyncpg and uvloop, with the settings of its fastest documented form."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection
from pgqueuer.adapters.drivers.psycopg import SyncPsycopgDriver
from pgqueuer.adapters.persistence.queries import SyncQueries


def _conninfo() -> dict[str, Any]:
    values = connection.settings_dict
    return {
        "host": values["HOST"],
        "port": values["PORT"],
        "user": values["USER"],
        "password": values["PASSWORD"] or None,
    }


class Contestant:
    """One event loop per worker; a body that blocks would block it, so the bodies are its own."""

    vendors = ("postgresql",)

    def __init__(self) -> None:
        self._queries: SyncQueries | None = None

    def prepare(self) -> None:
        """Let its own command install the schema."""
        values = connection.settings_dict
        environ = {
            **os.environ,
            "PGHOST": values["HOST"],
            "PGPORT": str(values["PORT"]),
            "PGUSER": values["USER"],
            "PGDATABASE": values["NAME"],
        }
        command = [str(Path(sys.executable).parent / "pgq"), "install"]
        subprocess.run(command, env=environ, check=False, capture_output=True)

    def clear(self) -> None:
        """Empty the tables."""
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE pgqueuer, pgqueuer_log")

    def enqueue(self, body: str, number: int) -> None:
        """Enqueue one job on its synchronous driver."""
        self._sync().enqueue(body, b"%d" % number)

    def enqueue_many(self, body: str, numbers: Sequence[int]) -> bool:
        """Enqueue in bulk."""
        payloads: list[bytes | None] = [b"%d" % number for number in numbers]
        self._sync().enqueue([body] * len(numbers), payloads, [0] * len(numbers))
        return True

    def worker(self, *, slots: int) -> list[str]:
        """A runner of our own: ``pgq run`` cannot set the number of concurrent tasks."""
        return [sys.executable, "-m", "testproject.bench.contestants.pgqueuer", str(slots)]

    def unfinished(self) -> int:
        """What is left in the queue table: a finished job is deleted from it."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pgqueuer")
            return int(cursor.fetchone()[0])

    def _sync(self) -> SyncQueries:
        if self._queries is None:
            conn = psycopg.connect(
                **_conninfo(), dbname=connection.settings_dict["NAME"], autocommit=True
            )
            self._queries = SyncQueries(SyncPsycopgDriver(conn))
        return self._queries


async def _serve(slots: int) -> None:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver

    from testproject.bench.bodies import ROWS, SLEEP_SECONDS, ledger
    from testproject.bench.ledger import END, START
    from testproject.bench.models import Row

    @asynccontextmanager
    async def queuer() -> AsyncIterator[Any]:
        conn = await asyncpg.connect(**_conninfo(), database=connection.settings_dict["NAME"])
        yield PgQueuer(AsyncpgDriver(conn))
        await conn.close()

    async with queuer() as pgq:

        @pgq.entrypoint("noop")
        async def noop(job: Any) -> None:
            number = int(job.payload)
            ledger().write(START, number)
            ledger().write(END, number)

        @pgq.entrypoint("sleep")
        async def sleep(job: Any) -> None:
            number = int(job.payload)
            ledger().write(START, number)
            await asyncio.sleep(SLEEP_SECONDS)
            ledger().write(END, number)

        @pgq.entrypoint("orm")
        async def orm(job: Any) -> None:
            number = int(job.payload)
            ledger().write(START, number)
            row = await Row.objects.aget(pk=number % ROWS + 1)
            row.n += 1
            await row.asave(update_fields=["n"])
            ledger().write(END, number)

        await pgq.run(max_concurrent_tasks=slots)


def main() -> None:
    """Run one worker until it is told to stop."""
    import django
    import uvloop

    django.setup()
    uvloop.run(_serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
