"""One attempt: from a leased job to the event that says how it ended.

A fault in a body is an outcome, whatever it is. Nothing a body does leaves this module as an
exception.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from backwave_django.core import events as e
from backwave_django.core.bounds import MAX_OUTPUT_BYTES
from backwave_django.core.errors import (
    Cancelled,
    GiveUp,
    PayloadTooLarge,
    RetryAfter,
    Snooze,
    UndecodablePayload,
    UnknownJobType,
    WrongArguments,
)
from backwave_django.core.outcomes import Unroutable
from backwave_django.core.retries import Retry
from backwave_django.jobs.context import JobContext, Signals
from backwave_django.jobs.job_type import TimeoutMode
from backwave_django.jobs.payload import encode
from backwave_django.jobs.registry import registry
from backwave_django.jobs.tags import encode_tags
from backwave_django.pumps.failures import describe, is_printable
from backwave_django.pumps.joblog import JobLog, current_log
from backwave_django.pumps.raising import Interruption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from threading import Thread

    from backwave_django.core.jobs import LeasedJob
    from backwave_django.core.outcomes import Failure
    from backwave_django.jobs.parameters import Call
    from backwave_django.jobs.registry import AnyJobType
    from backwave_django.pumps.atomic import Transactions
    from backwave_django.pumps.clock import Clock
    from backwave_django.pumps.progress import ProgressBoard
    from backwave_django.pumps.scope import Scopes, Services

logger = logging.getLogger("backwave.job")

Handler: TypeAlias = "Callable[[JobContext], object]"
Middleware: TypeAlias = "Callable[[Handler], Handler]"

_OUTPUT_CHARS: Final = MAX_OUTPUT_BYTES // 4
_invocation: ContextVar[Callable[[JobContext], object]] = ContextVar("backwave_invocation")


@dataclass(slots=True, eq=False)
class Assignment:
    """A job in the hands of a worker, and how the pump talks to its body meanwhile.

    ``void``: the lease is lost. ``thread`` is the worker's, once it has begun, at ``began_at``.
    ``committing``: an atomic body has let go of its lease, in a commit that is on its way.
    """

    job: LeasedJob
    signals: Signals = field(default_factory=Signals)
    void: bool = False
    replaced: bool = False
    thread: Thread | None = None
    began_at: datetime | None = None
    committing: bool = False


class Attempts:
    """Runs assignments, on any number of threads at once."""

    def __init__(
        self,
        *,
        clock: Clock,
        scopes: Scopes,
        progress: ProgressBoard,
        transactions: Transactions,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        self._clock = clock
        self._scopes = scopes
        self._progress = progress
        self._transactions = transactions
        self._handler = _wrapped(middleware) if middleware else None

    def warm(self) -> None:
        """Prepare the calling thread for the attempts that it will run."""
        self._scopes.warm()

    def run(self, assignment: Assignment) -> e.AttemptEnded:
        """Run the body and return how it ended. Raises nothing."""
        job = assignment.job
        started_at = assignment.began_at = self._clock.now()
        signals = assignment.signals
        if signals.stopping or signals.cancel_reason is not None:
            return e.AttemptReleased(lease_id=job.lease_id, started_at=started_at)
        try:
            return self._scopes.run(
                lambda services: self._inside(assignment, services, started_at=started_at)
            )
        except BaseException as error:
            logger.exception("the scope of job %s broke", job.job_id, extra=_extra(job))
            return self._failed(job, error, started_at=started_at)
        finally:
            self._progress.forget(job.lease_id)

    def _inside(
        self, assignment: Assignment, services: Services, *, started_at: datetime
    ) -> e.AttemptEnded:
        job = assignment.job
        log = JobLog(job.job_id)
        current_log.set(log)
        try:
            routed = _route(job, started_at=started_at)
        except BaseException as error:  # an upcast is the author's code
            return self._failed(job, error, started_at=started_at, log=log)
        if not isinstance(routed, tuple):
            return routed
        job_type, call = routed
        context = JobContext(
            job,
            max_attempts=Retry.decode(job.retry).max_attempts,
            signals=assignment.signals,
            services=services,
            progress=lambda done, total, message: self._progress.note(
                job.lease_id, done, total, message
            ),
        )

        def body() -> e.AttemptReported:
            try:
                value = self._call(job_type, call, context, assignment.signals)
            except BaseException as error:  # whatever it is, it is an outcome
                return self._raised(error, context, job, started_at=started_at, log=log)
            return self._returned(value, context, job, started_at=started_at, log=log)

        if not job_type.atomic:
            return body()
        return self._transactions.run(
            assignment,
            body,
            failed=lambda error: self._raised(error, context, job, started_at=started_at, log=log),
        )

    def _call(
        self, job_type: AnyJobType, call: Call, context: JobContext, signals: Signals
    ) -> object:
        raises = job_type.timeout_mode is TimeoutMode.RAISE
        guard = Interruption(signals) if raises else None
        if self._handler is None:
            return job_type.invoke(call, context, guard)
        _invocation.set(lambda given: job_type.invoke(call, given, guard))
        return self._handler(context)

    def _returned(
        self,
        value: object,
        context: JobContext,
        job: LeasedJob,
        *,
        started_at: datetime,
        log: JobLog,
    ) -> e.AttemptReported:
        try:
            output = None if value is None else _encoded(value)
        except BaseException as error:  # a value may be of any kind and do anything
            failure = describe(error)
            _log_failure(job, error, failure, final=True)
            return e.AttemptOutputRefused(
                lease_id=job.lease_id,
                started_at=started_at,
                finished_at=self._clock.now(),
                failure=failure,
                tags=_tags(context),
                log=log.text(),
            )
        return e.AttemptSucceeded(
            job.lease_id, started_at, self._clock.now(), output, _tags(context), log.text()
        )

    def _raised(
        self,
        error: BaseException,
        context: JobContext,
        job: LeasedJob,
        *,
        started_at: datetime,
        log: JobLog,
    ) -> e.AttemptReported:
        tags = _tags(context)
        match error:
            case Snooze():
                return e.AttemptSnoozed(
                    lease_id=job.lease_id,
                    started_at=started_at,
                    finished_at=self._clock.now(),
                    delay=error.delay,
                    tags=tags,
                    log=log.text(),
                )
            case Cancelled():
                return e.AttemptCancelled(
                    lease_id=job.lease_id,
                    started_at=started_at,
                    finished_at=self._clock.now(),
                    tags=tags,
                    log=log.text(),
                )
            case _:
                return self._failed(job, error, started_at=started_at, tags=tags, log=log)

    def _failed(
        self,
        job: LeasedJob,
        error: BaseException,
        *,
        started_at: datetime,
        tags: str | None = None,
        log: JobLog | None = None,
    ) -> e.AttemptFailed:
        gave_up = isinstance(error, GiveUp)
        final = gave_up or job.attempt >= Retry.decode(job.retry).max_attempts
        lines = log.text() if log else None  # before our own line about the failure
        failure = describe(error)
        _log_failure(job, error, failure, final=final)
        return e.AttemptFailed(
            lease_id=job.lease_id,
            started_at=started_at,
            finished_at=self._clock.now(),
            failure=failure,
            retry_after=error.delay if isinstance(error, RetryAfter) else None,
            gave_up=gave_up,
            tags=tags,
            log=lines,
        )


def _wrapped(middleware: Sequence[Middleware]) -> Handler:
    def innermost(context: JobContext) -> object:
        return _invocation.get()(context)

    handler: Handler = innermost
    for wrap in reversed(middleware):
        handler = wrap(handler)
    return handler


def _route(
    job: LeasedJob, *, started_at: datetime
) -> tuple[AnyJobType, Call] | e.AttemptUnroutable | e.AttemptUndecodable:
    """Return what to call, or why this process cannot."""
    job_type = registry.find(job.wire_name)
    if job_type is None:
        unknown = UnknownJobType(job.wire_name)
        return _unroutable(job, Unroutable.UNKNOWN_TYPE, unknown, started_at=started_at)
    if job.payload_version > job_type.version:
        newer = UndecodablePayload(
            f"the payload has version {job.payload_version}, this process knows "
            f"{job_type.version} of {job.wire_name!r}"
        )
        return _unroutable(job, Unroutable.NEWER_VERSION, newer, started_at=started_at)
    try:
        return job_type, job_type.decode(job.payload, job.payload_version)
    except UndecodablePayload as error:
        logger.log(
            logging.ERROR, "job %s cannot be decoded: %s", job.job_id, error, extra=_extra(job)
        )
        return e.AttemptUndecodable(
            lease_id=job.lease_id, started_at=started_at, failure=describe(error)
        )
    except WrongArguments as error:
        return _unroutable(job, Unroutable.ARGUMENTS, error, started_at=started_at)


def _unroutable(
    job: LeasedJob, reason: Unroutable, error: Exception, *, started_at: datetime
) -> e.AttemptUnroutable:
    logger.warning("job %s is handed back: %s", job.job_id, error, extra=_extra(job))
    return e.AttemptUnroutable(
        lease_id=job.lease_id, started_at=started_at, reason=reason, failure=describe(error)
    )


def _encoded(value: object) -> str:
    text = encode(value, where="output")
    if len(text) > _OUTPUT_CHARS:  # only then can its bytes be too many
        size = len(text.encode())
        if size > MAX_OUTPUT_BYTES:
            raise PayloadTooLarge("output", size, MAX_OUTPUT_BYTES)
    return text


def _tags(context: JobContext) -> str | None:
    tags = context.collected_tags()
    return encode_tags(tags) if tags else None


def _log_failure(job: LeasedJob, error: BaseException, failure: Failure, *, final: bool) -> None:
    """Log the exception of a body, once. A handler that breaks must not cost the outcome."""
    printable = is_printable(error)
    with suppress(Exception):
        logger.log(
            logging.ERROR if final else logging.WARNING,
            "job %s (%s) failed on attempt %d, %s: %s",
            job.job_id,
            job.wire_name,
            job.attempt,
            "for good" if final else "to be tried again",
            # Handlers would stumble over a text that is not fit for UTF-8.
            failure.error_class if printable else failure.traceback,
            exc_info=error if printable else None,
            extra=_extra(job),
        )


def _extra(job: LeasedJob) -> dict[str, object]:
    return {"job_id": str(job.job_id), "wire_name": job.wire_name, "attempt": job.attempt}
