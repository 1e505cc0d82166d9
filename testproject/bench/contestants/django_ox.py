"""django-ox: threads in one process."""

import sys
from collections.abc import Sequence

from django_ox.bulk import enqueue_many

from testproject.bench.contestants.django_tasks import TASKS, DjangoTasks


class Contestant(DjangoTasks):
    """``ox_worker`` with as many threads as there are slots."""

    table = "django_ox_oxtask"

    def enqueue_many(self, body: str, numbers: Sequence[int]) -> bool:
        """Its own bulk call."""
        enqueue_many(TASKS[body], [((number,), {}) for number in numbers])
        return True

    def worker(self, *, slots: int) -> list[str]:
        """The documented command."""
        manage = [sys.executable, "testproject/manage.py", "ox_worker"]
        return [*manage, "--concurrency", str(slots), "--interval", "0.2"]
