"""Single moments that a storm hit by chance, made to order."""

from contextlib import closing
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from backwave_django.core.contract import StoreSettings
from backwave_django.core.jobs import IfDuplicate
from backwave_django.core.retention import Retention
from backwave_django.core.states import JobState
from backwave_django.models import Job
from backwave_django.store.executors import DjangoExecutor
from tests.builders import T0, after, claim_request, new_job, succeeded, uid
from tests.torture.interposing import Interposed
from tests.torture.rivalry import own_store

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
    assert Job.objects.get().state == JobState.SCHEDULED


def test_a_child_of_a_success_that_is_purged_meanwhile_may_run(interposed):
    # The first look finds the parent, the second is after the edge was written.
    interposed.pattern = "^INSERT INTO .*dependency"
    store = interposed.store
    store.enqueue([new_job(3, parents=after(1))])
    assert interposed.happened
    assert Job.objects.get().state == JobState.SCHEDULED


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
