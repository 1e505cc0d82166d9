"""What a body sees of its attempt."""

from __future__ import annotations

import json
import threading
from collections.abc import Sized
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from asgiref.sync import sync_to_async

from backwave_django.core.commands import CancelReason
from backwave_django.core.errors import Cancelled
from backwave_django.jobs.kin import NoKin, StoredKin
from backwave_django.jobs.tags import checked_tags, encode_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime, timedelta
    from uuid import UUID

    import svcs

    from backwave_django.core.jobs import LeasedJob
    from backwave_django.core.states import JobState
    from backwave_django.jobs.handle import JobHandle
    from backwave_django.jobs.kin import OfType
    from backwave_django.jobs.tags import TagValue

    T = TypeVar("T")

Row = TypeVar("Row")


class Signals:
    """What a pump tells a running body: set by the pump's thread, read by the body's.

    ``stopping``: the pump drains. ``cancel_reason``: the body is asked to stop now, and why.
    ``timed_out``: its time is over; ``interrupt`` is called then, if there is one.
    """

    __slots__ = ("_changed", "cancel_reason", "interrupt", "stopping", "timed_out")

    def __init__(self) -> None:
        self.stopping = False
        self.cancel_reason: CancelReason | None = None
        self.timed_out = False
        self.interrupt: Callable[[], None] | None = None
        self._changed: threading.Event | None = None

    def stop(self) -> None:
        """Let the body see that the pump drains."""
        self.stopping = True
        self._wake()

    def cancel(self, reason: CancelReason) -> None:
        """Ask the body to stop. The first reason stays."""
        if self.cancel_reason is None:
            self.cancel_reason = reason
        self._wake()
        if reason is CancelReason.TIMEOUT:
            self.timed_out = True
            if self.interrupt is not None:
                self.interrupt()

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for either signal; return whether one is set."""
        # The event is there before the flags are looked at, and a setter looks for the event
        # after it has set its flag: whoever comes second sees the other.
        if self._changed is None:
            self._changed = threading.Event()
        if not self._is_set():
            self._changed.wait(timeout)
        return self._is_set()

    def _is_set(self) -> bool:
        return self.stopping or self.cancel_reason is not None

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()


class JobContext:
    """One attempt, as its body sees it. It belongs to the attempt and ends with it."""

    def __init__(
        self,
        job: LeasedJob,
        *,
        max_attempts: int,
        signals: Signals,
        services: Callable[[], svcs.Container],
        progress: Callable[[int, int | None, str], None],
        stored: bool = True,
    ) -> None:
        self._job = job
        self._kin = StoredKin(job) if stored else NoKin(job)
        self._signals = signals
        self._open_services = services
        self._container: svcs.Container | None = None
        self._progress = progress
        self._added_tags: dict[str, TagValue] = {}
        self.max_attempts: Final = max_attempts

    def __repr__(self) -> str:
        return f"<JobContext of {self.wire_name} {self.job_id}, attempt {self.attempt}>"

    @property
    def job_id(self) -> UUID:
        """The id of the job."""
        return self._job.job_id

    @property
    def wire_name(self) -> str:
        """The wire name that the job was stored under."""
        return self._job.wire_name

    @property
    def attempt(self) -> int:
        """The number of this attempt; 1 is the first."""
        return self._job.attempt

    @property
    def queue(self) -> str:
        """The queue that the job was claimed from."""
        return self._job.queue

    @property
    def due_at(self) -> datetime:
        """When this attempt became due."""
        return self._job.due_at

    @property
    def deadline(self) -> datetime | None:
        """When the job must have begun, if there is such an instant."""
        return self._job.deadline

    @property
    def scheduled_for(self) -> datetime | None:
        """The nominal time of the tick that minted the job, if a schedule did."""
        return self._job.scheduled_for

    @property
    def lease_token(self) -> int:
        """A fencing token: it grows with every claim of this job and never comes twice.

        A side effect guarded by "only if the last token that was seen is lower" cannot be undone
        by an attempt that was cut off and comes back late.
        """
        return self._job.run

    @property
    def tags(self) -> Mapping[str, TagValue]:
        """The job's tags, with those that this attempt has added."""
        return {**json.loads(self._job.tags), **self._added_tags}

    @property
    def services(self) -> svcs.Container:
        """The container of this attempt: ``ctx.services.get(T)``. Closed when it ends."""
        if self._container is None:
            self._container = self._open_services()
        return self._container

    async def close_services(self) -> None:
        """Close what async factories opened, in the event loop that they opened it in."""
        if self._container is not None:
            await self._container.aclose()

    @property
    def signals(self) -> Signals:
        """What the pump tells this body, as one value to hand on."""
        return self._signals

    @property
    def stopping(self) -> bool:
        """Whether the pump drains: a long body should come to an end, or save where it is."""
        return self._signals.stopping

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was asked to stop now."""
        return self._signals.cancel_reason is not None

    def raise_if_cancelled(self) -> None:
        """Raise ``Cancelled`` when this attempt was asked to stop."""
        reason = self._signals.cancel_reason
        if reason is not None:
            raise Cancelled(f"asked to stop: {reason}")

    def wait(self, timeout: timedelta) -> bool:
        """Wait for ``timeout``, or less: return at once when the attempt is asked to stop.

        Returns whether it was: ``cancelled`` or ``stopping`` is set then.
        """
        return self._signals.wait(timeout.total_seconds())

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """Say how far the body is. The last word is shown with the next heartbeat."""
        self._progress(done, total, message)

    def track(
        self, rows: Iterable[Row], *, total: int | None = None, message: str = ""
    ) -> Iterator[Row]:
        """Yield ``rows``, saying how far the loop is and ending it when asked to stop.

        ``total`` is taken from ``len(rows)`` where there is one. Raises ``Cancelled``.
        """
        if total is None and isinstance(rows, Sized):
            total = len(rows)
        for done, row in enumerate(rows, start=1):
            self.raise_if_cancelled()
            yield row
            self.progress(done, total, message)

    def add_tags(self, tags: Mapping[str, TagValue] | None = None, /, **more: TagValue) -> None:
        """Add tags to the job, whether the attempt succeeds or not; the same name is replaced.

        Raises ``InvalidOption`` or ``PayloadTooLarge`` and adds nothing then.
        """
        added = {**self._added_tags, **checked_tags({**(tags or {}), **more})}
        encode_tags({**self.tags, **added})
        self._added_tags = added

    def collected_tags(self) -> dict[str, TagValue] | None:
        """Return what ``add_tags`` added, or ``None`` when that is nothing."""
        return dict(self._added_tags) or None

    @property
    def parents(self) -> tuple[JobHandle, ...]:
        """The jobs that this one waited for, in the order in which it named them."""
        return self._kin.parents()

    @overload
    def output_of(self, job: JobHandle[T] | OfType[T]) -> T | None: ...
    @overload
    def output_of(self, job: UUID | str) -> Any: ...
    def output_of(self, job: JobHandle | OfType[Any] | UUID | str) -> Any:
        """Return the output of an ancestor; ``None`` unless it succeeded.

        An ancestor is a job that this one waited for, directly or through others: nothing else
        has surely ended. It is named by its handle or id, by the name of its step, or by its job
        type or wire name when there is only one of these. Raises ``NotAnAncestor``.
        """
        return self._kin.find(job).output

    def state_of(self, job: JobHandle | OfType[Any] | UUID | str) -> JobState:
        """Return the state of an ancestor, which is named as for ``output_of``."""
        return self._kin.find(job).state

    async def aoutput_of(self, job: JobHandle | OfType[Any] | UUID | str) -> Any:
        """``output_of`` for async bodies."""
        return (await sync_to_async(self._kin.find)(job)).output


current_context: Final[ContextVar[JobContext | None]] = ContextVar(
    "backwave_current_context", default=None
)


def current() -> JobContext | None:
    """Return the context of the body that is running here, or ``None`` outside of bodies."""
    return current_context.get()
