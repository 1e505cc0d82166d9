"""Single moments that a storm hit by chance, made to order."""

from contextlib import closing
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg.errors import IdleInTransactionSessionTimeout

from backwave_django import models
from backwave_django.core.contract import StoreSettings
from backwave_django.core.jobs import IfDuplicate
from backwave_django.core.retention import Retention
from backwave_django.core.states import JobState
from backwave_django.store.executors import DjangoExecutor
from backwave_django.store.names import Statement
from tests.builders import T0, after, claim_request, new_job, succeeded, uid
from tests.pumps.waiting import until
from tests.torture.interposing import Interposed
from tests.torture.rivalry import NAME, own_store

# On SQLite an enqueue holds the only write lock from its first statement on.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.vendor("postgresql")]

PURGED_AT_ONCE = StoreSettings(retention=Retention(succeeded=timedelta(0)))
#: The look at the states of parents and holders, after the edges are written.
LOOK = r"^SELECT id, state FROM"


@pytest.fixture
def interposed():
    """Purge what has succeeded when the statement comes by."""
    with own_store(PURGED_AT_ONCE) as store:
        store.enqueue([new_job(1, unique_key="k")])
        store.report([succeeded(job) for job in store.claim(claim_request(), now=T0).jobs], now=T0)

        def purge() -> None:
            assert store.purge(limit=10, now=T0 + timedelta(seconds=1)).count == 1

        yield Interposed(DjangoExecutor("default"), LOOK, purge)


def test_a_holder_that_is_purged_while_it_answers_still_answers(interposed):
    job = new_job(2, unique_key="k", if_duplicate=IfDuplicate.REJECT)
    (answer,) = interposed.store.enqueue([job])
    assert interposed.happened
    assert answer == (uid(1), False, JobState.SUCCEEDED)


def test_a_child_of_a_holder_that_is_purged_while_it_answers_may_run(interposed):
    keyed = new_job(2, unique_key="k", if_duplicate=IfDuplicate.REJECT)
    interposed.store.enqueue([keyed, new_job(3, parents=after(2))])
    assert interposed.happened
    assert models.Job.objects.get().state == JobState.SCHEDULED


def test_a_child_of_a_success_that_is_purged_meanwhile_may_run(interposed):
    # The first look finds the parent, the second is after the edge was written.
    interposed.pattern = "^INSERT INTO .*dependency"
    store = interposed.store
    store.enqueue([new_job(3, parents=after(1))])
    assert interposed.happened
    assert models.Job.objects.get().state == JobState.SCHEDULED


def test_pumps_that_lose_the_database_while_they_start_refuse_in_one_line():
    def cut(execute, *statement):
        """End the session under the statement that reads the migrations."""
        if "django_migrations" in statement[0]:
            with closing(connection.copy("default")) as other, other.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(%s, 10000)",
                    [connection.connection.info.backend_pid],
                )
        return execute(*statement)

    try:
        with connection.execute_wrapper(cut), pytest.raises(CommandError, match="cannot be used"):
            call_command("runpumps", "--once")
    finally:
        connection.close()


def test_the_server_ends_a_transaction_in_which_a_pump_was_stopped():
    put = Statement("INSERT INTO {settle} (parent_id) SELECT CAST(%(parent)s AS uuid)")

    def is_there() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = %s", [NAME])
            return bool(cursor.fetchall())

    with own_store(lease=timedelta(seconds=1)) as store:

        def stop_inside() -> None:
            with store.executor.transaction():
                store.executor.execute_many(put, [{"parent": uid(number)} for number in range(3)])
                assert is_there()
                # Nothing more is sent, as if the process were stopped here.
                until(lambda: not is_there(), what="the server ends the session")

        with pytest.raises(IdleInTransactionSessionTimeout):
            stop_inside()
        store.drop()
        assert not models.SettleQueue.objects.exists()
