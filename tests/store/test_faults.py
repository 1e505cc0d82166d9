"""Which faults time heals: told by class and SQLSTATE."""

import sqlite3
import threading
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from backwave_django.core.contract import StoreSettings
from backwave_django.core.errors import StoreBroken, StoreError, StoreUnavailable
from backwave_django.store import default_store, open_pump_store
from backwave_django.store.faults import (
    is_duplicate,
    is_refused_data,
    is_transient,
    sqlstate,
    translated,
)
from backwave_django.store.names import Statement
from tests.builders import ACTOR, MINUTE, T0, claim_request, new_job, uid
from tests.store.conftest import OpenStore

TRANSIENT = (
    *("08000", "08003", "08006", "53100", "53200", "53300", "25006", "25P03", "40001", "40P01"),
    *("55P03", "57014", "57P01", "57P02", "57P03", "57P05"),
)
BROKEN = ("42P01", "42703", "42501", "23505", "22001", "XX000", "57P04", "0A000", "28P01", "58030")


def postgres_error(state: str) -> Exception:
    return psycopg.errors.lookup(state)("told by the server") if _known(state) else _with(state)


def _known(state: str) -> bool:
    try:
        psycopg.errors.lookup(state)
    except KeyError:
        return False
    return True


def _with(state: str) -> Exception:
    error = psycopg.OperationalError("told by the server")
    error.sqlstate = state
    return error


def wrapped(error: Exception) -> Exception:
    """As Django raises it."""
    outer = DatabaseError(str(error))
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize("state", TRANSIENT)
def test_time_heals_these_states(state: str) -> None:
    error = postgres_error(state)
    assert (sqlstate(error), is_transient(error), is_transient(wrapped(error))) == (
        state,
        True,
        True,
    )


@pytest.mark.parametrize("state", BROKEN)
def test_time_does_not_heal_these_states(state: str) -> None:
    error = postgres_error(state)
    assert (is_transient(error), is_transient(wrapped(error))) == (False, False)


@pytest.mark.parametrize("state", ["22P05", "22021", "22P02", "54000"])
def test_these_states_refuse_a_value(state: str) -> None:
    assert is_refused_data(postgres_error(state))


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("the connection is lost"),
        psycopg.InterfaceError("the connection is closed"),
        OperationalError("could not connect"),
        InterfaceError("connection already closed"),
    ],
)
def test_fault_that_the_driver_noticed_is_transient(error: Exception) -> None:
    assert is_transient(error)
    assert isinstance(translated(error), StoreUnavailable)


def test_value_that_the_driver_cannot_send_is_refused_data() -> None:
    assert is_refused_data(psycopg.DataError("text fields cannot contain NUL"))
    assert is_refused_data(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"))
    assert not is_refused_data(psycopg.errors.UndefinedTable("no such table"))


def test_message_names_the_state_on_one_line() -> None:
    error = psycopg.errors.lookup("42P01")('relation "x"\ndoes not exist')
    assert str(translated(error)) == 'relation "x" does not exist [42P01]'


def sqlite_fault(*statements: str) -> sqlite3.Error:
    here = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in statements:
            here.execute(statement)
    except sqlite3.Error as error:
        return error
    finally:
        here.close()
    raise AssertionError("nothing went wrong")


def test_missing_table_of_sqlite_is_broken() -> None:
    assert not is_transient(sqlite_fault("SELECT 1 FROM nowhere"))


def test_taken_key_of_sqlite_is_a_duplicate() -> None:
    table = ("CREATE TABLE t (a UNIQUE)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)")
    error = sqlite_fault(*table)
    assert (is_duplicate(error), is_transient(error)) == (True, False)
    assert is_duplicate(wrapped(psycopg.errors.UniqueViolation("taken")))


def run_held(hold: Callable[[threading.Event, threading.Event], None]) -> threading.Event:
    """Run ``hold`` in a thread until it holds what it is to hold; setting the event ends it."""
    holds, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold, args=(holds, done), daemon=True)
    thread.start()
    assert holds.wait(10)
    return done


@pytest.mark.vendor("sqlite")
def test_busy_file_is_unavailable(open_store: OpenStore) -> None:
    store = open_store(lease_duration=timedelta(milliseconds=60))
    default_store().enqueue([new_job(1)])
    path = connection.settings_dict["NAME"]

    def hold(holds: threading.Event, done: threading.Event) -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        holds.set()
        done.wait(20)
        other.execute("ROLLBACK")
        other.close()

    done = run_held(hold)
    try:
        with pytest.raises(StoreUnavailable):
            store.claim(claim_request(), now=T0)
    finally:
        done.set()


@pytest.mark.vendor("postgresql")
def test_operator_action_on_a_pump_connection_waits_only_so_long(open_store: OpenStore) -> None:
    store = open_store(lease_duration=timedelta(seconds=6))
    default_store().enqueue([new_job(1)])
    other = connection.copy("default")
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT 1 FROM backwave_job FOR UPDATE")
        with pytest.raises(StoreUnavailable, match=r"\[(55P03|57014)\]"):
            store.cancel([uid(1)], actor=ACTOR, now=T0)
    finally:
        other.rollback()
        other.close()
    (answer,) = store.cancel([uid(1)], actor=ACTOR, now=T0)
    assert answer.result == "done"


@pytest.mark.vendor("postgresql")
def test_ended_connection_is_unavailable_and_the_next_one_works(open_store: OpenStore) -> None:
    store = open_store()
    default_store().enqueue([new_job(1)])
    pid = store.executor.fetch(Statement("SELECT pg_backend_pid()"), {})[0][0]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
    with pytest.raises(StoreUnavailable):
        store.claim(claim_request(), now=T0)
    store.drop()
    assert len(store.claim(claim_request(), now=T0).jobs) == 1


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_refused_connection_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    store = open_pump_store(
        "default", StoreSettings(), application_name="test", lease_duration=MINUTE
    )
    with pytest.raises(StoreUnavailable):
        store.claim(claim_request(), now=T0)


def test_missing_table_is_broken(open_store: OpenStore) -> None:
    store = open_store()
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE backwave_settlequeue RENAME TO backwave_elsewhere")
    try:
        with pytest.raises(StoreBroken) as caught:
            store.settle(limit=1, now=T0)
        assert isinstance(caught.value, StoreError)
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE backwave_elsewhere RENAME TO backwave_settlequeue")
