"""The payload codec: what a job's arguments and its output may be, and how they are stored.

What goes in comes out with the same type and value, or is refused where it is passed, by the path
of the value: None, bool, int, float, str, list, tuple, dict with str keys, datetime, date, time,
timedelta, Decimal, UUID, bytes, and ``OutcomeEvent``. Three things are given up, knowingly:

- The zone of an aware datetime becomes its offset from UTC at that instant, and ``fold`` goes.
- A subclass of str (Django's ``SafeString``) comes back as str. Enum members and lazy
  translations, which only look like text, are refused; so is a subclass of any other type.
- A database that re-orders the keys of JSON objects gives a dict back in its own order.

The text is JSON that every supported database can store, ``jsonb`` included, and holds neither
NUL nor lone surrogates. Sizes are bounded where jobs are enqueued, not here.
"""

import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

from backwave_django.core.errors import UndecodablePayload
from backwave_django.core.observing import OutcomeEvent
from backwave_django.jobs import payload_tags as tags
from backwave_django.jobs.payload_refusals import Refused, refusal_of, step_into

# Deep enough for any real document. A tuple takes two levels of JSON, so this stays well below
# the 1,000 levels of the interpreter's stack and of SQLite's JSON functions; it also ends the
# walk through a list that contains itself.
MAX_DEPTH: Final = 200

_CALL: Final = {"args", "kwargs"}

_NUL: Final = "\0"

_Writer: TypeAlias = Callable[[Any, int], str]

_quote = json.JSONEncoder(ensure_ascii=False).encode


def encode(value: object, *, where: str) -> str:
    """Return ``value`` as compact JSON text that ``decode`` turns back into it.

    ``where`` is what errors call the root: ``output``, or ``argument 'order_id'``. Raises
    ``UnserializableValue`` naming the path of the first value that cannot be stored.
    """
    try:
        return _WRITERS.get(type(value), _write_other)(value, 0)
    except Refused as refused:
        raise refused.error(where) from None


def encode_call(
    args: Sequence[object], kwargs: Mapping[str, object], *, names: Sequence[str] = ()
) -> str:
    """Return the arguments of one call as JSON text for ``decode_call``.

    ``names`` are the parameters' names in order, for the paths in errors; a positional argument
    beyond them goes by its number, from 1. Raises ``UnserializableValue``.
    """
    written: list[str] = []
    try:
        for value in args:
            write = _WRITERS.get(type(value), _write_other)
            written.append(write(value, 0))
    except Refused as refused:
        raise refused.error(_argument(len(written), names)) from None
    keywords = _encode_keywords(kwargs) if kwargs else "{}"
    return f'{{"args":[{",".join(written)}],"kwargs":{keywords}}}'


def decode(text: object) -> object:
    """Return the value that ``encode`` wrote as ``text``.

    Raises ``UndecodablePayload``, and nothing else, whatever a damaged row gives it to read.
    """
    if not isinstance(text, str):
        raise UndecodablePayload(f"expected JSON text, found {type(text).__name__}")
    # Tags are rare, and looking for them costs more than the rest of a small payload.
    decoder = _TAGGED_JSON if '"$' in text else _PLAIN_JSON
    try:
        return decoder.decode(text)
    except UndecodablePayload:
        raise
    except RecursionError:
        raise UndecodablePayload("nested too deeply") from None
    except ValueError as error:
        raise UndecodablePayload(f"not JSON: {error}") from error


