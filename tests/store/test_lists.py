"""Lists that a pump's connection writes by itself arrive as psycopg would have written them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat

from backwave_django.store.dialects.postgresql import PostgresPump
from backwave_django.store.names import Statement
from tests.builders import T0, uid
from tests.store.conftest import OpenStore

pytestmark = [pytest.mark.vendor("postgresql"), pytest.mark.django_db(transaction=True)]

TYPES = ("uuid", "text", "timestamp with time zone", "bigint")
ECHO = {
    kind: Statement(f"SELECT pg_typeof(%(given)s)::text, (%(given)s)::{kind}[]") for kind in TYPES
}
BERN = ZoneInfo("Europe/Zurich")
INSTANTS = [
    T0,
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2030, 3, 31, 1, 0, 0, 1, tzinfo=BERN),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
TEXTS = [
    "",
    "NULL",
    "null",
    "a,b",
    '{"a": [1]}',
    "back\\slash",
    "'",
    "\u2028 \U0001f4a7",
    "x" * 70_000,
]


def echoed(executor: PostgresPump, kind: str, items: list[Any]) -> tuple[str, list[Any]]:
    ((name, answer),) = executor.fetch(ECHO[kind], {"given": items})
    return name, answer


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        ("uuid", [uid(1), uid(2**100)]),
        ("uuid", [None, uid(1), None]),
        ("text", TEXTS),
        ("text", [None, "None", None]),
        ("timestamp with time zone", INSTANTS),
        ("timestamp with time zone", [None, *INSTANTS]),
        ("bigint", [1, None, 2**40]),
    ],
)
def test_lists_come_back_as_they_were(open_store: OpenStore, kind: str, items: list[Any]) -> None:
    executor = open_store().executor
    assert isinstance(executor, PostgresPump)
    assert echoed(executor, kind, items) == (f"{kind}[]", items)


@pytest.mark.parametrize("kind", TYPES)
def test_lists_of_nothing_are_of_whatever_type_is_asked_for(
    open_store: OpenStore, kind: str
) -> None:
    executor = open_store().executor
    assert isinstance(executor, PostgresPump)
    statement = Statement(f"SELECT (%(given)s)::{kind}[]")
    for items in ([], [None, None]):
        assert executor.fetch(statement, {"given": items}) == [(items,)]


def test_any_text_and_any_instant(open_store: OpenStore) -> None:
    executor = open_store().executor
    assert isinstance(executor, PostgresPump)
    texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    instants = st.datetimes(timezones=st.timezones() | st.just(UTC)).map(
        lambda at: at.astimezone(UTC) if at.year not in {1, 9999} else T0
    )

    @given(st.lists(texts | st.none(), min_size=1), st.lists(instants | st.none(), min_size=1))
    def holds(texts: list[str | None], instants: list[datetime | None]) -> None:
        both = Statement("SELECT (%(texts)s)::text[], (%(instants)s)::timestamptz[]")
        rows = executor.fetch(both, {"texts": texts, "instants": instants})
        assert rows == [(texts, instants)]

    holds()


def test_the_projects_own_connections_are_left_alone(open_store: OpenStore) -> None:
    open_store().executor.fetch(Statement("SELECT 1"), {})
    connection.ensure_connection()
    dumper = connection.connection.adapters.get_dumper(list, PyFormat.AUTO)
    assert dumper.__module__ == "psycopg.types.array"


def test_distance_from_the_epoch_is_exact(open_store: OpenStore) -> None:
    """Floats would lose microseconds far from the year 2000."""
    executor = open_store().executor
    assert isinstance(executor, PostgresPump)
    late = datetime(9000, 1, 1, tzinfo=UTC)
    near = [late + timedelta(microseconds=number) for number in range(5)]
    assert echoed(executor, "timestamp with time zone", near)[1] == near
