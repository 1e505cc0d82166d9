"""django-tasks-db: one job at a time per worker."""

import sys

from testproject.bench.contestants.django_tasks import DjangoTasks


class Contestant(DjangoTasks):
    """``db_worker``; it has no concurrency of its own, so ``slots`` does not apply."""

    table = "django_tasks_database_dbtaskresult"

    def worker(self, *, slots: int) -> list[str]:
        """The documented command."""
        return [sys.executable, "testproject/manage.py", "db_worker", "--interval", "0.2"]
