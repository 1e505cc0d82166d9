"""Checks that each see one bug at once, because what would have to coincide is made to order."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TypeAlias

from django.db import connection

from backwave_django import models
from backwave_django.core.contract import StoreSettings
from backwave_django.core.errors import StoreUnavailable
from backwave_django.core.leases import LeaseHealth
from backwave_django.core.outcomes import Verdict
from backwave_django.core.retention import Retention
from backwave_django.models import Job, Lease
from backwave_django.store.executors import PumpStore
from tests.builders import (
    ACTOR,
    HOUR,
    MINUTE,
    OTHER_PUMP,
    T0,
    after,
    beat,
    claim_request,
    failed,
    new_job,
    succeeded,
    uid,
)
from tests.conformance.subjects import held_row
from tests.pumps.waiting import until
from tests.torture.interposing import Interposed
from tests.torture.rivalry import LEASE, own_store

Check: TypeAlias = Callable[[], None]

#: A pump with leases as short as this gives up waiting for a row after a sixth of it.
IMPATIENT = timedelta(seconds=1)


@contextmanager
def stores(count: int = 1, *, lease: timedelta = LEASE) -> Iterator[list[PumpStore]]:
    with ExitStack() as stack:
        yield [stack.enter_context(own_store(lease=lease)) for _ in range(count)]


def late_outcome_changes_nothing() -> None:
    with stores() as (store,):
        store.enqueue([new_job(1)])
        (lost,) = store.claim(claim_request(), now=T0).jobs
        store.expire_leases(limit=10, now=T0 + MINUTE)
        later = T0 + 2 * MINUTE
        (held,) = store.claim(claim_request(pump_id=OTHER_PUMP), now=later).jobs
        (row,) = store.report([succeeded(lost, at=later)], now=later).rows
        assert row.verdict is Verdict.STALE
        assert Lease.objects.filter(id=held.lease_id).exists()


def claim_steps_over_a_held_row() -> None:
    with stores(lease=IMPATIENT) as (store,):
        store.enqueue([new_job(1), new_job(2)])
        with held_row(models.Job, id=uid(1)):
            try:
                jobs = store.claim(claim_request(), now=T0).jobs
            except StoreUnavailable as error:
                raise AssertionError("it waited") from error
        assert [job.job_id for job in jobs] == [uid(2)]


def report_steps_over_a_held_lease() -> None:
    with stores(lease=IMPATIENT) as (store,):
        store.enqueue([new_job(1)])
        (job,) = store.claim(claim_request(), now=T0).jobs
        with held_row(models.Lease, job_id=uid(1)):
            try:
                rows = store.report([succeeded(job)], now=T0).rows
            except StoreUnavailable as error:
                raise AssertionError("it waited") from error
        assert [row.verdict for row in rows] == [Verdict.BUSY]


def limit_holds_when_another_claims_after_the_count() -> None:
    with stores(2) as (one, other):
        _limited(one)
        request = claim_request(pump_id=OTHER_PUMP)

        def claim() -> None:
            other.claim(request, now=T0)

        moment = Interposed(one.executor, r"SELECT l\.queue, count", claim, after=True)
        moment.store.claim(claim_request(), now=T0)
        assert moment.happened
        assert Lease.objects.count() == 2


def limit_holds_for_one_who_waited_for_another() -> None:
    with stores(2) as (one, other):
        _limited(one)
        claiming = threading.Thread(
            target=lambda: other.claim(claim_request(pump_id=OTHER_PUMP), now=T0), daemon=True
        )

        def claim() -> None:
            claiming.start()
            until(lambda: not claiming.is_alive() or _somebody_waits(), what="the other claims")

        moment = Interposed(one.executor, r"FROM unnest\(%\(ids\)s", claim, after=True)
        moment.store.claim(claim_request(), now=T0)
        claiming.join(30)
        assert moment.happened
        assert Lease.objects.count() == 2


def _limited(store: PumpStore) -> None:
    store.enqueue([new_job(number) for number in range(1, 9)])
    store.set_queue_limit("default", 2, actor=ACTOR, now=T0)


def _somebody_waits() -> bool:
    """Whether a session of this database, and not of another test's, waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock')"
        )
        return bool(cursor.fetchone()[0])


def edge_counts_once_when_two_settle_it() -> None:
    with stores(2) as (one, other):
        one.enqueue([new_job(1), new_job(2, queue="mail")])
        # Linked to parents that live, which queues them for the sweep.
        one.enqueue([new_job(3, queue="mail", parents=after(1, 2))])
        (job,) = one.claim(claim_request(), now=T0).jobs

        def settle() -> None:
            other.settle(limit=10, now=T0)

        moment = Interposed(one.executor, r"SELECT j\.id, j\.state, j\.pending_parents", settle)
        moment.store.report([succeeded(job)], now=T0)
        assert moment.happened
        child = Job.objects.get(pk=uid(3))
        assert (child.state, child.pending_parents) == ("awaiting", 1)


