"""How many sessions a process holds on PostgreSQL: never more than its documented number.

A process holds one for each pump's loop, one to listen for hints, and one for each worker that is
inside a body which uses the database.
"""

import contextlib
from collections import Counter

import pytest

from backwave_django.models import Job, Outcome
from tests.field import jobs
from tests.field.servers import BODIES, Background, admin, sessions
from tests.pumps.waiting import until

pytestmark = pytest.mark.vendor("postgresql")

POOL_SIZE = 6
#: What a session is called that has no name of its own: those of bodies.
NAMED = {"PGAPPNAME": BODIES}
POOL = {"OPTIONS": {"pool": {"min_size": 1, "max_size": 3, "timeout": 20}}}


def kinds_of_sessions() -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in sessions().items():
        found[":".join(name.split(":")[:2])] += count
    return found


WAYS = {
    "0": ({"CONN_MAX_AGE": 0}, {}, POOL_SIZE, 0),
    "60": ({"CONN_MAX_AGE": 60}, {}, POOL_SIZE, 0),
    "None": ({"CONN_MAX_AGE": None}, {}, POOL_SIZE, 0),
    "reuse": ({"CONN_MAX_AGE": None}, {"CONNECTIONS": "reuse"}, POOL_SIZE, 0),
    "pool": (POOL, {}, 3, 3),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_f031_sessions_stay_within_the_documented_number(field, closed, way):
    database, dials, most, idle = WAYS[way]
    process = field.ready(database=database, environ=NAMED, POOL_SIZE=POOL_SIZE, **dials)
    highest: Counter[str] = Counter()

    def sample() -> None:
        highest.__ior__(kinds_of_sessions())

    with Background(sample, every_seconds=0.02):
        jobs.query.enqueue_many([()] * 250)
        until(lambda: Job.objects.filter(state="succeeded").count() == 250)
    assert highest["backwave:field"] <= 1
    assert highest["backwave:hints"] <= 1
    assert highest[BODIES] <= most
    until(lambda: kinds_of_sessions()[BODIES] <= idle, seconds=10 + 10, what="sessions are closed")
    closed()
    until(lambda: kinds_of_sessions()[BODIES] <= idle, what="sessions are closed")
    assert field.stop(process) == [0]
    until(lambda: not sessions(), what="all sessions are closed")


def test_a_parent_holds_no_session_and_its_children_what_one_process_holds(field, ledger):
    process = field.ready("--processes", "2", pumps=4, PUMPS=2, environ=NAMED)
    expected = {"backwave:field": 4, "backwave:hints": 2}
    with contextlib.suppress(AssertionError):
        until(lambda: kinds_of_sessions() == expected)
    assert kinds_of_sessions() == expected
    assert field.stop(process) == [0]
    until(lambda: not sessions())


def test_a_server_that_refuses_more_sessions_only_makes_bodies_wait(
    field, ledger, closed, own_server
):
    with admin(own_server.url) as session:
        with contextlib.suppress(Exception):
            session.execute("CREATE ROLE few LOGIN")
        session.execute("ALTER ROLE few CONNECTION LIMIT 5")
        session.execute("GRANT pg_read_all_data, pg_write_all_data TO few")
    url = own_server.url.replace("postgres://postgres@", "postgres://few@")
    process = field.ready(environ={"DATABASE_URL": url}, POOL_SIZE=8)
    until(lambda: "backwave:hints" in kinds_of_sessions())
    held_up = jobs.crowded.enqueue_many([(0.1,)] * 40)
    until(lambda: all(handle.refresh().state == "succeeded" for handle in held_up), seconds=60)
    closed()
    assert field.stop(process) == [0]
    assert set(Outcome.objects.values_list("kind", flat=True)) <= {"succeeded", "failed"}
