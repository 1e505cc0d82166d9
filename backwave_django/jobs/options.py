"""What a caller may say about one enqueue, checked where it is said."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict
from uuid import UUID

from backwave_django.core.bounds import MAX_PRIORITY, MAX_UNIQUE_KEY_CHARS, MIN_PRIORITY
from backwave_django.core.errors import InvalidOption
from backwave_django.core.jobs import EdgeMode, IfDuplicate
from backwave_django.jobs.handle import JobHandle
from backwave_django.jobs.names import check_key, check_queue
from backwave_django.jobs.tags import checked_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import StrEnum

    from backwave_django.jobs.tags import TagValue


class OptionValues(TypedDict, total=False):
    """The options of one enqueue. ``None`` means not given.

    ``delay`` or ``due_at`` (aware) says when the job becomes due, instead of now. ``deadline`` is
    when it must have begun: an aware instant, or a span that counts from when it becomes due.
    ``queue`` and ``priority`` (-100 to 100, high first) replace the job type's, ``tags`` are added
    to its. ``unique`` is a key that at most one live job holds, of whatever type; ``if_duplicate``
    says what a job that has ended under the key means for a new one. ``after`` names jobs to wait
    for, ``after_mode`` whether they must succeed (``on_success``) or only end (``on_any``).
    """

    delay: timedelta | None
    due_at: datetime | None
    queue: str | None
    priority: int | None
    tags: Mapping[str, TagValue] | None
    deadline: timedelta | datetime | None
    unique: str | None
    if_duplicate: IfDuplicate | str | None
    after: JobHandle | UUID | Sequence[JobHandle | UUID] | None
    after_mode: EdgeMode | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked options. ``due`` is a span from the enqueue or an instant in UTC."""

    due: timedelta | datetime | None = None
    queue: str | None = None
    priority: int | None = None
    tags: Mapping[str, TagValue] = field(default_factory=dict)
    deadline: timedelta | datetime | None = None
    unique: str | None = None
    if_duplicate: IfDuplicate = IfDuplicate.ALLOW_AFTER_FAILURE
    after: tuple[UUID, ...] = ()
    after_mode: EdgeMode = EdgeMode.ON_SUCCESS

    def with_(self, given: OptionValues) -> Options:
        """Return these options with the given ones in place. Raises ``InvalidOption``."""
        values = {name: value for name, value in given.items() if value is not None}
        _refuse_unknown(values)
        _refuse_pair(values, "delay", "due_at")
        changes = {}
        for name, value in values.items():
            attribute, check = _CHECKS[name]
            changes[attribute] = check(value)
        changed = replace(self, **changes)
        if "tags" in changes:
            changed = replace(changed, tags={**self.tags, **changed.tags})
        _refuse_idle(changed, values)
        return changed

    def one_off(self) -> str | None:
        """Name an option that can hold for one job only, if one is given."""
        given = {
            "delay": self.due,
            "deadline": self.deadline,
            "unique": self.unique,
            "after": self.after,
        }
        return next((name for name, value in given.items() if value), None)

    def due_at(self, now: Callable[[], datetime]) -> datetime | None:
        """Return when the job becomes due; ``None`` is now, by the database's clock."""
        if isinstance(self.due, timedelta):
            return _moved("delay", now(), self.due) if self.due else None
        return self.due

    def deadline_at(self, due_at: datetime | None, now: Callable[[], datetime]) -> datetime | None:
        """Return when the job must have begun. Raises ``InvalidOption`` if that is before due."""
        deadline = self.deadline
        if isinstance(deadline, timedelta):
            return _moved("deadline", due_at or now(), deadline)
        if deadline is not None and due_at is not None and deadline <= due_at:
            raise InvalidOption(
                "deadline",
                deadline.isoformat(),
                f"the job becomes due at {due_at.isoformat()} only, so it would never run",
            )
        return deadline


