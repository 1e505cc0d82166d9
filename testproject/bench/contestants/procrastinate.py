"""procrastinate, synchronous tasks on its Django integration."""

import sys
from collections.abc import Sequence

from django.db import connection
from procrastinate.contrib.django import app

from testproject.bench import bodies

TASKS = {
    name: app.task(name=f"bench.{name}", queue="bench")(body)
    for name, body in bodies.BODIES.items()
}


class Contestant:
    """``procrastinate worker``, jobs kept after success as by default."""

    vendors = ("postgresql",)

    def prepare(self) -> None:
        """Its migrations were all there is to do."""

    def clear(self) -> None:
        """Empty the tables."""
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")

    def enqueue(self, body: str, number: int) -> None:
        """Defer one job."""
        TASKS[body].defer(number=number)

    def enqueue_many(self, body: str, numbers: Sequence[int]) -> bool:
        """Defer a batch."""
        TASKS[body].batch_defer(*[{"number": number} for number in numbers])
        return True

    def worker(self, *, slots: int) -> list[str]:
        """The documented command."""
        manage = [sys.executable, "testproject/manage.py", "procrastinate", "worker"]
        return [*manage, "--concurrency", str(slots)]

    def unfinished(self) -> int:
        """Jobs that wait or run."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
            )
            return int(cursor.fetchone()[0])
