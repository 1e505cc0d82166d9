"""Atomic bodies: what they write and their success are committed together, or neither is.

The body runs in a transaction on Django's connection to the jobs' database. When it has returned,
its outcome is applied there under the fence of its lease, as the last statements before the
commit, so that the lease's row is locked for a moment only. Whatever else happens rolls back, and
the pump reports it as of any other body. Whether an outcome counts is decided by the fence alone:
where it is not known what became of a commit, saying "released" is always safe, because a release
is refused once the lease is gone.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connections, transaction

from backwave_django.core import events as e
from backwave_django.core.errors import StoreError
from backwave_django.core.outcomes import Verdict
from backwave_django.core.verdicts import judge
from backwave_django.pumps.failures import describe
from backwave_django.store.faults import is_refused_data, is_transient, sqlstate

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from django.db.backends.base.base import BaseDatabaseWrapper

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
            job_id = assignment.job.job_id
            if committed:
                logger.exception("job %s is committed; what came after failed", job_id)
            elif self._is_in(store, assignment, error):
                logger.warning("job %s is committed, though that answer was lost", job_id)
            else:
                return self._given_up(assignment, error, failed=failed)
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
        if not isinstance(ended, e.AttemptSucceeded):
            raise _Undone(ended)
        if assignment.void or assignment.signals.timed_out:
            raise _Undone(_released(assignment))  # its outcome is decided, or others have its job
        now = self.clock.now()
        outcome = judge(ended, job=assignment.job, signalled=None, now=now)
        try:
            row = store.report_inside(outcome, patience=self.patience, now=now)
        except StoreError as error:
            raise _Undone(_refused(store, assignment, ended, error, failed)) from error
        if row.verdict is not Verdict.APPLIED:
            # The pump hears the same when it gives the lease back, and says so.
            raise _Undone(_released(assignment))
        assignment.committing = True

    def _is_in(self, store: DatabaseStore, assignment: Assignment, error: BaseException) -> bool:
        """Look whether a commit took effect whose answer was lost."""
        if not (assignment.committing and _heals(error)):
            return False
        job = assignment.job
        try:
            connections[store.executor.using].close()
            return self.open_store().is_recorded(job_id=job.job_id, run=job.run)
        except StoreError as fault:
            logger.warning("job %s: no answer to its commit: %s", job.job_id, fault)
            return False

    def _given_up(
        self,
        assignment: Assignment,
        error: BaseException,
        *,
        failed: Callable[[BaseException], e.AttemptReported],
    ) -> e.AttemptReported:
        """Say how an attempt ended whose transaction could not begin, or not be committed."""
        lost = assignment.committing and _heals(error)
        assignment.committing = False
        return _released(assignment) if lost else failed(error)


def _refused(
    store: DatabaseStore,
    assignment: Assignment,
    ended: e.AttemptSucceeded,
    error: StoreError,
    failed: Callable[[BaseException], e.AttemptReported],
) -> e.AttemptReported:
    """Say how an attempt ended whose outcome the database did not take."""
    origin = error.__cause__ or error
    if is_refused_data(error):
        return e.AttemptOutputRefused(
            lease_id=ended.lease_id,
            started_at=ended.started_at,
            finished_at=ended.finished_at,
            failure=describe(origin),
        )
    if _heals(error) and not _closed_by_body(connections[store.executor.using]):
        logger.warning("job %s is rolled back and given back: %s", assignment.job.job_id, error)
        return _released(assignment)
    return failed(origin)  # the body left a transaction behind in which nothing can be written


def _closed_by_body(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether somebody closed the connection; one that broke was not closed."""
    raw = connection.connection
    closed = getattr(raw, "closed", False) and not getattr(raw, "broken", True)
    return connection.closed_in_transaction or bool(closed)


def _heals(error: BaseException) -> bool:
    return is_transient(error) and sqlstate(error) != _SERIALIZATION_FAILURE


def _released(assignment: Assignment) -> e.AttemptReleased:
    job, began = assignment.job, assignment.began_at
    assert began is not None, "a body has begun"
    return e.AttemptReleased(lease_id=job.lease_id, started_at=began)
