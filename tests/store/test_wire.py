"""What a pump sends to PostgreSQL, and how it waits for the answer."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, connections

from backwave_django.store.dialects import wire as module
from backwave_django.store.dialects.postgresql import _DJANGO_ONLY
from backwave_django.store.dialects.wire import Wire
from backwave_django.store.faults import is_transient

pytestmark = [pytest.mark.vendor("postgresql"), pytest.mark.django_db(transaction=True)]

OpenWire = Callable[..., Wire]
PREPARED = b"SELECT name FROM pg_prepared_statements WHERE name LIKE 'backwave%'"


@pytest.fixture
def session() -> Iterator[psycopg.Connection[Any]]:
    parameters = connections.create_connection("default").get_connection_params()
    for name in _DJANGO_ONLY:
        parameters.pop(name, None)
    opened = psycopg.connect(**parameters, autocommit=True, prepare_threshold=0)
    yield opened
    opened.close()


@pytest.fixture
def open_wire(session: psycopg.Connection[Any]) -> Iterator[OpenWire]:
    wires: list[Wire] = []

    def opened(*, patience_seconds: float = 10.0, prepares: bool = True) -> Wire:
        wires.append(Wire(session, patience_seconds=patience_seconds, prepares=prepares))
        return wires[-1]

    yield opened
    for wire in wires:
        wire.close()


@pytest.mark.parametrize("prepares", [True, False])
def test_values_come_back_as_they_were_sent(open_wire: OpenWire, *, prepares: bool) -> None:
    values = ["é", 7, 2**40, None, True, datetime(2026, 1, 2, 3, tzinfo=UTC), UUID(int=5)]
    kinds = ["text", "int", "bigint", "text", "bool", "timestamptz", "uuid"]
    text = ", ".join(f"${number}::{kind}" for number, kind in enumerate(kinds, start=1))
    wire = open_wire(prepares=prepares)
    for sent in (values, [*values[:1], 2**30, *values[2:]]):
        assert wire.rows(f"SELECT {text}".encode(), sent) == [tuple(sent)]
    lists = [["a", None], [1, 2], [UUID(int=5)], []]
    assert wire.rows(b"SELECT $1::text[], $2::int[], $3::uuid[], $4::text[]", lists) == [
        tuple(lists)
    ]


def test_a_value_larger_than_what_the_server_takes_at_once_arrives(open_wire: OpenWire) -> None:
    size = 40_000_000
    assert open_wire().rows(b"SELECT length($1::text)", ["x" * size]) == [(size,)]


def test_changed_rows_are_counted(open_wire: OpenWire) -> None:
    wire = open_wire()
    wire.command(b"CREATE TEMPORARY TABLE counted (n int)")
    insert = b"INSERT INTO counted SELECT generate_series(1, $1::int)"
    assert wire.changed(insert, [5]) == 5
    wire.many(b"INSERT INTO counted VALUES ($1::int)", [[number] for number in range(10, 14)])
    wire.many(b"INSERT INTO counted VALUES ($1::int)", [[99]])
    assert wire.changed(b"UPDATE counted SET n = 0 WHERE n > $1", [3]) == 7
    assert wire.changed(b"CREATE TEMPORARY TABLE uncounted (n int)", []) == 0


def test_a_refused_statement_says_why_and_the_next_one_runs(open_wire: OpenWire) -> None:
    wire = open_wire()
    wire.command(b"BEGIN")
    with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero") as caught:
        wire.rows(b"SELECT 1 / $1::int", [0])
    assert (caught.value.sqlstate, caught.value.diag.severity) == ("22012", "ERROR")
    wire.command(b"ROLLBACK")
    # What was prepared before is still there after it.
    assert wire.rows(b"SELECT 1 / $1::int", [1]) == [(1,)]
    with pytest.raises(psycopg.errors.SyntaxError):
        wire.rows(b"SELEKT", [])
    assert wire.rows(b"SELECT 2", []) == [(2,)]


def test_a_silent_server_is_given_up(open_wire: OpenWire) -> None:
    wire = open_wire(patience_seconds=0.2)
    with pytest.raises(psycopg.OperationalError, match=r"silent for 0\.2 s") as caught:
        wire.rows(b"SELECT pg_sleep($1)", [5])
    assert is_transient(caught.value)
    # Its answer may still come, and is nobody's.
    with pytest.raises(psycopg.OperationalError) as caught:
        wire.rows(b"SELECT 1", [])
    assert is_transient(caught.value)


@pytest.mark.parametrize("prepares", [True, False])
def test_a_session_that_is_ended_is_a_fault_that_time_heals(
    session: psycopg.Connection[Any], open_wire: OpenWire, *, prepares: bool
) -> None:
    wire = open_wire(prepares=prepares)
    wire.rows(b"SELECT 1", [])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [session.info.backend_pid])
    with pytest.raises(psycopg.errors.AdminShutdown) as caught:
        wire.rows(b"SELECT 1", [])
    assert is_transient(caught.value)
    with pytest.raises(psycopg.OperationalError) as caught_again:
        wire.rows(b"SELECT 1", [])
    assert is_transient(caught_again.value)


def test_a_prepared_statement_is_named_after_what_it_says(
    session: psycopg.Connection[Any], open_wire: OpenWire
) -> None:
    first, second = open_wire(), open_wire()
    assert first.rows(b"SELECT $1::int", [1]) == [(1,)]
    # Another session of ours through the same pooler: never another statement by that name.
    with pytest.raises(psycopg.errors.DuplicatePreparedStatement):
        second.rows(b"SELECT $1::int", [1])
    assert second.rows(b"SELECT $1::int + 1", [1]) == [(2,)]
    assert len(first.rows(PREPARED, [])) == 3


def test_no_more_is_kept_prepared_than_there_is_use_for(
    monkeypatch: pytest.MonkeyPatch, open_wire: OpenWire
) -> None:
    monkeypatch.setattr(module, "_MOST_PREPARED", 3)
    wire = open_wire()
    wire.command(b"CREATE TEMPORARY TABLE many (n int)")
    for _ in range(2):
        for number in range(10):
            assert wire.rows(f"SELECT {number}".encode(), []) == [(number,)]
            assert len(wire.rows(PREPARED, [])) <= 3
        # What psycopg has prepared is its own.
        wire.many(b"INSERT INTO many VALUES ($1::int)", [[1], [2], [3]])
    assert wire.rows(b"SELECT count(*) FROM many", []) == [(6,)]


def test_without_preparing_nothing_is_kept(open_wire: OpenWire) -> None:
    wire = open_wire(prepares=False)
    assert wire.rows(b"SELECT $1::int", [1]) == [(1,)]
    assert wire.rows(PREPARED, []) == []