NO_OPTIONS: Final = Options()


def check_priority(value: object) -> int:
    """Return ``value`` if it can be a priority; else raise ``InvalidOption``."""
    if type(value) is int and MIN_PRIORITY <= value <= MAX_PRIORITY:
        return value
    raise InvalidOption(
        "priority", value, f"write a whole number from {MIN_PRIORITY} to {MAX_PRIORITY}"
    )


def _delay(value: object) -> timedelta:
    if isinstance(value, timedelta) and value >= timedelta(0):
        return value
    raise InvalidOption("delay", value, "write a timedelta of zero or more")


def _due_at(value: object) -> datetime:
    return _instant("due_at", value)


def _deadline(value: object) -> timedelta | datetime:
    if not isinstance(value, timedelta):
        return _instant("deadline", value)
    if value > timedelta(0):
        return value
    raise InvalidOption("deadline", value, "write a timedelta above zero, or an aware datetime")


def _instant(option: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidOption(option, value, "write an aware datetime, or a timedelta")
    if value.utcoffset() is None:
        raise InvalidOption(
            option,
            value.isoformat(),
            "a naive datetime may mean any zone; write timezone.now() + a timedelta, "
            "or timezone.make_aware(value)",
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidOption(option, value.isoformat(), "it is out of range in UTC") from None


def _moved(option: str, start: datetime, by: timedelta) -> datetime:
    try:
        return start + by
    except OverflowError:
        raise InvalidOption(option, by, "it ends after the year 9999") from None


def _unique(value: object) -> str:
    return check_key("unique", value, cap=MAX_UNIQUE_KEY_CHARS)


def checked_after(value: object) -> tuple[UUID, ...]:
    """Return the ids of the jobs to wait for, each once. Raises ``InvalidOption``."""
    listed = [value] if isinstance(value, JobHandle | UUID) else value
    if isinstance(listed, Sequence) and all(isinstance(x, JobHandle | UUID) for x in listed):
        ids = (parent.id if isinstance(parent, JobHandle) else parent for parent in listed)
        return tuple(dict.fromkeys(ids))
    raise InvalidOption("after", value, "write a list of job handles, or of jobs' ids (UUID)")


def _one_of(option: str, kind: type[StrEnum]) -> Callable[[object], StrEnum]:
    def check(value: object) -> StrEnum:
        if isinstance(value, str) and value in {member.value for member in kind}:
            return kind(value)
        choices = ", ".join(repr(member.value) for member in kind)
        raise InvalidOption(option, value, f"write one of {choices}")

    return check


_CHECKS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "delay": ("due", _delay),
    "due_at": ("due", _due_at),
    "queue": ("queue", check_queue),
    "priority": ("priority", check_priority),
    "tags": ("tags", checked_tags),
    "deadline": ("deadline", _deadline),
    "unique": ("unique", _unique),
    "if_duplicate": ("if_duplicate", _one_of("if_duplicate", IfDuplicate)),
    "after": ("after", checked_after),
    "after_mode": ("after_mode", _one_of("after_mode", EdgeMode)),
}


def _refuse_unknown(values: Mapping[str, object]) -> None:
    for name in values.keys() - _CHECKS.keys():
        near = difflib.get_close_matches(name, _CHECKS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_CHECKS)}"
        raise InvalidOption(name, values[name], f"there is no such option; {hint}")


def _refuse_pair(values: Mapping[str, object], one: str, other: str) -> None:
    if one in values and other in values:
        raise InvalidOption(other, values[other], f"{one} says the same thing: give one of them")


def _refuse_idle(options: Options, values: Mapping[str, object]) -> None:
    if "if_duplicate" in values and options.unique is None:
        raise InvalidOption("if_duplicate", values["if_duplicate"], "give unique= with it")
    if "after_mode" in values and not options.after and "after" not in values:
        raise InvalidOption("after_mode", values["after_mode"], "give after= with it")