def edge_left_over_by_two_is_settled_all_the_same() -> None:
    with stores(2) as (one, other):
        one.enqueue([new_job(1)])
        one.enqueue([new_job(2, parents=after(1))])  # which queues its parent for the sweep
        (job,) = one.claim(claim_request(), now=T0).jobs
        queued, reported = threading.Event(), threading.Event()

        def wait() -> None:
            queued.set()
            assert reported.wait(30)

        to_queue = r"^INSERT INTO \S*settle"
        sweep = Interposed(other.executor, to_queue, wait, after=True)
        sweeping = threading.Thread(
            target=lambda: sweep.store.settle(limit=10, now=T0), daemon=True
        )

        def settle() -> None:
            sweeping.start()
            assert queued.wait(30)

        report = Interposed(one.executor, to_queue, settle)
        with held_row(models.Job, id=uid(2)):
            # Each finds that the other has queued the parent, in a row that it is about to remove.
            report.store.report([succeeded(job)], now=T0)
            reported.set()
            sweeping.join(30)
        assert (report.happened, sweep.happened) == (True, True)
        one.settle(limit=10, now=T0)
        assert Job.objects.get(pk=uid(2)).state == "scheduled"


def edge_that_is_linked_during_the_sweep_is_settled() -> None:
    with stores(2) as (one, other):
        one.enqueue([new_job(1)])
        one.enqueue([new_job(2, parents=after(1))])  # which queues its parent for the sweep
        (job,) = other.claim(claim_request(), now=T0).jobs

        def end() -> None:
            other.report([succeeded(job)], now=T0)
            other.settle(limit=10, now=T0)

        moment = Interposed(one.executor, r"^INSERT INTO \S*settle", end, after=True)
        moment.store.enqueue([new_job(3, parents=after(1))])
        assert moment.happened
        one.settle(limit=10, now=T0)
        assert Job.objects.get(pk=uid(3)).state == "scheduled"


def renewed_lease_is_not_swept() -> None:
    with stores(2) as (one, other):
        one.enqueue([new_job(1)])
        (job,) = one.claim(claim_request(), now=T0).jobs
        later = T0 + 2 * MINUTE

        def renew() -> None:
            other.heartbeat(beat(job.lease_id), now=later)

        moment = Interposed(
            one.executor, r"(?s)l\.retry.+WHERE l\.expires_at <=", renew, after=True
        )
        moment.store.expire_leases(limit=10, now=later)
        assert moment.happened
        assert Lease.objects.filter(id=job.lease_id).exists()


def floor_is_forgotten_after_a_while() -> None:
    with stores() as (store,):
        store.enqueue([new_job(number) for number in range(1, 101)])
        for _ in range(3):
            assert len(store.claim(claim_request(limit=4), now=T0).jobs) == 4
        store.enqueue([new_job(500, due_at=T0 - HOUR)])
        jobs = store.claim(claim_request(limit=4), now=T0 + MINUTE).jobs
        assert jobs[0].job_id == uid(500)


def requested_cancellation_wins() -> None:
    with stores() as (store,):
        store.enqueue([new_job(1)])
        (job,) = store.claim(claim_request(), now=T0).jobs
        store.cancel([uid(1)], actor=ACTOR, now=T0)
        store.report([failed(job, due_at=T0 + MINUTE)], now=T0)
        assert Job.objects.get().state == "cancelled"


def lapse_spends_an_attempt() -> None:
    with stores() as (store,):
        store.enqueue([new_job(1)])
        store.claim(claim_request(), now=T0)
        store.expire_leases(limit=10, now=T0 + MINUTE)
        assert Job.objects.get().spent == 1


def ended_job_lets_go_of_its_key() -> None:
    with stores() as (store,):
        store.enqueue([new_job(1, unique_key="k")])
        (job,) = store.claim(claim_request(), now=T0).jobs
        store.report([failed(job)], now=T0)
        (answer,) = store.enqueue([new_job(2, unique_key="k")])
        assert answer.created


def lease_of_another_pump_is_lost() -> None:
    with stores() as (store,):
        store.enqueue([new_job(1)])
        (job,) = store.claim(claim_request(), now=T0).jobs
        later = T0 + timedelta(seconds=1)
        answer = store.heartbeat(beat(job.lease_id, pump_id=OTHER_PUMP), now=later)
        assert [renewal.health for renewal in answer.renewals] == [LeaseHealth.LOST]
        assert Lease.objects.get().expires_at == job.expires_at


def paused_queue_yields_nothing() -> None:
    with stores() as (store,):
        store.enqueue([new_job(number) for number in range(1, 101)])
        assert len(store.claim(claim_request(limit=4), now=T0).jobs) == 4
        store.pause("default", until=None, actor=ACTOR, now=T0)
        assert store.claim(claim_request(limit=4), now=T0).jobs == ()


def late_job_is_not_claimed() -> None:
    with stores() as (store,):
        store.enqueue([new_job(1, deadline=T0 + MINUTE)])
        assert store.claim(claim_request(), now=T0 + MINUTE).jobs == ()


def purge_spares_a_parent_that_is_waited_for() -> None:
    settings = StoreSettings(retention=Retention(succeeded=timedelta(0)))
    with own_store(settings) as store:
        store.enqueue([new_job(1), new_job(2, queue="mail"), new_job(3, parents=after(1, 2))])
        (job,) = store.claim(claim_request(), now=T0).jobs
        store.report([succeeded(job)], now=T0)
        assert store.purge(limit=10, now=T0 + MINUTE).count == 0


def claim_counts_a_run() -> None:
    with stores() as (store,):
        store.enqueue([new_job(1)])
        store.claim(claim_request(), now=T0)
        assert Job.objects.get().run == 1
