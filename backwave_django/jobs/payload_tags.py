"""How the types that JSON lacks are written: an object with one key, the tag.

``{"$uuid": "..."}`` is a UUID. Only an object whose one key starts with a dollar is a tag; where a
dict of the author looks like one, its key is written with one dollar more, and reading takes that
one off again. So objects can be read from the inside out, in one pass of the JSON parser.

Plain numbers are what a JSON number keeps in every database. PostgreSQL's ``jsonb`` stores numbers
as exact decimals: an exponent is written out (``1e300`` would come back as an integer) and a
negative zero loses its sign. Such floats are tagged.
"""

import base64
import math
import re
import reprlib
from collections.abc import Callable
from dataclasses import fields
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from backwave_django.core.errors import UndecodablePayload
from backwave_django.core.observing import OutcomeEvent
from backwave_django.core.states import Cause, JobState
from backwave_django.jobs.payload_refusals import Refused

# 617 digits. The interpreter refuses to convert decimal text of more than 4,300 digits, or of as
# few as 640 where it is configured so; hexadecimal text has no such limit.
PLAIN_INT_BITS: Final = 2048

_EVENT_FIELDS: Final = tuple(field.name for field in fields(OutcomeEvent))

_TINY_OFFSET: Final = re.compile(r"([+-])00:00:00\.(\d{6})$", re.ASCII)


def tagged(tag: str, json_text: str) -> str:
    """Return the JSON text of the value that ``json_text`` stands for under ``tag``."""
    return f'{{"${tag}":{json_text}}}'


def write_int(value: int, _depth: int) -> str:
    """Return an int as a number, exactly, however large."""
    if value.bit_length() > PLAIN_INT_BITS:
        return tagged("int", f'"{value:#x}"')
    return str(value)


def write_float(value: float, _depth: int) -> str:
    """Return a float so that it comes back as the same float; refuses NaN and infinities."""
    if not math.isfinite(value):
        raise Refused(f"the float {value} is not a JSON number", "pass None, or a finite number")
    text = repr(value)
    if "e" in text or text == "-0.0":
        return tagged("float", f'"{text}"')
    return text


def write_decimal(value: Decimal, _depth: int) -> str:
    """Return a Decimal with all its digits; refuses NaN and infinities."""
    if not value.is_finite():
        raise Refused(f"the Decimal {value} is not a number", "pass None, or a finite number")
    return tagged("decimal", f'"{value}"')


def write_datetime(value: datetime, _depth: int) -> str:
    """Return a datetime with its microseconds and, when it is aware, its offset from UTC."""
    return tagged("datetime", f'"{_iso_with_offset(value)}"')


def write_time(value: time, _depth: int) -> str:
    """Return a time of day with its microseconds and, when it is aware, its offset from UTC."""
    return tagged("time", f'"{_iso_with_offset(value)}"')


def write_date(value: date, _depth: int) -> str:
    """Return a date."""
    return tagged("date", f'"{value.isoformat()}"')


def write_timedelta(value: timedelta, _depth: int) -> str:
    """Return a timedelta by its three exact parts."""
    return tagged("timedelta", f"[{value.days},{value.seconds},{value.microseconds}]")


def write_uuid(value: UUID, _depth: int) -> str:
    """Return a UUID in its canonical form."""
    return tagged("uuid", f'"{value}"')


def write_bytes(value: bytes, _depth: int) -> str:
    """Return bytes as base64."""
    return tagged("bytes", f'"{base64.b64encode(value).decode("ascii")}"')


def fields_of_event(event: OutcomeEvent) -> dict[object, object]:
    """Return what is written of an event; states and causes as plain text."""
    found: dict[object, object] = {name: getattr(event, name) for name in _EVENT_FIELDS}
    return found | {
        "state": event.state.value,
        "cause": event.cause.value,
        "tags": dict(event.tags),
    }


def finite_float(text: str) -> float:
    """Return the float that ``text`` spells. Raises ``ValueError`` unless it is finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is out of the range of a float")
    return value


def restore(found: dict[str, Any]) -> object:
    """Return what a parsed JSON object stands for: itself, or the value that it tags.

    Raises ``UndecodablePayload`` for an unknown tag and for one whose content does not fit.
    """
    if len(found) != 1:
        return found
    ((key, content),) = found.items()
    if not key.startswith("$"):
        return found
    if key.startswith("$$"):
        return {key[1:]: content}
    read = _READERS.get(key[1:])
    if read is None:
        raise UndecodablePayload(f"unknown tag {reprlib.repr(key)}")
    try:
        return read(content)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        # The content is not repeated: payloads hold what logs must not.
        raise UndecodablePayload(f"the content of a tag {key} does not fit it") from None


def _iso_with_offset(value: datetime | time) -> str:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise Refused(
            f"the zone of a {type(value).__name__} has no offset from UTC",
            "pass it without a zone, and the name of the zone beside it",
        )
    return value.isoformat()


def _text(content: object) -> str:
    if not isinstance(content, str):
        raise TypeError
    return content


def _read_float(content: object) -> float:
    return finite_float(_text(content))


def _read_decimal(content: object) -> Decimal:
    value = Decimal(_text(content))
    if not value.is_finite():
        raise ValueError
    return value


def _read_datetime(content: object) -> datetime:
    text = _text(content)
    value = datetime.fromisoformat(text)
    return value.replace(tzinfo=_exact_zone(value.tzinfo, text))


def _read_time(content: object) -> time:
    text = _text(content)
    value = time.fromisoformat(text)
    return value.replace(tzinfo=_exact_zone(value.tzinfo, text))


def _exact_zone(zone: tzinfo | None, text: str) -> tzinfo | None:
    # ``fromisoformat`` takes an offset of less than a second for UTC.
    if (tiny := _TINY_OFFSET.search(text)) is not None:
        return timezone(timedelta(microseconds=int("".join(tiny.groups()))))
    return zone


def _read_timedelta(content: object) -> timedelta:
    match content:
        case [int(days), int(seconds), int(microseconds)]:
            return timedelta(days=days, seconds=seconds, microseconds=microseconds)
        case _:
            raise ValueError


def _read_event(content: object) -> OutcomeEvent:
    if not isinstance(content, dict):
        raise TypeError
    # A newer release may write more of an event than this one knows.
    known = {name: value for name, value in content.items() if name in _EVENT_FIELDS}
    return OutcomeEvent(
        **known | {"state": JobState(known["state"]), "cause": Cause(known["cause"])}
    )


def _read_tuple(content: object) -> tuple[object, ...]:
    if not isinstance(content, list):
        raise TypeError
    return tuple(content)


_READERS: Final[dict[str, Callable[[object], object]]] = {
    "bytes": lambda content: base64.b64decode(_text(content), validate=True),
    "date": lambda content: date.fromisoformat(_text(content)),
    "datetime": _read_datetime,
    "decimal": _read_decimal,
    "event": _read_event,
    "float": _read_float,
    "int": lambda content: int(_text(content), 16),
    "time": _read_time,
    "timedelta": _read_timedelta,
    "tuple": _read_tuple,
    "uuid": lambda content: UUID(_text(content)),
}
