"""What the settings say of single queues: their caps and rates, and when they are served."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

from backwave_django.conf.reader import is_name
from backwave_django.core import bounds
from backwave_django.core.errors import InvalidOption
from backwave_django.core.limits import UNLIMITED, Cap
from backwave_django.core.rates import Rate
from backwave_django.core.windows import Window

if TYPE_CHECKING:
    from backwave_django.conf.reader import Reader

LIMIT_KEYS = ("LIMIT", "RATE")
_WINDOWS_HINT = 'Write a dict: {"reports": "20:00-06:00 Europe/Zurich"}.'
_LIMITS_HINT = 'Write a dict: {"mail": 20, "crawl": {"LIMIT": 5, "RATE": "10/second"}}.'
_NUMBER_HINT = f"Write a whole number, 0 to {bounds.MAX_CAP:,}"


def windows(top: Reader) -> Mapping[str, str]:
    """Return the windows of queues, as the store keeps them."""
    reader = _by_queue(top, "WINDOWS", _WINDOWS_HINT)
    found = {}
    for queue, text in reader.values.items():
        try:
            found[str(queue)] = str(Window.parse(text))
        except InvalidOption as error:
            reader.wrong(str(queue), _sentence(error.hint))
    return MappingProxyType(found)


def limits(top: Reader) -> Mapping[str, Cap]:
    """Return the caps and rates of queues."""
    reader = _by_queue(top, "LIMITS", _LIMITS_HINT)
    found = {str(queue): _cap(reader, str(queue)) for queue in reader.values}
    return MappingProxyType({queue: cap for queue, cap in found.items() if cap != UNLIMITED})


def _by_queue(top: Reader, key: str, hint: str) -> Reader:
    """Return a reader of the dict at ``key``; what is under no name of a queue is left out."""
    given = top.values.get(key, {})
    if not isinstance(given, Mapping):
        top.wrong(key, hint)
        given = {}
    named = {}
    for queue, value in given.items():
        if is_name(queue, most=bounds.MAX_QUEUE_CHARS):
            named[queue] = value
        else:
            words = f"Name each queue by 1 to {bounds.MAX_QUEUE_CHARS} characters."
            top.wrong(key, words, value=f"a dict with the queue {queue!r}")
    return top.below(key, named, tuple(named))


def _cap(reader: Reader, queue: str) -> Cap:
    given = reader.values[queue]
    if _is_number(given):
        return Cap(given)
    if not isinstance(given, Mapping) or not given:
        reader.wrong(queue, f'{_NUMBER_HINT}, or a dict of "LIMIT", "RATE" or both.')
        return UNLIMITED
    numbers = reader.below(queue, given, LIMIT_KEYS)
    return Cap(_number(numbers), _rate(numbers))


def _number(reader: Reader) -> int | None:
    given = reader.values.get("LIMIT")
    if _is_number(given):
        return given
    if "LIMIT" in reader.values:
        reader.wrong("LIMIT", f'{_NUMBER_HINT}, or leave "LIMIT" out.')
    return None


def _rate(reader: Reader) -> Rate | None:
    if "RATE" not in reader.values:
        return None
    try:
        return Rate.parse(reader.values["RATE"])
    except InvalidOption as error:
        reader.wrong("RATE", _sentence(error.hint))
        return None


def _is_number(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= bounds.MAX_CAP


def _sentence(hint: str) -> str:
    return f"{hint[0].upper()}{hint[1:]}."
