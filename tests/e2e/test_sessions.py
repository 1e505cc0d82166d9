"""The database sessions of bodies, counted and looked into on a real server."""

import json

import pytest
from django.db import connection

from backwave_django.models import Job
from tests.fieldapp import jobs

pytestmark = pytest.mark.vendor("postgresql")

POOLED = {"FIELD_POOL": json.dumps({"min_size": 1, "max_size": 3, "timeout": 20})}
#: Where bodies' sessions come from: the dial, and what else the process is told.
kinds = pytest.mark.parametrize(
    ("connections", "environ"),
    [("fresh", {}), ("reuse", {}), ("fresh", POOLED)],
    ids=["fresh", "reused", "pooled"],
)


@kinds
def test_f130_what_a_body_sets_in_its_session_does_not_reach_the_next(field, connections, environ):
    before = jobs.tell_session.enqueue()
    process = field.runpumps(POOL_SIZE=1, CONNECTIONS=connections, environ=environ)
    field.until(lambda: before.refresh().state == "succeeded")
    spoilt = jobs.spoil.enqueue()
    field.until(lambda: spoilt.refresh().state == "succeeded")
    after = jobs.tell_session.enqueue()
    field.until(lambda: after.refresh().state == "succeeded")
    assert after.output == before.output
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)
    process.terminate()
    assert process.wait() == 0


def test_f032_a_pool_smaller_than_the_workers_only_makes_them_wait(field):
    jobs.hold.enqueue_many([(0.05,)] * 40)
    process = field.runpumps("--drain", POOL_SIZE=8, environ=POOLED)
    assert process.wait() == 0
    assert Job.objects.filter(state="succeeded").count() == 40


@kinds
def test_sessions_that_bodies_close_themselves_are_not_missing_later(field, connections, environ):
    jobs.break_session.enqueue_many([()] * 6)
    jobs.hold.options(priority=-1).enqueue_many([(0,)] * 6)
    process = field.runpumps("--drain", POOL_SIZE=2, CONNECTIONS=connections, environ=environ)
    assert process.wait() == 0
    assert Job.objects.filter(state="succeeded").count() == 12


def test_f031_no_session_outlives_its_attempt(field):
    jobs.hold.enqueue_many([(0,)] * 100)
    process = field.runpumps(POOL_SIZE=8)
    field.until(lambda: Job.objects.filter(state="succeeded").count() == 100)
    field.until(lambda: sessions() == {"pump": 1, "hints": 1, "other": 0})
    process.terminate()
    assert process.wait() == 0
    field.until(lambda: sessions() == {"pump": 0, "hints": 0, "other": 0})


def sessions() -> dict[str, int]:
    """How many sessions there are, besides our own, by what they are for."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        names = [name for (name,) in cursor.fetchall()]
    hints = sum(name.startswith("backwave:hints") for name in names)
    pumps = sum(name.startswith("backwave:field") for name in names)
    return {"pump": pumps, "hints": hints, "other": len(names) - pumps - hints}
