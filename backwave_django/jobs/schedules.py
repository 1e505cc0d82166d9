"""``@backwave.schedule`` and ``backwave.add_schedule``: schedules that code declares."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from django.conf import settings

from backwave_django.core.bounds import MAX_SCHEDULE_CHARS
from backwave_django.core.errors import InvalidDeclaration, InvalidOption, UnknownJobType
from backwave_django.core.schedules import CatchUp, Rule, ScheduleSpec
from backwave_django.jobs.job_type import JobType
from backwave_django.jobs.names import check_key
from backwave_django.jobs.registry import registry
from backwave_django.jobs.signatures import Signature

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

_ANY_INSTANT: Final = datetime(2024, 1, 1, tzinfo=UTC)
_RULE_HINT: Final = 'write a cron expression, "0 2 * * *", or every=timedelta(...); not both'


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One declaration. Names that are not given, and the project's zone, are known later."""

    name: str | None
    rule: Rule
    timezone: str | None
    catch_up: CatchUp
    no_overlap: bool
    call: Signature

    def spec(self) -> ScheduleSpec:
        """Return what is stored. Raises ``UsageError`` for arguments that the job cannot take."""
        zone = self.timezone or settings.TIME_ZONE
        rule = Rule(cron=self.rule.cron, every_seconds=self.rule.every_seconds, timezone=zone)
        rule.timetable(anchor=_ANY_INSTANT)
        return self.call.schedule_spec(
            self.name,
            rule=rule,
            catch_up=self.catch_up,
            no_overlap=self.no_overlap,
        )


