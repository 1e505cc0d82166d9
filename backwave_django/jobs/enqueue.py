"""From a call to rows: binding, encoding, inserting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, Unpack

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import transaction

from backwave_django.core.bounds import MAX_PAYLOAD_BYTES
from backwave_django.core.errors import PayloadTooLarge, UsageError, WrongArguments
from backwave_django.core.jobs import NewJob
from backwave_django.jobs import ports
from backwave_django.jobs.handle import JobHandle
from backwave_django.jobs.ids import new_id
from backwave_django.jobs.options import NO_OPTIONS, Options, OptionValues
from backwave_django.jobs.payload import encode_call
from backwave_django.jobs.signatures import Signature
from backwave_django.jobs.tags import encode_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from backwave_django.jobs.limits import Limit
    from backwave_django.jobs.parameters import Parameters
    from backwave_django.jobs.tags import TagValue

P = ParamSpec("P")
R = TypeVar("R")


class Target(Protocol):
    """What an enqueue has to know of a job type."""

    @property
    def wire_name(self) -> str:
        """The name that the job is stored under."""

    @property
    def label(self) -> str:
        """The dotted path of the code."""

    @property
    def version(self) -> int:
        """The version that the payload is stored under."""

    @property
    def queue(self) -> str:
        """The queue, unless an option names another."""

    @property
    def priority(self) -> int:
        """The priority, unless an option gives another."""

    @property
    def tags(self) -> Mapping[str, TagValue]:
        """The tags that every job of the type has."""

    @property
    def encoded_tags(self) -> str:
        """The same, as stored."""

    @property
    def limit(self) -> Limit | None:
        """The limit that its jobs count against."""

    @property
    def parameters(self) -> Parameters:
        """What its body takes."""


class BoundOptions(Generic[P, R]):
    """A job type together with options: everything that enqueues.

    It does not change and may be kept; a ``delay`` counts from each enqueue.
    """

    __slots__ = ("_options", "_target")

    def __init__(self, target: Target, options: Options = NO_OPTIONS) -> None:
        self._target = target
        self._options = options

    def __repr__(self) -> str:
        return f"<options of {self._target.wire_name}>"

    def options(self, **given: Unpack[OptionValues]) -> BoundOptions[P, R]:
        """Return the same with more options; one that is given again is replaced."""
        return BoundOptions(self._target, self._options.with_(given))

    @property
    def job_type(self) -> Target:
        """The job type that these are options of."""
        return self._target

    @property
    def label(self) -> str:
        """The dotted path of the job type's code."""
        return self._target.label

    @property
    def wire_name(self) -> str:
        """The name that its jobs are stored under."""
        return self._target.wire_name

    @property
    def limit(self) -> Limit | None:
        """The limit that its jobs count against."""
        return self._target.limit

    def s(self, *args: P.args, **kwargs: P.kwargs) -> Signature[R]:
        """Return the call, to be made later: by a schedule, or by ``enqueue`` on it."""
        return Signature(self, args, kwargs)

    def takes(self, parameter: str) -> bool:
        """Tell whether the body has a parameter of this name."""
        return parameter in self._target.parameters.signature.parameters

    def one_off_option(self) -> str | None:
        """Name an option that holds for one job only, if one is given."""
        return self._options.one_off()

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Insert one job in the transaction that is open on the jobs' database, if one is.

        The handle's id is the stored job's at once; no pump sees the job before the commit. An
        atomic block on another database has no hold of the job: use ``on_commit`` there.
        Raises ``WrongArguments``, ``UnserializableValue``, ``PayloadTooLarge``,
        ``UnknownParent`` and store errors, always before anything was written.
        """
        return _insert([self.new_job(args, kwargs)], self._target.limit)[0]

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def enqueue_many(
        self, calls: Iterable[tuple[Any, ...] | list[Any] | Mapping[str, Any]]
    ) -> list[JobHandle[R]]:
        """Insert one job per call, all or none, in a constant number of round trips.

        A call is a tuple of positional arguments or a mapping of named ones. Handles come in the
        order of the calls. Raises what ``enqueue`` raises, with a note of which call it was.
        """
        now = cache(ports.wired().now)  # which asks the database
        jobs = [self._numbered(number, call, now) for number, call in enumerate(calls, start=1)]
        return _insert(jobs, self._target.limit) if jobs else []

    async def aenqueue_many(
        self, calls: Iterable[tuple[Any, ...] | list[Any] | Mapping[str, Any]]
    ) -> list[JobHandle[R]]:
        """``enqueue_many`` for async code."""
        return await sync_to_async(self.enqueue_many)(calls)

    def on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Insert one job when the transaction on the default database commits; never if it fails.

        For jobs that live in another database than the rows they are about; where both are the
        same, ``enqueue`` promises more. The arguments are checked and taken now. The handle's id
        is known now too, unless a unique key answers at the commit: then the handle turns to
        that job. A process that dies between the commit and the insert loses the job. For another
        database than the default: ``transaction.on_commit(partial(job.enqueue, 1), using=...)``.
        """
        job = self.new_job(args, kwargs)
        handle: JobHandle[R] = JobHandle(job.id)

        def insert_now() -> None:
            answer = _insert([job], self._target.limit)[0]
            handle.answered_with(answer.id, state=answer.state, created=answer.created)

        transaction.on_commit(insert_now)
        return handle

    def _numbered(self, number: int, call: object, now: Callable[[], datetime]) -> NewJob:
        try:
            if isinstance(call, tuple | list):
                return self.new_job(tuple(call), {}, now=now)
            if isinstance(call, Mapping):
                return self.new_job((), call, now=now)
            raise WrongArguments(
                self._target.wire_name,
                f"a call is a tuple of its arguments, (42,), not a {type(call).__name__}",
            )
        except UsageError as error:
            error.add_note(f"in call {number} of enqueue_many")
            raise

    def new_job(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        now: Callable[[], datetime] | None = None,
    ) -> NewJob:
        """Return the job of a call, which is not stored. Raises what ``enqueue`` raises.

        A ``delay`` counts from ``now``, the database's clock: this machine's may be wrong.
        """
        target, options = self._target, self._options
        wire_name = target.wire_name
        parameters = target.parameters
        call = parameters.bind(wire_name, args, kwargs)
        payload = encode_call(call.args, call.kwargs, names=parameters.ordered)
        _check_size(payload)
        limit = target.limit
        limit_key = None if limit is None else limit.key_of(args, kwargs)
        if options is NO_OPTIONS:
            return NewJob(
                id=new_id(),
                wire_name=wire_name,
                queue=target.queue,
                payload=payload,
                payload_version=target.version,
                priority=target.priority,
                tags=target.encoded_tags,
                limit_key=limit_key,
            )
        now = now or ports.wired().now
        due_at = options.due_at(now)
        return NewJob(
            id=new_id(),
            wire_name=wire_name,
            queue=target.queue if options.queue is None else options.queue,
            payload=payload,
            payload_version=target.version,
            priority=target.priority if options.priority is None else options.priority,
            due_at=due_at,
            deadline=options.deadline_at(due_at, now),
            tags=_tags(target, options),
            limit_key=limit_key,
            unique_key=options.unique,
            if_duplicate=options.if_duplicate,
            parents=tuple((parent, options.after_mode) for parent in options.after),
        )


def _insert(jobs: Sequence[NewJob], limit: Limit | None) -> list[JobHandle]:
    intake = ports.wired().intake
    try:
        if limit is not None:
            keys = {job.limit_key for job in jobs if job.limit_key is not None}
            intake.declare_limits(dict.fromkeys(keys, limit.cap))
        answers = intake.enqueue(jobs)
    except SynchronousOnlyOperation:
        raise SynchronousOnlyOperation(
            f"enqueueing {jobs[0].wire_name!r} from async code would block the event loop; "
            "use await job.aenqueue(...), or aenqueue_many"
        ) from None
    return [JobHandle(a.id, state=a.state, created=a.created) for a in answers]


def _check_size(payload: str) -> None:
    # A character is at most four bytes: short texts need no counting.
    if len(payload) * 4 > MAX_PAYLOAD_BYTES:
        size = len(payload.encode())
        if size > MAX_PAYLOAD_BYTES:
            raise PayloadTooLarge("the payload", size, MAX_PAYLOAD_BYTES)


def _tags(target: Target, options: Options) -> str:
    if not options.tags:
        return target.encoded_tags
    return encode_tags({**target.tags, **options.tags})
