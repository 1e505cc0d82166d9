"""Why a value is refused as payload, and what to pass instead.

The answer is read off the type, never off the value: touching an attribute of a lazy object may
query the database, and the value's own text may hold what nobody should read in a log.
"""

import dataclasses
import reprlib
from collections import deque
from collections.abc import Callable, Generator, Mapping, MappingView, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Final
from uuid import UUID

from django.utils.functional import LazyObject, Promise

from backwave_django.core.errors import UnserializableValue

ACCEPTED: Final = (
    "pass None, bool, int, float, str, list, tuple, dict, datetime, date, time, timedelta, "
    "Decimal, UUID or bytes"
)

# A path through a circular value is as long as the depth bound; its ends are enough to find it.
_STEPS_SHOWN: Final = 12

# Characters of a key that a path shows whole; of a longer one it shows both ends.
_KEY_SHOWN: Final = 30

# The order matters: a datetime is a date.
_PLAIN_TYPES: Final = (
    *(int, float, list, tuple, dict, bytes),
    *(datetime, date, time, timedelta, Decimal, UUID),
)


class Refused(Exception):
    """A value that cannot be stored, on its way out of the containers that hold it.

    ``steps`` lead to it, innermost first: every container that it leaves appends its own.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.steps: list[str] = []

    def error(self, where: str) -> UnserializableValue:
        """Return what the caller sees: the refusal with the whole path, from ``where`` on."""
        return UnserializableValue(_path(where, self.steps[::-1]), self.problem, self.hint)


def refusal_of(kind: type) -> Refused:
    """Return the refusal of a value of type ``kind``, which is none that a payload can hold."""
    hint = next((hint for fits, hint in _HINTS if fits(kind)), None) or _plain_type_hint(kind)
    return Refused(f"a value of type {kind.__name__} cannot be stored", hint)


def step_into(key: str) -> str:
    """Return the part of a path that stands for the value under ``key``."""
    if key.isidentifier() and len(key) <= _KEY_SHOWN:
        return f".{key}"
    return f"[{reprlib.repr(key)}]"


def _path(where: str, steps: Sequence[str]) -> str:
    if not steps:
        return where
    if len(steps) > _STEPS_SHOWN:
        half = _STEPS_SHOWN // 2
        steps = (*steps[:half], " ... ", *steps[-half:])
    return f"{where} -> {''.join(steps)}"


def _plain_type_hint(kind: type) -> str:
    base = next((plain for plain in _PLAIN_TYPES if issubclass(kind, plain)), None)
    return ACCEPTED if base is None else f"pass a plain {base.__name__}"


def _is(*types: type) -> Callable[[type], bool]:
    return lambda kind: issubclass(kind, types)


def _has(*names: str) -> Callable[[type], bool]:
    """Recognise by attributes of the class, so that no model has to be imported to refuse one."""
    return lambda kind: all(hasattr(kind, name) for name in names)


_HINTS: Final[tuple[tuple[Callable[[type], bool], str], ...]] = (
    (_is(Promise), "call str() on it first"),
    (_is(LazyObject), "pass the value that it stands for; of a model instance, the primary key"),
    (_is(Enum), "pass .value"),
    (_has("_meta", "pk"), "pass the primary key (.pk) and load the row in the body"),
    (_has("is_authenticated"), "pass the primary key (.pk), or None for nobody"),
    (_has("values_list"), "pass the primary keys: list(queryset.values_list('pk', flat=True))"),
    (
        _has("build_absolute_uri"),
        "pass the values that the job needs; of the user, the primary key",
    ),
    (_is(set, frozenset), "pass sorted(value) or list(value)"),
    (_is(bytearray, memoryview), "pass bytes(value)"),
    (_is(Generator, MappingView, deque, range, map, filter, zip), "pass list(value)"),
    (lambda kind: issubclass(kind, Mapping) and not issubclass(kind, dict), "pass dict(value)"),
    (dataclasses.is_dataclass, "pass its fields: dataclasses.asdict(value)"),
)