class Schedules:
    """Every schedule that this process's code declares. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: list[Declared] = []

    def add(self, declared: Declared) -> None:
        """Register a declaration. A module that is loaded anew replaces what it declared before."""
        with self._lock:
            self._declared = [other for other in self._declared if not _replaces(declared, other)]
            self._declared.append(declared)

    def specs(self) -> tuple[ScheduleSpec, ...]:
        """Return what is to be stored, by name, once Django is ready.

        Raises ``InvalidDeclaration`` for a name that is declared twice, and what ``Declared.spec``
        raises.
        """
        with self._lock:
            declared = tuple(self._declared)
        specs: dict[str, ScheduleSpec] = {}
        for spec in (one.spec() for one in declared):
            if spec.name in specs:
                raise InvalidDeclaration(
                    f"two schedules are named {spec.name!r}; give one of them a name of its own: "
                    'name="..."'
                )
            specs[spec.name] = spec
        return tuple(specs[name] for name in sorted(specs))


schedules: Final = Schedules()


def schedule(
    cron: str | None = None,
    /,
    *,
    every: timedelta | None = None,
    timezone: str | None = None,
    name: str | None = None,
    catch_up: CatchUp | str = CatchUp.SKIP,
    no_overlap: bool = False,
) -> Callable[[JobType[P, R]], JobType[P, R]]:
    """Let a job type run by a schedule; goes above ``@backwave.job``.

    ``cron`` has five fields, read on the clocks of ``timezone`` (the project's ``TIME_ZONE``
    unless given); ``every`` is an interval of a second or more, counted from the moment the
    schedule was stored. ``name`` is the wire name unless given. ``catch_up`` says what becomes
    of ticks that nothing was there to see: ``skip``, or ``coalesce`` into one job. With
    ``no_overlap`` a tick is skipped while an earlier job of the schedule is not over. The job
    must need no arguments; ``add_schedule`` takes some. Raises ``InvalidOption``.
    """
    rule = _rule(cron, every, timezone)
    checked = _checked(name, catch_up)

    def declare(job_type: JobType[P, R]) -> JobType[P, R]:
        if not isinstance(job_type, JobType):
            raise InvalidDeclaration(
                "@backwave.schedule goes above @backwave.job: it schedules a job type"
            )
        schedules.add(
            Declared(
                name=checked[0],
                rule=rule,
                timezone=timezone,
                catch_up=checked[1],
                no_overlap=no_overlap,
                call=Signature(job_type.options(), (), {}),
            )
        )
        return job_type

    return declare


def add_schedule(
    name: str,
    cron: str | None = None,
    /,
    *,
    job: Signature | JobType[Any, Any],
    every: timedelta | None = None,
    timezone: str | None = None,
    catch_up: CatchUp | str = CatchUp.SKIP,
    no_overlap: bool = False,
) -> None:
    """Declare a schedule of a call: ``add_schedule("cleanup", every=..., job=cleanup.s(30))``.

    For the rest see ``schedule``. Of a call's options ``queue``, ``priority`` and ``tags`` are
    kept. Raises ``InvalidOption``.
    """
    checked = _checked(name, catch_up)
    call = job if isinstance(job, Signature) else Signature(job.options(), (), {})
    call.check_schedulable()
    schedules.add(
        Declared(
            name=checked[0],
            rule=_rule(cron, every, timezone),
            timezone=timezone,
            catch_up=checked[1],
            no_overlap=no_overlap,
            call=call,
        )
    )


def spec_for_person(
    *,
    name: str,
    wire_name: str,
    arguments: object,
    cron: str | None = None,
    every: timedelta | None = None,
    timezone: str = "UTC",
    queue: str | None = None,
    priority: int | None = None,
    catch_up: str = CatchUp.SKIP,
    no_overlap: bool = False,
) -> ScheduleSpec:
    """Return the schedule that somebody wants to make in the admin.

    ``arguments`` is what a JSON text held: a list, or an object by name. ``None`` for ``queue``
    and ``priority`` stands for the job type's own. Raises ``UnknownJobType``, also for a job type
    that is not ``schedulable``, ``WrongArguments`` and ``InvalidOption``.
    """
    job_type = registry.find(wire_name)
    if job_type is None or not job_type.schedulable:
        open_to_people = [one.wire_name for one in registry.all() if one.schedulable]
        raise UnknownJobType(wire_name, open_to_people[:3])
    args, kwargs = _call(arguments)
    rule = _rule(cron, every, timezone)
    checked = _checked(name, catch_up)
    call = Signature(job_type.options(queue=queue, priority=priority), args, kwargs)
    return call.schedule_spec(checked[0], rule=rule, catch_up=checked[1], no_overlap=no_overlap)


def _call(arguments: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(arguments, list):
        return tuple(arguments), {}
    if isinstance(arguments, dict):
        return (), arguments
    raise InvalidOption("arguments", arguments, 'write a JSON list, or an object: {"days": 30}')


def _rule(cron: object, every: object, timezone: str | None) -> Rule:
    """Return the rule. Raises ``InvalidOption`` that names what is wrong with it."""
    if (cron is None) == (every is None):
        raise InvalidOption("every" if cron is None else "cron", cron, _RULE_HINT)
    if cron is not None and not isinstance(cron, str):
        raise InvalidOption("cron", cron, _RULE_HINT)
    if every is not None and not isinstance(every, timedelta):
        raise InvalidOption("every", every, "write a timedelta of one second or more")
    if timezone is not None and not isinstance(timezone, str):
        raise InvalidOption("timezone", timezone, 'write an IANA name like "Europe/Zurich"')
    seconds = None if every is None else every.total_seconds()
    rule = Rule(cron=cron, every_seconds=seconds, timezone=timezone or "UTC")
    rule.timetable(anchor=_ANY_INSTANT)
    return rule


def _checked(name: object, catch_up: object) -> tuple[str | None, CatchUp]:
    if name is not None:
        check_key("name", name, cap=MAX_SCHEDULE_CHARS)
    if catch_up not in tuple(CatchUp):
        raise InvalidOption("catch_up", catch_up, "write 'skip' or 'coalesce'")
    return (None if name is None else str(name)), CatchUp(str(catch_up))


def _replaces(new: Declared, old: Declared) -> bool:
    """Tell whether a module was loaded anew: the same code under another object."""
    return (
        new.name == old.name
        and new.call.caller.job_type is not old.call.caller.job_type
        and new.call.caller.label == old.call.caller.label
    )
