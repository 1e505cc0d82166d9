"""Atomic bodies and those who have something else in mind for their jobs. One may write at a time
on SQLite, so that nobody can have it there."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection, connections, transaction

import backwave_django as backwave
from backwave_django.models import Job, Lease, Outcome
from backwave_django.monitor.clock import database_clock
from backwave_django.store import default_store
from tests.pumps.marks import BEGUN, GO
from tests.pumps.running import RunningNode
from tests.pumps.test_atomic import (
    ATOMIC,
    drained,
    kinds,
    names,
    wait,
)
from tests.pumps.waiting import until

pytestmark = [pytest.mark.vendor("postgresql"), pytest.mark.django_db(transaction=True)]


@backwave.job("atomic.poison", **ATOMIC)
def poison() -> str:
    Group.objects.create(name="poison")
    return "poison"


def expire() -> None:
    """Sweep as somebody does who has not heard of the pump for an hour."""
    later = database_clock() + timedelta(hours=1)
    assert default_store().expire_leases(limit=10, now=later).count == 1
    Job.objects.update(due_at=database_clock())


def test_body_that_lost_its_lease_leaves_no_write(caplog):
    handle = wait.enqueue()
    with RunningNode(POOL_SIZE=2):
        assert BEGUN.wait(30)
        expire()
        until(lambda: handle.refresh().state == "succeeded")
        assert names() == {"run 2"}
        GO.set()
    assert (kinds(handle), names()) == (["lapsed", "succeeded"], {"run 2"})
    assert handle.refresh().output == 2
    assert "lost its lease" in caplog.text


def test_body_that_cancels_too_late_has_succeeded():
    handle = wait.enqueue()
    with RunningNode(POOL_SIZE=1):
        assert BEGUN.wait(30)
        handle.cancel(actor="support")
        GO.set()
        until(lambda: handle.refresh().state == "succeeded")
    assert (kinds(handle), names()) == (["succeeded"], {"run 1"})


def test_lease_is_locked_by_the_end_alone():
    wait.enqueue()
    with RunningNode(POOL_SIZE=1):
        assert BEGUN.wait(30)
        with transaction.atomic():
            assert Lease.objects.select_for_update(nowait=True).get().run == 1
        GO.set()


def test_lease_that_somebody_holds_is_not_waited_for_too_long(caplog):
    handle = wait.enqueue()
    with RunningNode(POOL_SIZE=1, LEASE_DURATION=3, HEARTBEAT_INTERVAL=1):
        assert BEGUN.wait(30)
        with transaction.atomic():
            Lease.objects.select_for_update().get()
            GO.set()
            until(lambda: "is rolled back and given back" in caplog.text)
        until(lambda: handle.refresh().state == "succeeded")
    assert (kinds(handle), names()) == (["released", "succeeded"], {"run 2"})
    assert handle.record.spent == 0


def test_session_that_is_cut_before_the_end_gives_the_job_back():
    handle = wait.enqueue()
    with RunningNode(POOL_SIZE=1):
        assert BEGUN.wait(30)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND state = 'idle in transaction' "
                "AND pid <> pg_backend_pid()"
            )
            assert cursor.fetchall() == [(True,)]
        GO.set()
        until(lambda: handle.refresh().state == "succeeded")
    assert (kinds(handle), names()) == (["released", "succeeded"], {"run 2"})


@pytest.fixture
def _refusing(transactional_db):
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION atomic_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF NEW.output = '\"poison\"' THEN RAISE 'no' USING ERRCODE = '22023'; END IF; "
            "RETURN NEW; END $$; "
            "CREATE TRIGGER atomic_refuse BEFORE UPDATE ON backwave_job FOR EACH ROW "
            "EXECUTE FUNCTION atomic_refuse()"
        )
    yield
    with connections["default"].cursor() as cursor:
        cursor.execute("DROP FUNCTION atomic_refuse CASCADE")


@pytest.mark.usefixtures("_refusing")
def test_output_that_the_database_refuses_leaves_no_write():
    handle = poison.enqueue()
    drained()
    assert (kinds(handle), names()) == (["output_refused"], set())
    assert Outcome.objects.get(job_id=handle.id).cause == "output"
