"""``@backwave.job``: the decorator, and what it checks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, overload

from backwave_django.core.errors import InvalidDeclaration, InvalidOption
from backwave_django.core.retries import Retry
from backwave_django.jobs.job_type import Declaration, JobType, TimeoutMode
from backwave_django.jobs.limits import Limit
from backwave_django.jobs.names import check_queue, check_wire_name
from backwave_django.jobs.options import check_priority
from backwave_django.jobs.registry import registry
from backwave_django.jobs.tags import checked_tags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backwave_django.jobs.tags import TagValue

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Runnable(Protocol[P, R_co]):
    """An instance of a job class."""

    def run(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the body."""
        ...


class JobDecorator(Protocol):
    """``@backwave.job(...)``, waiting for its body."""

    @overload
    def __call__(self, body: type[Runnable[P, R]], /) -> JobType[P, R]: ...
    @overload
    def __call__(self, body: Callable[P, R], /) -> JobType[P, R]: ...


@overload
def job(body: type[Runnable[P, R]], /) -> JobType[P, R]: ...
@overload
def job(body: Callable[P, R], /) -> JobType[P, R]: ...
@overload
def job(
    wire_name: str | None = None,
    /,
    *,
    queue: str = "default",
    priority: int = 0,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    timeout_mode: TimeoutMode | Literal["signal", "raise"] = "signal",
    limit: Limit | None = None,
    aliases: Sequence[str] = (),
    tags: Mapping[str, TagValue] | None = None,
    version: int | None = None,
    schedulable: bool = False,
    atomic: bool = False,
) -> JobDecorator: ...
def job(subject: Any = None, /, **options: Any) -> Any:
    """Declare a job type: a function, an async function, or a class with ``run``.

    Bare, or with no name, its wire name is the app's label and the function's name.
    ``retry`` replaces the worker group's policy; ``timeout`` is how long an attempt may take, and
    with ``timeout_mode="raise"`` ``JobTimedOut`` is raised in a body that takes longer;
    ``limit`` caps how many run at once; ``aliases`` are wire names that jobs may still be stored
    under; ``tags`` go on every job; ``version`` is that of the payload, from 1; ``schedulable``
    lets people make schedules of it in the admin; ``atomic`` commits what the body writes to the
    jobs' database together with its success, or not at all. Raises ``InvalidDeclaration``,
    ``InvalidOption`` or ``DuplicateWireName``.
    """
    if subject is None or isinstance(subject, str):
        declaration = _checked(subject, **options)
        return lambda body: _declare(body, declaration)
    if options:
        raise InvalidDeclaration("options need the form @backwave.job(name, option=...)")
    return _declare(subject, Declaration())


def _declare(body: Any, declaration: Declaration) -> JobType[Any, Any]:
    declared: JobType[Any, Any] = JobType(body, declaration)
    registry.add(declared)
    return declared


def _checked(
    wire_name: str | None,
    *,
    queue: str = "default",
    priority: int = 0,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    timeout_mode: str = "signal",
    limit: Limit | None = None,
    aliases: Sequence[str] = (),
    tags: Mapping[str, TagValue] | None = None,
    version: int | None = None,
    schedulable: bool = False,
    atomic: bool = False,
) -> Declaration:
    if retry is not None and not isinstance(retry, Retry):
        raise InvalidOption("retry", retry, "write backwave.Retry(max_attempts=...)")
    if limit is not None and not isinstance(limit, Limit):
        raise InvalidOption("limit", limit, "write backwave.Limit(key, number)")
    return Declaration(
        wire_name=None if wire_name is None else check_wire_name(wire_name),
        aliases=_aliases(aliases),
        queue=check_queue(queue),
        priority=check_priority(priority),
        retry=retry,
        timeout=_timeout(timeout),
        timeout_mode=_timeout_mode(timeout_mode, timeout),
        limit=limit,
        tags=checked_tags(tags or {}),
        version=_version(version),
        schedulable=_flag("schedulable", schedulable),
        atomic=_flag("atomic", atomic),
    )


def _aliases(aliases: object) -> tuple[str, ...]:
    if isinstance(aliases, list | tuple):
        return tuple(check_wire_name(alias) for alias in aliases)
    raise InvalidOption("aliases", aliases, 'write a tuple of wire names, ("orders.charge_card",)')


def _timeout(timeout: object) -> timedelta | None:
    if timeout is None or (isinstance(timeout, timedelta) and timeout > timedelta(0)):
        return timeout
    raise InvalidOption("timeout", timeout, "write a timedelta above zero")


def _timeout_mode(mode: object, timeout: object) -> TimeoutMode:
    if not isinstance(mode, str) or mode not in {each.value for each in TimeoutMode}:
        raise InvalidOption("timeout_mode", mode, "write 'signal' or 'raise'")
    if mode == TimeoutMode.RAISE and timeout is None:
        raise InvalidOption("timeout_mode", mode, "there is nothing to raise without timeout=")
    return TimeoutMode(mode)


def _flag(option: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidOption(option, value, "write True or False")


def _version(version: object) -> int | None:
    if version is None or (type(version) is int and 1 <= version < 2**31):
        return version
    raise InvalidOption("version", version, "write a whole number of 1 or more")
