"""System checks: each reports under its id, names the setting and says what to write."""

import copy

import pytest
from django.conf import settings
from django.core import checks as django_checks
from django.core.checks import Error, registry, run_checks
from django.db import connections
from django.db.utils import ConnectionHandler
from django.test import override_settings

from backwave_django import checks
from backwave_django.checks import databases as database_checks
from backwave_django.checks import dials as dial_checks
from backwave_django.checks.databases import check_databases, check_server
from backwave_django.checks.dials import check_dials, check_paths, check_queues
from backwave_django.jobs.job_type import Declaration, JobType
from backwave_django.jobs.registry import Registry

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous=NORMAL;",
}


def ids(messages):
    return [message.id for message in messages]


@pytest.fixture
def databases(monkeypatch):
    """Let the checks see other settings of databases; nothing is connected to."""

    def see(**changes):
        values = copy.deepcopy(settings.DATABASES)
        values["default"] = {**values["default"], "OPTIONS": {}, **changes}
        monkeypatch.setattr(database_checks, "connections", ConnectionHandler(values))

    return see


@pytest.fixture
def job_types(monkeypatch):
    """A registry for one test: other tests declare what they like."""
    registry = Registry()
    monkeypatch.setattr(dial_checks, "registry", registry)
    return registry


def test_the_project_of_these_tests_is_clean(job_types):
    assert run_checks(tags=["backwave"]) == []


def test_all_checks_are_registered():
    registered = registry.registry.get_checks(include_deployment_checks=True)
    assert {getattr(checks, name) for name in checks.__all__} <= set(registered)


def test_wrong_dial_is_an_error_with_its_id_and_what_to_write():
    with override_settings(BACKWAVE={"GROUPS": {"a": {"POOL_SIZE": 0}}}):
        (found,) = run_checks(tags=["backwave"])
    assert found == Error(
        'BACKWAVE["GROUPS"]["a"]["POOL_SIZE"] is 0.',
        hint="Write a whole number, 1 or more.",
        id="backwave.E007",
    )


def test_limit_of_a_queue_that_cannot_be_is_an_error():
    with override_settings(BACKWAVE={"LIMITS": {"mail": {"LIMIT": 5, "RATE": "0/second"}}}):
        (found,) = run_checks(tags=["backwave"])
    assert found == Error(
        'BACKWAVE["LIMITS"]["mail"]["RATE"] is \'0/second\'.',
        hint="Write 1 to 1,000,000 starts.",
        id="backwave.E037",
    )


def test_heartbeat_as_long_as_the_lease_is_an_error():
    with override_settings(BACKWAVE={"GROUPS": {"a": {"HEARTBEAT_INTERVAL": 60}}}):
        (found,) = check_dials()
    assert found.id == "backwave.E015"
    assert "LEASE_DURATION (60 s)" in (found.hint or "")


def test_f086_project_without_time_zones_is_an_error():
    with override_settings(USE_TZ=False):
        (found,) = check_dials()
    assert (found.id, found.hint) == ("backwave.E030", "Write USE_TZ = True.")


@pytest.mark.parametrize(
    ("values", "identifier", "words"),
    [
        ({"SERVICES": "nowhere.register"}, "backwave.E021", "nowhere"),
        ({"SERVICES": "testproject.settings.BASE_DIR"}, "backwave.E021", "cannot be called"),
        ({"SERVICES": "register"}, "backwave.E021", "register"),
        ({"MIDDLEWARE": ["shop.nowhere.first"]}, "backwave.E022", "shop"),
    ],
)
def test_path_that_leads_nowhere_is_an_error(values, identifier, words):
    with override_settings(BACKWAVE=values):
        (found,) = check_paths()
    assert found.id == identifier
    assert words in found.msg


def test_job_type_whose_queue_no_group_serves_is_a_warning(job_types):
    def body() -> None: ...

    for name in ("a", "b", "c", "d"):
        job_types.add(JobType(body, Declaration(wire_name=f"shop.{name}", queue="bulk")))
    with override_settings(BACKWAVE={}):
        found = check_queues()
    assert found == [
        django_checks.Warning(
            "No group serves the queue 'bulk' of shop.a, shop.b, shop.c and 1 more.",
            hint='Add "bulk" to the QUEUES of a group in BACKWAVE["GROUPS"].',
            id="backwave.W001",
        )
    ]


