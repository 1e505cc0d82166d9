"""Attempts on the test's own thread and connection."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import DatabaseError, connections

from backwave_django.core import events as e
from backwave_django.core.retries import Retry
from backwave_django.jobs import services
from backwave_django.pumps.atomic import Transactions
from backwave_django.pumps.attempts import Assignment, Attempts
from backwave_django.pumps.failures import describe
from backwave_django.pumps.progress import ProgressBoard
from backwave_django.pumps.scope import Scopes

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from backwave_django.core.jobs import LeasedJob
    from backwave_django.pumps.clock import Clock
    from backwave_django.store.adapter import DatabaseStore

logger = logging.getLogger("backwave.job")


class InlineScopes(Scopes):
    """Scopes that leave database connections alone: they are the test's."""

    def __init__(self) -> None:
        super().__init__(new_container=services.new_container, reuse_connections=True)
        self._give_back = _keep


def _keep() -> None:
    """Leave the connection as it is."""


class InlineAttempts:
    """Runs one job after the other, where it is called."""

    def __init__(self, *, clock: Clock, store: DatabaseStore) -> None:
        self._clock = clock
        self._attempts = Attempts(
            clock=clock,
            scopes=InlineScopes(),
            progress=ProgressBoard(),
            # Nobody else holds a lock here, and a patience would outlive the attempt.
            transactions=Transactions(open_store=lambda: store, clock=clock, patience=None),
        )
        self._failures: dict[str, list[BaseException]] = {}

    def fail_next(self, wire_name: str, error: BaseException) -> None:
        """Let the next attempt of this job type fail with ``error`` instead of running."""
        self._failures.setdefault(wire_name, []).append(error)

    def run(self, job: LeasedJob) -> e.AttemptEnded:
        """Run the body and return how it ended."""
        planned = self._failures.get(job.wire_name)
        if planned:
            return self._failed(job, planned.pop(0))
        inside = [wrapper for wrapper in connections.all() if wrapper.in_atomic_block]
        savepoints = [(wrapper, wrapper.savepoint()) for wrapper in inside]
        ended = self._attempts.run(Assignment(job))
        for wrapper, savepoint in savepoints:
            _leave(wrapper, savepoint)
        return ended

    def _failed(self, job: LeasedJob, error: BaseException) -> e.AttemptFailed:
        now = self._clock.now()
        assert job.attempt <= Retry.decode(job.retry).max_attempts
        return e.AttemptFailed(
            lease_id=job.lease_id, started_at=now, finished_at=now, failure=describe(error)
        )


def _leave(wrapper: BaseDatabaseWrapper, savepoint: str | None) -> None:
    """Keep what a body wrote, unless it left a broken transaction behind.

    Then what it wrote is lost, as it would be on a connection of its own, and the test's
    transaction goes on.
    """
    assert savepoint is not None, "inside an atomic block there are savepoints"
    try:
        if not wrapper.needs_rollback:
            wrapper.savepoint_commit(savepoint)
            return
    except DatabaseError:
        logger.warning("a body left a broken transaction behind: what it wrote is rolled back")
    wrapper.needs_rollback = False
    wrapper.savepoint_rollback(savepoint)
