"""Atomic bodies: what they write and their success are committed together, or neither is.

The body runs in a transaction on Django's connection to the jobs' database. When it has returned,
its outcome is applied there under the fence of its lease, as the last statements before the
commit, so that the lease's row is locked for a moment only. Whatever else happens rolls back, and
the pump reports it as of any other body. What follows from each answer is decided in
``core.commits``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connections, transaction

from backwave_django.core import commits
from backwave_django.core import events as e
from backwave_django.core.errors import StoreError
from backwave_django.core.outcomes import Outcome
from backwave_django.pumps.failures import describe
from backwave_django.store.faults import is_refused_data, is_transient, sqlstate

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from django.db.backends.base.base import BaseDatabaseWrapper

    from backwave_django.core.jobs import LeasedJob
    from backwave_django.pumps.attempts import Assignment
    from backwave_django.pumps.clock import Clock
    from backwave_django.store.adapter import DatabaseStore

logger = logging.getLogger("backwave.job")

#: The same body would meet it again: it failed, and its retry policy says what comes.
_SERIALIZATION_FAILURE: Final = "40001"


class _Undone(Exception):
    """Rolls the transaction back; ``ended`` says how the attempt ended."""

    def __init__(self, ended: e.AttemptReported) -> None:
        super().__init__()
        self.ended = ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """Runs atomic bodies. Used by all workers of a pump.

    ``open_store`` gives a store on Django's connection of the calling thread; ``patience`` is how
    long a locked lease or job is waited for.
    """

    open_store: Callable[[], DatabaseStore]
    clock: Clock
    patience: timedelta | None

    def run(
        self,
        assignment: Assignment,
        body: Callable[[], e.AttemptReported],
        *,
        failed: Callable[[BaseException], e.AttemptReported],
    ) -> e.AttemptEnded:
        """Run ``body`` and return how it ended; ``failed`` makes a failure of an exception.

        ``body`` raises nothing.
        """
        store = self.open_store()
        committed: list[bool] = []
        try:
            with store.executor.transaction():
                # The first of all hooks: those of the body may raise, and it is committed then.
                transaction.on_commit(lambda: committed.append(True), using=store.executor.using)
                self._record(store, assignment, body(), failed=failed)
        except _Undone as undone:
            return undone.ended
        except BaseException as error:
            if not committed:
                return self._broken(store, assignment, error, failed=failed)
            logger.exception("job %s is committed; what came after failed", assignment.job.job_id)
        return e.AttemptCommitted(lease_id=assignment.job.lease_id)

    def _record(
        self,
        store: DatabaseStore,
        assignment: Assignment,
        ended: e.AttemptReported,
        *,
        failed: Callable[[BaseException], e.AttemptReported],
    ) -> None:
        """Apply a success; raise ``_Undone`` for anything else."""
        counts = not (assignment.void or assignment.signals.timed_out)
        now = self.clock.now()
        outcome = commits.after_body(ended, job=assignment.job, counts=counts, now=now)
        if not isinstance(outcome, Outcome):
            raise _Undone(outcome)
        try:
            row = store.report_inside(outcome, patience=self.patience, now=now)
        except StoreError as error:
            raise _Undone(_refused(store, outcome, error, failed)) from error
        undone = commits.after_fence(outcome, row)
        if undone is not None:
            raise _Undone(undone)
        assignment.committing = True

    def _broken(
        self,
        store: DatabaseStore,
        assignment: Assignment,
        error: BaseException,
        *,
        failed: Callable[[BaseException], e.AttemptReported],
    ) -> e.AttemptEnded:
        """Say how an attempt ended whose transaction could not begin, or whose commit failed."""
        job, began = assignment.job, assignment.began_at
        assert began is not None, "a body has begun"
        if not (assignment.committing and _heals(error)):
            assignment.committing = False
            return failed(error)
        recorded = assignment.committing = self._is_recorded(store, job)
        if recorded:
            logger.warning("job %s is committed, though that answer was lost", job.job_id)
        return commits.after_silence(job.lease_id, started_at=began, recorded=recorded)

    def _is_recorded(self, store: DatabaseStore, job: LeasedJob) -> bool:
        """Look whether a commit took effect whose answer was lost."""
        try:
            connections[store.executor.using].close()
            return self.open_store().is_recorded(job_id=job.job_id, run=job.run)
        except StoreError as fault:
            logger.warning("job %s: no answer to its commit: %s", job.job_id, fault)
            return False


def _refused(
    store: DatabaseStore,
    outcome: Outcome,
    error: StoreError,
    failed: Callable[[BaseException], e.AttemptReported],
) -> e.AttemptReported:
    """Say how an attempt ended whose outcome the database did not take."""
    origin = error.__cause__ or error
    if is_refused_data(error):
        return e.AttemptOutputRefused(
            lease_id=outcome.lease_id,
            started_at=outcome.started_at,
            finished_at=outcome.finished_at,
            failure=describe(origin),
        )
    if _heals(error) and not _closed_by_body(connections[store.executor.using]):
        logger.warning("job %s is rolled back and given back: %s", outcome.job_id, error)
        return commits.after_fault(outcome)
    return failed(origin)  # the body left a transaction behind in which nothing can be written


def _closed_by_body(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether somebody closed the connection; one that broke was not closed."""
    raw = connection.connection
    closed = getattr(raw, "closed", False) and not getattr(raw, "broken", True)
    return connection.closed_in_transaction or bool(closed)


def _heals(error: BaseException) -> bool:
    return is_transient(error) and sqlstate(error) != _SERIALIZATION_FAILURE
