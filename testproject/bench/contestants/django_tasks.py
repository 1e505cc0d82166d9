"""What the django.tasks back ends have in common."""

from collections.abc import Sequence

from django.db import connection
from django.tasks import task

from testproject.bench import bodies


@task(queue_name="default")
def noop(number: int) -> None:
    """See ``bodies``."""
    bodies.noop(number)


@task(queue_name="default")
def sleep(number: int) -> None:
    """See ``bodies``."""
    bodies.sleep(number)


@task(queue_name="default")
def orm(number: int) -> None:
    """See ``bodies``."""
    bodies.orm(number)


@task(queue_name="default")
def nap(number: int) -> None:
    """See ``bodies``."""
    bodies.nap(number)


TASKS = {"noop": noop, "sleep": sleep, "orm": orm, "nap": nap}


class DjangoTasks:
    """Enqueues through ``django.tasks``; ``table`` holds its results."""

    vendors: tuple[str, ...] = ("postgresql", "sqlite")
    table = ""
    ended: tuple[str, ...] = ("SUCCESSFUL", "FAILED")

    def prepare(self) -> None:
        """Migrations were all there is to do."""

    def clear(self) -> None:
        """Empty the table."""
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {self.table}")

    def enqueue(self, body: str, number: int) -> None:
        """Enqueue one task."""
        TASKS[body].enqueue(number)

    def enqueue_many(self, body: str, numbers: Sequence[int]) -> bool:
        """``django.tasks`` has no bulk call."""
        return False

    def unfinished(self) -> int:
        """Results that have not ended."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT count(*) FROM {self.table} WHERE status NOT IN (%s, %s)",
                self.ended,
            )
            return int(cursor.fetchone()[0])
