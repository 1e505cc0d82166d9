"""A dead letter and the job that tells of it: a pump dies on either side of writing it down."""

from contextlib import suppress

from backwave_django.core.contract import StoreSettings
from backwave_django.core.jobs import NewJob
from backwave_django.jobs.observers import observers
from backwave_django.models import Job
from tests.builders import T0, claim_request, failed, new_job, succeeded
from tests.torture.evidence import gather
from tests.torture.interposing import Interposed
from tests.torture.jobs import MOURN, tick, work
from tests.torture.reactions import CHECKS
from tests.torture.rivalry import own_store

SETTINGS = StoreSettings(observers=observers)


class Died(Exception):
    """The pump is no more, and the transaction that it had open neither."""


def dead_letter_is_told_once() -> None:
    """Audit a report whose pump dies before, or after, it has written down the observer's job."""
    for number, after in enumerate((False, True)):
        _report_and_die(10 * number, after=after)
        _look(told=number + 1)
    _let_observers_die()
    _look(told=2)


def _report_and_die(number: int, *, after: bool) -> None:
    with own_store(SETTINGS) as store:
        store.enqueue([_job(number + 1), _job(number + 2), _job(number + 3, tick.wire_name)])
        dead, done, unobserved = store.claim(claim_request(), now=T0).jobs
        outcomes = [failed(dead), succeeded(done), failed(unobserved)]
        moment = Interposed(
            store.executor, r"^INSERT INTO \S*job\S* ", _die, after=after, settings=SETTINGS
        )
        with suppress(Died):
            moment.store.report(outcomes, now=T0)
        assert moment.happened
        _look(told=number // 10)
        store.report(outcomes, now=T0)


def _job(number: int, wire_name: str = work.wire_name) -> NewJob:
    return new_job(number, wire_name=wire_name)


def _die() -> None:
    raise Died


def _let_observers_die() -> None:
    with own_store(SETTINGS) as store:
        # Its due time is the database's clock, which is behind that of the tests.
        jobs = store.claim(claim_request("plain"), now=T0).jobs
        assert [job.wire_name for job in jobs] == [MOURN, MOURN]
        store.report([failed(job) for job in jobs], now=T0)


def _look(*, told: int) -> None:
    left = gather([], server_log="")
    assert [found for check in CHECKS for found in check(left)] == []
    assert Job.objects.filter(wire_name=MOURN).count() == told
