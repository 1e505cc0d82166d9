"""A job from the outside: what it has become, and what can be done about it."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Self, overload
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections

from backwave_django.conf import get_config
from backwave_django.core.errors import InsideTransaction, JobGone, WaitTimeout
from backwave_django.core.states import TERMINAL, Cause, JobState
from backwave_django.jobs import ports
from backwave_django.jobs.asking import asking
from backwave_django.jobs.payload import decode

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from typing_extensions import TypeVar

    from backwave_django.core.contract import ActionAnswer
    from backwave_django.jobs.ports import JobRecord, Reason

    T = TypeVar("T")
    # A bare ``JobHandle`` is one of any output.
    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

_FIRST_LOOK: Final = 0.02
_LAST_LOOK: Final = 0.5


class _Nobodys:
    """No body returns one: only a handle of ``Any`` passes for a handle of it."""


class Output:
    """Reads the output of a handle; of an async body that is what awaiting it gives."""

    @overload
    def __get__(self, handle: None, owner: type[Any]) -> Output: ...
    @overload
    def __get__(self, handle: JobHandle[_Nobodys], owner: type[Any]) -> Any: ...
    @overload
    def __get__(self, handle: JobHandle[Coroutine[Any, Any, T]], owner: type[Any]) -> T | None: ...
    @overload
    def __get__(self, handle: JobHandle[R_co], owner: type[Any]) -> R_co | None: ...
    def __get__(self, handle: JobHandle[Any] | None, owner: type[Any]) -> Any:
        """Return what the body returned, as last read; ``None`` until it succeeded."""
        if handle is None:
            return self
        text = handle.record.output
        return None if text is None else decode(text)


class JobHandle(Generic[R_co]):
    """The id of a job with what was last read of it. Make one of any job's id.

    ``id`` is known from the start, also inside the transaction that enqueues the job. ``created``
    is false when a unique key answered with a job that was there before, and for a handle that
    was made of an id. Nothing here shows the payload.
    """

    __slots__ = ("_record", "_state", "created", "id")

    def __init__(
        self, job_id: UUID | str, *, state: JobState | None = None, created: bool = False
    ) -> None:
        self.id = job_id if isinstance(job_id, UUID) else UUID(job_id)
        self.created = created
        self._state = state
        self._record: JobRecord | None = None

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def refresh(self) -> Self:
        """Read the job anew and return this handle. Raises ``JobGone``."""
        record = ports.wired().desk.read(self.id)
        if record is None:
            raise JobGone(self.id)
        return self.read_as(record)

    async def arefresh(self) -> Self:
        """``refresh`` for async code."""
        return await sync_to_async(self.refresh)()

    @property
    def state(self) -> JobState:
        """The state as last read; read now if it never was. Raises ``JobGone``."""
        return self._state if self._state is not None else self.record.state

    @property
    def record(self) -> JobRecord:
        """All that was last read; read now if nothing was. Raises ``JobGone``."""
        if self._record is None:
            self.refresh()
        assert self._record is not None
        return self._record

    #: What the body returned, as last read; ``None`` until it succeeded.
    output = Output()

    @property
    def cause(self) -> Cause | None:
        """Why the job is terminal, as last read; ``None`` while it is not."""
        return self.record.cause

    def cancel(self, *, actor: str, reason: str = "") -> ActionAnswer:
        """Cancel the job; one that runs is asked to stop, and decides itself when it does.

        ``actor`` is who asks: a name for the audit trail. The answer says what came of it.
        """
        return ports.wired().desk.cancel(self.id, actor=asking(actor, reason))

    async def acancel(self, *, actor: str, reason: str = "") -> ActionAnswer:
        """``cancel`` for async code."""
        return await sync_to_async(self.cancel)(actor=actor, reason=reason)

    def explain(self) -> tuple[Reason, ...]:
        """Return why the job stands where it stands, the decisive reason first.

        What is in the way of a job that does not run, all of it; where one that runs is; how one
        that ended did. Reads anew, and shows no values and no messages of errors. At least one
        reason; raises ``JobGone``.
        """
        reasons = ports.wired().desk.explain(self.id)
        if not reasons:
            raise JobGone(self.id)
        return reasons

    async def aexplain(self) -> tuple[Reason, ...]:
        """``explain`` for async code."""
        return await sync_to_async(self.explain)()

    def wait(self, timeout: float | timedelta) -> Self:
        """Return this handle once the job is terminal; ``timeout`` is in seconds.

        Raises ``WaitTimeout``, ``JobGone``, and ``InsideTransaction`` in an atomic block on the
        jobs' database: no pump sees a job, and the block no outcome, before it ends.
        """
        left = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
        pause = _FIRST_LOOK
        never = threading.Event()
        while True:
            self._refuse_inside_transaction()
            if self.refresh().state in TERMINAL:
                return self
            if left <= 0:
                raise WaitTimeout(f"job {self.id} is {self.state} after {timeout} of waiting")
            never.wait(min(pause, left))
            left -= pause
            pause = min(pause * 2, _LAST_LOOK)

    def _refuse_inside_transaction(self) -> None:
        alias = get_config().database
        if connections[alias].in_atomic_block:
            raise InsideTransaction(
                f"waiting for job {self.id} inside transaction.atomic() on {alias!r} can never "
                "end: the job is not visible to any pump until the block does; wait after it"
            )

    def read_as(self, record: JobRecord) -> Self:
        """Take in what was read of the job, and return this handle."""
        self._record, self._state = record, record.state
        return self

    def answered_with(self, job_id: UUID, *, state: JobState, created: bool) -> None:
        """Take in the store's answer to an enqueue that happened after this handle was made."""
        self.id, self._state, self.created = job_id, state, created
