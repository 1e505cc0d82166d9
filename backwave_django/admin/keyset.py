"""Pages of a list by the key of its first or last row, never by a number of rows to skip.

A list is one or more segments, shown one after the other; each walks one index in one direction.
A page is read in at most one statement per column of the order, each of which starts right at
the cursor's place in the index, so that the hundredth page costs what the first one does.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Field, Q

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.models import Model, QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The rows that ``condition`` names, by ``columns``; ``descending`` holds for all of them.

    The last column is unique, and no column is null in any of the rows.
    """

    columns: tuple[str, ...]
    descending: bool = False
    condition: Q = field(default_factory=Q)

    def order(self, *, backwards: bool) -> list[str]:
        """Return the columns as ``order_by`` takes them."""
        sign = "-" if self.descending != backwards else ""
        return [f"{sign}{column}" for column in self.columns]

    def beyond(self, values: Sequence[object], *, backwards: bool) -> Iterator[Q]:
        """Yield conditions that together name the rows past ``values``, the nearest first."""
        than = "lt" if self.descending != backwards else "gt"
        for last in reversed(range(len(self.columns))):
            same = dict(zip(self.columns[:last], values, strict=False))
            yield Q(**same, **{f"{self.columns[last]}__{than}": values[last]})


class Cursor(NamedTuple):
    """A place between two rows: next to the row with ``values`` in segment ``segment``."""

    segment: int
    values: tuple[Any, ...]

    def encode(self) -> str:
        """Return the cursor as a text for a URL."""
        text = json.dumps([self.segment, *map(str, self.values)], separators=(",", ":"))
        return urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str, *, model: type[Model], segments: Sequence[Segment]) -> Cursor | None:
        """Return what ``encode`` wrote, or ``None`` for anything else."""
        try:
            number, *values = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            columns = segments[number].columns
            fields = [_field(model, column) for column in columns]
            pairs = zip(fields, values, strict=True)
            return cls(number, tuple(each.to_python(value) for each, value in pairs))
        except (ValueError, TypeError, LookupError, ValidationError, FieldDoesNotExist):
            return None


def _field(model: type[Model], column: str) -> Field[Any, Any]:
    field = model._meta.get_field(column)  # noqa: SLF001 - the documented way to a field
    assert isinstance(field, Field), "a list is ordered by columns of its own table"
    return field


class Page(NamedTuple):
    """Rows in the order of the list, with cursors to its neighbours where there are any."""

    rows: list[Any]
    newer: str | None
    older: str | None


def read_page(
    rows: QuerySet[Any],
    segments: Sequence[Segment],
    *,
    after: Cursor | None = None,
    before: Cursor | None = None,
    size: int,
) -> Page:
    """Return the page after one cursor, or before another; the first one without any."""
    if before is not None:
        found = _walk(rows, segments, before, backwards=True, most=size + 1)
        if len(found) > size:
            return _page(found[size - 1 :: -1], segments, newer=True, older=True)
        # Fewer rows than a page are left up there: show the first page whole.
    found = _walk(rows, segments, after, backwards=False, most=size + 1)
    return _page(found[:size], segments, newer=after is not None, older=len(found) > size)


def _walk(
    rows: QuerySet[Any],
    segments: Sequence[Segment],
    start: Cursor | None,
    *,
    backwards: bool,
    most: int,
) -> list[tuple[int, Any]]:
    """Return up to ``most`` rows from ``start`` on, each with the number of its segment."""
    found: list[tuple[int, Any]] = []
    for number, condition in _stretches(segments, start, backwards=backwards):
        order = segments[number].order(backwards=backwards)
        left = most - len(found)
        found.extend((number, row) for row in rows.filter(condition).order_by(*order)[:left])
        if len(found) >= most:
            break
    return found


def _stretches(
    segments: Sequence[Segment], start: Cursor | None, *, backwards: bool
) -> Iterator[tuple[int, Q]]:
    numbers = range(len(segments))
    for number in reversed(numbers) if backwards else numbers:
        segment = segments[number]
        if start is None:
            yield number, segment.condition
        elif number == start.segment:
            for beyond in segment.beyond(start.values, backwards=backwards):
                yield number, segment.condition & beyond
        elif (number < start.segment) is backwards:
            yield number, segment.condition


def _page(
    found: list[tuple[int, Any]], segments: Sequence[Segment], *, newer: bool, older: bool
) -> Page:
    def cursor(place: tuple[int, Any]) -> str:
        number, row = place
        values = (getattr(row, column) for column in segments[number].columns)
        return Cursor(number, tuple(values)).encode()

    return Page(
        rows=[row for _number, row in found],
        newer=cursor(found[0]) if newer and found else None,
        older=cursor(found[-1]) if older and found else None,
    )
