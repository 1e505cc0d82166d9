"""How a pump's connection writes lists: at once, in PostgreSQL's binary form.

psycopg asks a dumper for each element, and quotes each text; for the columns of a batch that was a
quarter of the pump's own time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from struct import pack
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from psycopg.postgres import types
from psycopg.pq import Format
from psycopg.types.array import ListDumper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import Connection
    from psycopg.abc import Buffer, DumperKey, PyFormat
    from psycopg.types.array import BaseListDumper

_NULL: Final = b"\xff\xff\xff\xff"
_UUID_SIZE: Final = pack("!i", 16)
#: Instants count microseconds from here.
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_DAY, _SECOND = 86_400_000_000, 1_000_000


def _uuid(value: UUID) -> bytes:
    return _UUID_SIZE + value.bytes


def _text(value: str) -> bytes:
    raw = value.encode()
    return pack("!i", len(raw)) + raw


def _instant(value: datetime) -> bytes:
    since = value - _EPOCH
    return pack("!iq", 8, since.days * _DAY + since.seconds * _SECOND + since.microseconds)


class _QuickDumper(ListDumper):
    """Writes a flat list of one kind. The format: docs of ``array_send`` in PostgreSQL's source."""

    format = Format.BINARY
    element: int
    written: Callable[[Any], bytes]

    def dump(self, obj: Sequence[Any]) -> Buffer:
        """Return the number of dimensions, whether NULLs are in it, its type, size and items."""
        written = type(self).written
        has_null = None in obj
        head = pack("!iiIii", 1, has_null, self.element, len(obj), 1)
        if has_null:
            return head + b"".join(_NULL if one is None else written(one) for one in obj)
        return head + b"".join(map(written, obj))


class _UuidsDumper(_QuickDumper):
    oid, element = types["uuid"].array_oid, types["uuid"].oid
    written = staticmethod(_uuid)


class _TextsDumper(_QuickDumper):
    oid, element = types["text"].array_oid, types["text"].oid
    written = staticmethod(_text)


class _InstantsDumper(_QuickDumper):
    oid, element = types["timestamptz"].array_oid, types["timestamptz"].oid
    written = staticmethod(_instant)


_QUICK: Final[dict[type, type[_QuickDumper]]] = {
    UUID: _UuidsDumper,
    str: _TextsDumper,
    datetime: _InstantsDumper,
}


class _AnyListDumper(ListDumper):
    """Leaves lists of other kinds to psycopg."""

    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:  # noqa: A002 - psycopg's name
        kind = _kind(obj)
        return (list, kind) if kind in _QUICK else super().get_key(obj, format)

    def upgrade(self, obj: list[Any], format: PyFormat) -> BaseListDumper:  # noqa: A002 - the same
        quick = _QUICK.get(_kind(obj))
        return quick(list, self._tx) if quick else super().upgrade(obj, format)


def _kind(items: list[Any]) -> type:
    return type(next((item for item in items if item is not None), None))


def write_lists_at_once(connection: Connection[Any]) -> None:
    """Make ``connection`` write lists of identifiers, texts and instants in the quick way.

    All values of a list are of one type, or ``None``; instants are aware.
    """
    connection.adapters.register_dumper(list, _AnyListDumper)
