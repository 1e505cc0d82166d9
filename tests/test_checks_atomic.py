"""What atomic bodies need of the database, said before anything starts."""

import copy

import pytest
from django.conf import settings
from django.db.utils import ConnectionHandler
from django.test import override_settings
from psycopg import IsolationLevel

from backwave_django import conf
from backwave_django.checks import atomic as atomic_checks
from backwave_django.checks.atomic import check_atomic
from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs.job_type import Declaration, JobType
from backwave_django.jobs.registry import Registry
from backwave_django.monitor.clock import database_clock
from backwave_django.pumps import company
from backwave_django.pumps.company import refuse_company
from backwave_django.pumps.plans import plan_node
from tests.factories import PumpFactory

TWO = {"GROUPS": {"a": {"PUMPS": 2}, "b": {}}}


def body() -> None: ...


@pytest.fixture
def job_types(monkeypatch):
    """A registry with one atomic job type, and one that is not."""
    registry = Registry()
    for module in (atomic_checks, company):
        monkeypatch.setattr(module, "registry", registry)
    registry.add(JobType(body, Declaration(wire_name="shop.plain")))
    registry.add(JobType(body, Declaration(wire_name="shop.pay", atomic=True)))
    return registry


@pytest.fixture
def databases(monkeypatch):
    """Let the check see other settings of the database; nothing is connected to."""

    def see(engine, **options):
        values = copy.deepcopy(settings.DATABASES)
        engine = f"django.db.backends.{engine}"
        values["default"] = {**values["default"], "ENGINE": engine, "OPTIONS": options}
        monkeypatch.setattr(atomic_checks, "connections", ConnectionHandler(values))

    return see


@pytest.mark.usefixtures("job_types")
def test_pumps_that_an_atomic_body_would_hold_up_are_an_error(databases):
    databases("sqlite3")
    with override_settings(BACKWAVE=TWO):
        (found,) = check_atomic()
    assert found.id == "backwave.E035"
    assert found.msg == (
        "'shop.pay' is atomic, jobs live in SQLite, and the group \"a\" has 2 pumps."
    )
    assert "run one process with one pump" in (found.hint or "")


@pytest.mark.usefixtures("job_types")
@pytest.mark.parametrize("engine", ["sqlite3", "postgresql"])
def test_settings_that_suit_atomic_bodies_are_clean(databases, engine):
    databases(engine)
    with override_settings(BACKWAVE={} if engine == "sqlite3" else TWO):
        assert check_atomic() == []


def test_without_atomic_bodies_there_is_nothing_to_say(databases, monkeypatch):
    monkeypatch.setattr(atomic_checks, "registry", Registry())
    databases("sqlite3")
    with override_settings(BACKWAVE=TWO):
        assert check_atomic() == []


@pytest.mark.usefixtures("job_types")
@pytest.mark.parametrize("level", IsolationLevel)
def test_isolation_in_which_no_atomic_body_could_be_committed_is_an_error(databases, level):
    databases("postgresql", isolation_level=level)
    with override_settings(BACKWAVE={}):
        found = check_atomic()
    strict = level > IsolationLevel.READ_COMMITTED
    assert [each.id for each in found] == (["backwave.E036"] if strict else [])


def plan(**groups):
    config, _ = conf.read({"GROUPS": groups}, databases=tuple(settings.DATABASES))
    return plan_node(config, groups=list(groups))


@pytest.mark.django_db
@pytest.mark.vendor("sqlite")
@pytest.mark.usefixtures("job_types")
def test_on_sqlite_atomic_bodies_want_to_be_alone():
    refuse_company(plan(a={}), processes=1, using="default")
    for groups, processes in (({"a": {}}, 2), ({"a": {"PUMPS": 2}}, 1), ({"a": {}, "b": {}}, 1)):
        with pytest.raises(ConfigurationError, match=r"'shop.pay' is atomic, and 2 pumps"):
            refuse_company(plan(**groups), processes=processes, using="default")


@pytest.mark.django_db
@pytest.mark.vendor("sqlite")
@pytest.mark.usefixtures("job_types")
def test_on_sqlite_pumps_that_are_there_already_are_company():
    pump = PumpFactory.create(seen_at=database_clock())
    with pytest.raises(ConfigurationError, match="works on this SQLite database"):
        refuse_company(plan(a={}), processes=1, using="default")
    pump.stopped_at = pump.seen_at
    pump.save()
    refuse_company(plan(a={}), processes=1, using="default")


@pytest.mark.django_db
@pytest.mark.vendor("postgresql")
@pytest.mark.usefixtures("job_types")
def test_on_postgresql_nobody_is_in_the_way():
    PumpFactory.create(seen_at=database_clock())
    refuse_company(plan(a={"PUMPS": 2}), processes=4, using="default")
