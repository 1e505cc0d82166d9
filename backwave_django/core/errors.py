"""What can go wrong, split by whose fault it is.

::

    BackwaveError
    ├── UsageError                 the caller: fix the code that declares or enqueues
    │   ├── UnserializableValue    (TypeError) a value the payload codec refuses
    │   ├── PayloadTooLarge        (ValueError)
    │   ├── WrongArguments         (TypeError) they do not bind to the job's signature
    │   ├── InvalidOption          (ValueError) a delay, priority, queue, tag, ...
    │   ├── InvalidDeclaration     (TypeError) a decorator on something that is no job type
    │   ├── DuplicateWireName      (ValueError)
    │   ├── UnknownJobType         (LookupError) nothing is registered under the wire name
    │   ├── UnknownParent          (LookupError)
    │   ├── InsideTransaction      waiting for a job that this transaction hides
    │   ├── WorkflowClosed         a step that comes after the block has ended
    │   ├── NotAnAncestor          (LookupError) a body asks for a job that it did not wait for
    │   ├── WorkflowGone           (LookupError) purged, rolled back, or never there
    │   └── JobGone                (LookupError) purged, rolled back, or never there
    ├── ConfigurationError         the settings: a message says what to write
    ├── WaitTimeout                (TimeoutError) the job did not end in time
    ├── UndecodablePayload         (ValueError) stored bytes that are not a payload
    ├── StoreError                 the database
    │   ├── StoreUnavailable       time heals it: lost connection, deadlock, lock time-out, ...
    │   ├── StoreBroken            time does not heal it
    │   └── TurnFailed             the report was applied, the claim after it was not
    └── AttemptSignal              raised by a body to say how its attempt ends
        ├── RetryAfter
        ├── Snooze
        ├── GiveUp
        └── Cancelled

``JobTimedOut`` stands apart, as a ``BaseException``: it is raised into a body from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from uuid import UUID

    from backwave_django.core.contract import ReportAnswer


class BackwaveError(Exception):
    """Root of everything this package raises on purpose."""


class UsageError(BackwaveError):
    """The calling code asked for something that cannot be."""


class UnserializableValue(UsageError, TypeError):
    """A value that the payload codec refuses. ``path`` says where it sits."""

    def __init__(self, path: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{path}: {problem}" + (f"; {hint}" if hint else ""))
        self.path = path
        self.problem = problem
        self.hint = hint


class PayloadTooLarge(UsageError, ValueError):
    """An encoded payload, output or tag set over its cap. Sizes are bytes."""

    def __init__(self, what: str, size: int, cap: int) -> None:
        super().__init__(
            f"{what} is {size:,} bytes, over the cap of {cap:,}; "
            "store the data elsewhere and pass a reference to it"
        )
        self.what = what
        self.size = size
        self.cap = cap


class WrongArguments(UsageError, TypeError):
    """Arguments that do not bind to the job's signature."""

    def __init__(self, wire_name: str, problem: str) -> None:
        super().__init__(f"job {wire_name!r}: {problem}")
        self.wire_name = wire_name
        self.problem = problem


class InvalidOption(UsageError, ValueError):
    """An option with a value that cannot be; ``hint`` says what to write instead."""

    def __init__(self, option: str, value: object, hint: str) -> None:
        super().__init__(f"{option}={value!r}: {hint}")
        self.option = option
        self.value = value
        self.hint = hint


class InvalidDeclaration(UsageError, TypeError):
    """A decorator on something that cannot be a job type."""


class DuplicateWireName(UsageError, ValueError):
    """Two job types claim one wire name."""

    def __init__(self, wire_name: str, first: str, second: str) -> None:
        super().__init__(
            f"wire name {wire_name!r} is declared by {first} and again by {second}; "
            'give one of them a name of its own: @backwave.job("app.other_name")'
        )
        self.wire_name = wire_name


class UnknownJobType(UsageError, LookupError):
    """Nothing is registered under the wire name."""

    def __init__(self, wire_name: str, known: Sequence[str] = ()) -> None:
        near = f"; did you mean {' or '.join(map(repr, known))}?" if known else ""
        super().__init__(f"no job type is registered as {wire_name!r}{near}")
        self.wire_name = wire_name


class UnknownParent(UsageError, LookupError):
    """A dependency on a job that does not exist."""

    def __init__(self, missing: Sequence[UUID]) -> None:
        super().__init__("no such parent job: " + ", ".join(map(str, missing)))
        self.missing = tuple(missing)


class InsideTransaction(UsageError):
    """Waiting inside the transaction that hides the job from every pump."""


class WorkflowClosed(UsageError):
    """A workflow takes steps inside its ``with`` block only, and is entered once."""


class NotAnAncestor(UsageError, LookupError):
    """A body asked for a job that its own did not wait for, directly or through others."""


class WorkflowGone(UsageError, LookupError):
    """The workflow is not in the database: purged, rolled back, or never there."""

    def __init__(self, workflow_id: UUID) -> None:
        super().__init__(f"workflow {workflow_id} is gone: purged, rolled back, or never stored")
        self.workflow_id = workflow_id


class JobGone(UsageError, LookupError):
    """The job is not in the database: purged, rolled back, or never there."""

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"job {job_id} is gone: purged, rolled back, or never stored")
        self.job_id = job_id


class ConfigurationError(BackwaveError):
    """``settings.BACKWAVE`` cannot work as written."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(f"{problem} {hint}".rstrip())
        self.problem = problem
        self.hint = hint


class WaitTimeout(BackwaveError, TimeoutError):
    """The job did not reach a terminal state in the given time."""


class UndecodablePayload(BackwaveError, ValueError):
    """Stored text that is not a payload, with the reason."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class StoreError(BackwaveError):
    """The database did not do what it was asked."""


class StoreUnavailable(StoreError):
    """A fault that time heals. The operation left no trace, or its answer was lost."""


class StoreBroken(StoreError):
    """A fault that time does not heal: a missing table, a refused statement, a bug."""


class TurnFailed(StoreError):
    """A merged turn whose report stands and whose claim failed; ``fault`` says why."""

    def __init__(self, answer: ReportAnswer, fault: StoreError) -> None:
        super().__init__(str(fault))
        self.answer = answer
        self.fault = fault


class AttemptSignal(BackwaveError):
    """Raised by a body to say how its attempt ends."""


class RetryAfter(AttemptSignal):
    """The attempt failed; try again after ``delay`` instead of the policy's own."""

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        super().__init__(reason or f"retry after {delay}")
        self.delay = delay


class Snooze(AttemptSignal):
    """Not yet: run again after ``delay`` (at least one second). No attempt is spent."""

    def __init__(self, delay: timedelta) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay = delay


class GiveUp(AttemptSignal):
    """It will never work: dead-letter now, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "gave up")
        self.reason = reason


class Cancelled(AttemptSignal):
    """The body stops because it was asked to, or because it sees no point in going on."""


class JobTimedOut(BaseException):
    """Raised inside a body of ``timeout_mode="raise"`` when its time-out has passed, once.

    The outcome is decided by then: catch it to clean up, and raise it again. It is no
    ``Exception``, so that a loop which goes on after whatever went wrong ends all the same.
    """

    def __init__(self, message: str = "the attempt ran past its time-out") -> None:
        super().__init__(message)