def decode_call(text: object) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the positional and the keyword arguments that ``encode_call`` wrote as ``text``.

    Raises ``UndecodablePayload`` also for JSON that is not the arguments of a call.
    """
    found = decode(text)
    if isinstance(found, dict) and found.keys() == _CALL:
        args, kwargs = found["args"], found["kwargs"]
        if isinstance(args, list) and isinstance(kwargs, dict):
            return tuple(args), kwargs
    raise UndecodablePayload('expected an object of "args" (a list) and "kwargs" (an object)')


def _argument(index: int, names: Sequence[str]) -> str:
    return f"argument {names[index]!r}" if index < len(names) else f"argument {index + 1}"


def _encode_keywords(kwargs: Mapping[str, object]) -> str:
    written: list[str] = []
    for name, value in kwargs.items():
        try:
            key = _write_name(name)
        except Refused as refused:
            raise refused.error("keyword arguments") from None
        try:
            text = _WRITERS.get(type(value), _write_other)(value, 0)
        except Refused as refused:
            raise refused.error(f"argument {name!r}") from None
        written.append(f"{key}:{text}")
    return _object(written)


def _write_none(_value: None, _depth: int) -> str:
    return "null"


def _write_bool(value: bool, _depth: int) -> str:  # noqa: FBT001 - called by type, like its peers
    return "true" if value else "false"


def _write_str(value: str, _depth: int) -> str:
    if (flaw := _flaw(value)) is not None:
        raise Refused(f"the text has {flaw}", "pass text without it, or bytes")
    return _quote(value)


def _write_sequence(values: list[object] | tuple[object, ...], depth: int) -> str:
    _check_depth(depth)
    written: list[str] = []
    try:
        for value in values:
            write = _WRITERS.get(type(value), _write_other)
            written.append(write(value, depth + 1))
    except Refused as refused:
        refused.steps.append(f"[{len(written)}]")
        raise
    items = f"[{','.join(written)}]"
    return items if type(values) is list else tags.tagged("tuple", items)


def _write_dict(values: dict[object, object], depth: int) -> str:
    _check_depth(depth)
    written: list[str] = []
    for key, value in values.items():
        label = _write_key(key)
        try:
            text = _WRITERS.get(type(value), _write_other)(value, depth + 1)
        except Refused as refused:
            refused.steps.append(step_into(str.__str__(key)))
            raise
        written.append(f"{label}:{text}")
    return _object(written)


def _object(pairs: list[str]) -> str:
    if len(pairs) == 1 and pairs[0].startswith('"$'):
        return f'{{"${pairs[0][1:]}}}'  # one dollar more, so that it is not read as a tag
    return f"{{{','.join(pairs)}}}"


def _write_event(event: OutcomeEvent, depth: int) -> str:
    return tags.tagged("event", _write_dict(tags.fields_of_event(event), depth))


def _write_key(key: Any) -> str:
    if not _is_text(type(key)):
        raise Refused(f"a key is of type {type(key).__name__}", "use keys of type str")
    text = str.__str__(key)
    if (flaw := _flaw(text)) is not None:
        raise Refused(f"the key {reprlib.repr(text)} has {flaw}", "use keys without it")
    return _quote(text)


#: Parameters have few names, and each is written with every call. Typed, because a member of an
#: enumeration may equal a text and is refused all the same.
_write_name = lru_cache(maxsize=4096, typed=True)(_write_key)


def _write_other(value: Any, depth: int) -> str:
    if _is_text(type(value)):
        return _write_str(str.__str__(value), depth)
    raise refusal_of(type(value))


def _is_text(kind: type) -> bool:
    return issubclass(kind, str) and not issubclass(kind, Enum)


def _flaw(text: str) -> str | None:
    """Return what databases refuse in ``text``, with its index, or None."""
    if _NUL in text:
        return f"a NUL character at index {text.index(_NUL)}"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"a lone surrogate at index {error.start}"
    return None


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise Refused(
            f"it is nested deeper than {MAX_DEPTH} levels, or contains itself",
            "pass a flatter value",
        )


def _refuse_constant(name: str) -> NoReturn:
    raise UndecodablePayload(f"not JSON: {name} is not a number")


_WRITERS: Final[dict[type, _Writer]] = {
    type(None): _write_none,
    bool: _write_bool,
    int: tags.write_int,
    float: tags.write_float,
    str: _write_str,
    list: _write_sequence,
    tuple: _write_sequence,
    dict: _write_dict,
    datetime: tags.write_datetime,
    date: tags.write_date,
    time: tags.write_time,
    timedelta: tags.write_timedelta,
    Decimal: tags.write_decimal,
    UUID: tags.write_uuid,
    bytes: tags.write_bytes,
    OutcomeEvent: _write_event,
}

_PLAIN_JSON: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=tags.finite_float
)
_TAGGED_JSON: Final = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=tags.finite_float, object_hook=tags.restore
)