def test_job_type_with_a_served_queue_is_clean(job_types):
    def body() -> None: ...

    job_types.add(JobType(body, Declaration(wire_name="shop.a")))
    with override_settings(BACKWAVE={}):
        assert check_queues() == []


def test_sqlite_without_wal_and_immediate_is_warned_about(databases):
    databases(ENGINE="django.db.backends.sqlite3", NAME="/tmp/x.sqlite3")  # noqa: S108 - not opened
    wal, immediate = check_databases()
    assert (wal.id, immediate.id) == ("backwave.W002", "backwave.W003")
    assert 'OPTIONS = {"init_command": "PRAGMA journal_mode=WAL;' in (wal.hint or "")
    assert 'OPTIONS = {"transaction_mode": "IMMEDIATE"' in (immediate.hint or "")


def test_sqlite_as_documented_is_clean(databases):
    databases(ENGINE="django.db.backends.sqlite3", NAME="x.sqlite3", OPTIONS=SQLITE_OPTIONS)
    assert check_databases() == []


@pytest.mark.parametrize("name", [":memory:", "file:jobs?mode=memory&cache=shared"])
def test_sqlite_in_memory_is_warned_about(databases, name):
    databases(ENGINE="django.db.backends.sqlite3", NAME=name)
    assert ids(check_databases()) == ["backwave.W006"]


def test_database_without_statements_is_an_error(databases):
    databases(ENGINE="django.db.backends.dummy")
    (found,) = check_databases()
    assert found.id == "backwave.E031"
    assert "PostgreSQL or SQLite" in (found.hint or "")


def test_pool_that_is_smaller_than_the_group_is_warned_about(databases):
    pool = {"min_size": 1, "max_size": 3}
    databases(ENGINE="django.db.backends.postgresql", NAME="x", OPTIONS={"pool": pool})
    with override_settings(BACKWAVE={"GROUPS": {"a": {"POOL_SIZE": 4, "PUMPS": 2}, "b": {}}}):
        small, other = check_databases()
    assert (small.id, other.id) == ("backwave.W005", "backwave.W005")
    assert "holds 3 connections" in small.msg
    assert '"max_size": 8' in (small.hint or "")
    assert '"max_size": 20' in (other.hint or "")


def test_pool_that_is_large_enough_is_clean(databases):
    databases(ENGINE="django.db.backends.postgresql", NAME="x", OPTIONS={"pool": {"max_size": 20}})
    with override_settings(BACKWAVE={}):
        assert check_databases() == []


def test_pool_with_its_own_default_is_warned_about(databases):
    databases(ENGINE="django.db.backends.postgresql", NAME="x", OPTIONS={"pool": True})
    with override_settings(BACKWAVE={}):
        assert ids(check_databases()) == ["backwave.W005"]


def test_pooler_needs_a_way_past_it_and_no_server_side_state(databases):
    databases(ENGINE="django.db.backends.postgresql", NAME="x")
    with override_settings(BACKWAVE={"POOLER": "transaction"}):
        assert ids(check_databases()) == ["backwave.W007", "backwave.W008"]


def test_pooler_as_documented_is_clean(databases):
    databases(ENGINE="django.db.backends.postgresql", NAME="x", DISABLE_SERVER_SIDE_CURSORS=True)
    values = {"POOLER": "transaction", "DIRECT_URL": "postgres://u:p@h:5432/x"}
    with override_settings(BACKWAVE=values):
        assert check_databases() == []


def test_wrong_dials_are_reported_alone(databases):
    databases(ENGINE="django.db.backends.dummy")
    with override_settings(BACKWAVE={"HINTS": 1}):
        assert ids(run_checks(tags=["backwave"])) == ["backwave.E027"]


@pytest.mark.django_db
def test_the_server_of_these_tests_is_new_enough():
    assert check_server(databases=list(connections)) == []


@pytest.mark.vendor("sqlite")
@pytest.mark.django_db
def test_sqlite_without_returning_is_an_error(monkeypatch):
    monkeypatch.setattr(database_checks, "OLDEST_SQLITE", (99, 0))
    assert ids(check_server(databases=["default"])) == ["backwave.E032"]
    assert check_server() == []
