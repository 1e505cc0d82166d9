"""``@backwave.on_outcome``: job types that run because other jobs ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from backwave_django.core.errors import InvalidDeclaration, InvalidOption, WrongArguments
from backwave_django.core.observing import OutcomeEvent
from backwave_django.core.states import TERMINAL, JobState
from backwave_django.jobs.decorators import job
from backwave_django.jobs.job_type import JobType
from backwave_django.jobs.registry import registry

if TYPE_CHECKING:
    from backwave_django.core.jobs import NewJob
    from backwave_django.core.observing import Ended

P = ParamSpec("P")
R = TypeVar("R")

#: The tag that a job of an observer has: the id of the job that it is about. Also where another
#: process does not know the observer, it tells that this job's own end is nobody's business.
MARK: Final = "backwave.observes"
_MESSAGE_CHARS: Final = 1_000


class Declared(NamedTuple):
    """One declaration: which ends of which job types a job type observes."""

    states: frozenset[JobState]
    patterns: tuple[str, ...]
    job_type: JobType[..., Any]


class Observers:
    """Every observer that this process's code declares. Safe to use from any thread.

    What ``core.observing.Observers`` asks for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: tuple[Declared, ...] = ()
        self._states: frozenset[JobState] = frozenset()
        self._matching: dict[tuple[str, JobState], tuple[JobType[..., Any], ...]] = {}

    def add(self, declared: Declared) -> None:
        """Register a declaration. A module that is loaded anew replaces what it declared before."""
        with self._lock:
            kept = [other for other in self._declared if not _replaces(declared, other)]
            self._declared = (*kept, declared)
            self._states = frozenset(state for each in self._declared for state in each.states)
            self._matching = {}

    @property
    def states(self) -> frozenset[JobState]:
        """The terminal states that anybody wants to know of."""
        return self._states

    def jobs(self, ended: Ended) -> tuple[NewJob, ...]:
        """Return a job for each observer of this end. There is none for an observer's own end."""
        observers = self._observers_of(ended.wire_name, ended.state)
        if not observers:
            return ()
        tags = json.loads(ended.tags)
        if MARK in tags:
            return ()
        event = _event(ended, tags)
        mark = {MARK: str(ended.job_id)}
        return tuple(one.options(tags=mark).new_job((event,), {}) for one in observers)

    def _observers_of(self, wire_name: str, state: JobState) -> tuple[JobType[..., Any], ...]:
        key = wire_name, state
        found = self._matching.get(key)
        if found is None:
            found = self._matching[key] = self._match(wire_name, state)
        return found

    def _match(self, wire_name: str, state: JobState) -> tuple[JobType[..., Any], ...]:
        """Return each observer once, by the name that the job has in storage and its type's own."""
        known = registry.find(wire_name)
        names = {wire_name} if known is None else {wire_name, known.wire_name}
        declared = self._declared
        if any(each.job_type is known for each in declared):
            return ()
        wanting = (
            each.job_type
            for each in declared
            if state in each.states
            and any(fnmatchcase(name, pattern) for name in names for pattern in each.patterns)
        )
        return tuple(dict.fromkeys(wanting))


observers: Final = Observers()


class Declare(Protocol):
    """``@backwave.on_outcome(...)``, waiting for a job type or for a body."""

    @overload
    def __call__(self, observer: JobType[P, R], /) -> JobType[P, R]: ...
    @overload
    def __call__(self, observer: Callable[P, R], /) -> JobType[P, R]: ...


def on_outcome(
    *states: JobState | str,
    jobs: str | JobType[..., Any] | Sequence[str | JobType[..., Any]] = "*",
) -> Declare:
    """Let a job run whenever a job ends in one of ``states``: ``@on_outcome("dead_lettered")``.

    ``jobs`` says of which job types: wire names, in which ``*`` stands for anything
    (``"orders.*"``), or job types. The body takes one argument, an ``OutcomeEvent``. Its job is
    inserted in the transaction that records the outcome, exactly once for each; like every job it
    runs at least once. What becomes of the jobs of observers is told to none. Goes above
    ``@backwave.job``, where that is needed for options. Raises ``InvalidOption`` and
    ``InvalidDeclaration``.
    """
    wanted = _states(states)
    patterns = _patterns(jobs)

    def declare(observer: Any) -> Any:
        job_type = observer if isinstance(observer, JobType) else job(observer)
        _check(job_type)
        observers.add(Declared(wanted, patterns, job_type))
        return job_type

    return declare


def _states(states: Sequence[object]) -> frozenset[JobState]:
    choices = ", ".join(repr(state.value) for state in JobState if state in TERMINAL)
    if not states:
        raise InvalidOption("states", states, f"name the ends to observe, of {choices}")
    for state in states:
        if state not in TERMINAL:
            raise InvalidOption("state", state, f"write one of {choices}")
    return frozenset(JobState(str(state)) for state in states)


def _patterns(jobs: object) -> tuple[str, ...]:
    listed = [jobs] if isinstance(jobs, str | JobType) else jobs
    if isinstance(listed, Sequence) and listed:
        patterns = tuple(each.wire_name if isinstance(each, JobType) else each for each in listed)
        if all(isinstance(each, str) and each for each in patterns):
            return patterns
    raise InvalidOption("jobs", jobs, 'write wire names or job types, ["orders.*", charge]')


def _check(job_type: JobType[..., Any]) -> None:
    try:
        job_type.parameters.bind(job_type.label, (None,), {})
    except WrongArguments as error:
        raise InvalidDeclaration(
            f"{job_type.label} observes outcomes, so it takes one argument, the event: {error}"
        ) from None
    if job_type.limit is not None and callable(job_type.limit.key):
        raise InvalidDeclaration(
            f"{job_type.label} observes outcomes, so the key of its limit has to be a text"
        )


def _replaces(new: Declared, old: Declared) -> bool:
    """Tell whether a module was loaded anew: the same code under another object."""
    return new.job_type is not old.job_type and new.job_type.label == old.job_type.label


def _event(ended: Ended, tags: dict[str, object]) -> OutcomeEvent:
    return OutcomeEvent(
        job_id=ended.job_id,
        wire_name=ended.wire_name,
        queue=ended.queue,
        state=ended.state,
        cause=ended.cause,
        attempt=ended.attempt,
        run=ended.run,
        finished_at=ended.finished_at,
        error_class=_clean(ended.error_class),
        message=_clean(ended.message),
        tags=tags,
    )


def _clean(text: str | None) -> str | None:
    """Return the beginning of ``text``, without what no payload may hold."""
    if text is None:
        return None
    kept = text[:_MESSAGE_CHARS].replace("\0", "\N{REPLACEMENT CHARACTER}")
    return kept.encode("utf-8", "replace").decode()
