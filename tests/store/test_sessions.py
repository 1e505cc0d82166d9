"""The pump's own connection: what is set for it, and for it alone."""

from datetime import timedelta

import psycopg
import pytest
from django.db import connection

from backwave_django.store.dialects.postgresql import PostgresPump
from backwave_django.store.executor import Executor
from backwave_django.store.names import Statement
from tests.builders import MINUTE, T0, claim_request, new_job
from tests.store.conftest import OpenStore

SETTINGS = Statement("SELECT name, setting FROM pg_settings WHERE name {any:names}")
EXPECTED = {
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "lock_timeout": "8000",
    "statement_timeout": "8000",
    "idle_in_transaction_session_timeout": "8000",
    "TimeZone": "UTC",
    "application_name": "backwave:test",
    "enable_sort": "on",
}


def settings_of(executor: Executor) -> dict[str, str]:
    return dict(executor.fetch(SETTINGS, {"names": list(EXPECTED)}))


@pytest.mark.vendor("postgresql")
def test_session_is_set_up_for_the_hot_statements(open_store: OpenStore) -> None:
    store = open_store(lease_duration=MINUTE)
    assert settings_of(store.executor) == EXPECTED


@pytest.mark.vendor("postgresql")
def test_sweeps_plan_as_the_server_is_set_up(open_store: OpenStore) -> None:
    executor = open_store().executor
    with executor.transaction():
        executor.relax()
        relaxed = settings_of(executor)
    assert (relaxed["enable_seqscan"], relaxed["enable_bitmapscan"]) == ("on", "on")
    assert relaxed["lock_timeout"] == "8000"
    assert settings_of(executor) == EXPECTED


@pytest.mark.vendor("postgresql")
def test_connection_notices_a_dead_server_within_a_sixth_of_the_lease(
    open_store: OpenStore,
) -> None:
    executor = open_store(lease_duration=MINUTE).executor
    executor.fetch(Statement("SELECT 1"), {})
    assert isinstance(executor, PostgresPump)
    assert executor._connection is not None
    said = executor._connection.info.get_parameters()
    watched = ("connect_timeout", "keepalives_idle", "keepalives_interval", "tcp_user_timeout")
    assert {name: said[name] for name in watched} == {
        "connect_timeout": "10",
        "keepalives_idle": "10",
        "keepalives_interval": "3",
        "tcp_user_timeout": "10000",
    }


@pytest.mark.vendor("postgresql")
def test_statements_are_prepared(open_store: OpenStore) -> None:
    store = open_store()
    store.claim(claim_request(), now=T0)
    rows = store.executor.fetch(Statement("SELECT count(*) FROM pg_prepared_statements"), {})
    assert rows[0][0] > 0


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_behind_a_pooler_settings_are_local_and_nothing_is_prepared() -> None:
    executor = PostgresPump(
        "default",
        application_name="backwave:test",
        lease_duration=MINUTE,
        pooler=True,
    )
    try:
        with executor.transaction():
            inside = settings_of(executor)
        prepared = executor.fetch(Statement("SELECT count(*) FROM pg_prepared_statements"), {})
        assert (inside, prepared) == (EXPECTED, [(0,)])
        assert executor._connection is not None
        assert executor._connection.execute("SHOW enable_seqscan").fetchone() == ("on",)
    finally:
        executor.close()


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_connection_takes_no_slot_of_the_projects_pool(
    monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"pool": {"min_size": 0}})
    assert settings_of(open_store().executor) == EXPECTED


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_role_of_the_project_is_assumed(
    monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE backwave_tester")
    try:
        options = {"assume_role": "backwave_tester"}
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
        executor = open_store().executor
        rows = executor.fetch(Statement("SELECT current_user::text"), {})
        executor.close()
        assert rows == [("backwave_tester",)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP ROLE backwave_tester")


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db
def test_busy_tables_are_stored_for_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, reloptions FROM pg_class WHERE relname = 'backwave_lease'")
        ((_, options),) = cursor.fetchall()
    assert {"fillfactor=50", "autovacuum_vacuum_scale_factor=0.02"} <= set(options)


@pytest.mark.vendor("sqlite")
def test_file_is_opened_for_many(open_store: OpenStore) -> None:
    executor = open_store(lease_duration=timedelta(seconds=6)).executor
    asked = ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
    said = {name: executor.fetch(Statement(f"PRAGMA {name}"), {})[0][0] for name in asked}
    assert said == {
        "journal_mode": "wal",
        "busy_timeout": 1000,
        "foreign_keys": 1,
        "synchronous": 1,
    }


@pytest.mark.vendor("sqlite")
def test_empty_claim_writes_nothing(open_store: OpenStore) -> None:
    store, other = open_store(), open_store()
    store.enqueue([new_job(1)])
    version = Statement("PRAGMA data_version")
    before = other.executor.fetch(version, {})
    store.claim(claim_request("elsewhere"), now=T0)
    assert other.executor.fetch(version, {}) == before


def test_closed_store_opens_again(open_store: OpenStore) -> None:
    store = open_store()
    store.enqueue([new_job(1)])
    store.close()
    store.close()
    assert len(store.claim(claim_request(), now=T0).jobs) == 1


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_session_that_cannot_be_set_up_is_closed(
    monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"assume_role": "nobody_at_all"})
    executor = open_store().executor
    assert isinstance(executor, PostgresPump)
    for _ in range(2):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="nobody_at_all"):
            executor.fetch(Statement("SELECT 1"), {})
        assert (executor._connection, executor._wire) == (None, None)
