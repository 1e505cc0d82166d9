"""backwave_django itself, run as its documentation says."""

import sys
from collections.abc import Sequence

from django.db import connection

from testproject.bench.ours.jobs import TYPES

TABLES = ("outcome", "lease", "dependency", "settlequeue", "job", "pump")


class Contestant:
    """One ``runpumps`` process per worker; all dials from the benchmark's settings."""

    vendors = ("postgresql", "sqlite")

    def prepare(self) -> None:
        """Migrations were all there is to do."""

    def clear(self) -> None:
        """Empty the tables."""
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                names = ", ".join(f"backwave_{table}" for table in TABLES)
                cursor.execute(f"TRUNCATE {names}")
                return
            for table in TABLES:
                cursor.execute(f"DELETE FROM backwave_{table}")

    def enqueue(self, body: str, number: int) -> None:
        """Enqueue one job."""
        TYPES[body].enqueue(number)

    def enqueue_many(self, body: str, numbers: Sequence[int]) -> bool:
        """Enqueue in one call."""
        TYPES[body].enqueue_many([(number,) for number in numbers])
        return True

    def worker(self, *, slots: int) -> list[str]:
        """``slots`` is in the settings already."""
        return [sys.executable, "testproject/manage.py", "runpumps", "--group", "bench"]

    def unfinished(self) -> int:
        """Count by the two partial indexes of live jobs."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT count(*) FROM backwave_lease) + (SELECT count(*) FROM backwave_job"
                " WHERE state = 'scheduled' AND limit_key IS NULL AND queue = 'bench')"
            )
            return int(cursor.fetchone()[0])
