"""What the runner asks of a contestant."""

from collections.abc import Sequence
from typing import Protocol


class Contestant(Protocol):
    """A job system that runs the bodies of ``testproject.bench.bodies``.

    ``vendors`` names the databases it can use; a system on a broker lists both.
    """

    vendors: tuple[str, ...]

    def prepare(self) -> None:
        """Make what it stores its jobs in. Called once, after ``migrate``."""

    def clear(self) -> None:
        """Remove all jobs."""

    def enqueue(self, body: str, number: int) -> None:
        """Enqueue one job, the way its documentation shows first."""

    def enqueue_many(self, body: str, numbers: Sequence[int]) -> bool:
        """Enqueue in bulk; false when it has no way to."""

    def worker(self, *, slots: int) -> list[str]:
        """Return the command of one worker process with ``slots`` jobs at a time."""

    def unfinished(self) -> int:
        """Return how many jobs have no committed end yet."""
