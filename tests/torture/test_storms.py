"""Many of a kind at once: enqueuers and operators against pumps, and leases that lapse together.

``TORTURE_STORM_SECONDS`` (5) says how long everybody works at once, ``TORTURE_LAPSED_LEASES``
(5,000) how many leases lapse.
"""

import logging
import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count
from uuid import UUID

import pytest

import backwave_django as backwave
from backwave_django.core.contract import StoreSettings
from backwave_django.core.jobs import IfDuplicate, LeasedJob, NewJob
from backwave_django.core.outcomes import Outcome as Ended
from backwave_django.core.retention import Retention
from backwave_django.core.retries import Retry
from backwave_django.jobs.ids import new_id
from backwave_django.models import Job, Lease, Outcome
from backwave_django.monitor import database_clock
from backwave_django.pumps.clock import SystemClock
from backwave_django.store import default_store
from tests.builders import ACTOR, claim_request, failed, new_job, succeeded
from tests.pumps.running import RunningNode
from tests.pumps.waiting import until
from tests.torture.loops import Random, stream
from tests.torture.rivalry import at_once, own_store, patiently

pytestmark = pytest.mark.django_db(transaction=True)

STORM_SECONDS = float(os.environ.get("TORTURE_STORM_SECONDS", "5"))
LAPSED = int(os.environ.get("TORTURE_LAPSED_LEASES", "5000"))
BULK = 200
POLICIES = tuple(IfDuplicate)
AT_ONCE = Retention(
    succeeded=timedelta(0),
    cancelled=timedelta(0),
    expired=timedelta(0),
    dead_lettered=timedelta(seconds=1),
    quarantined=timedelta(0),
)
_clock = SystemClock()


class Storm:
    """Who takes part: each method is one of them, and works until the time is over."""

    def __init__(self) -> None:
        self._ends_at = _clock.mark() + STORM_SECONDS
        self._numbers = count(1)
        self.counts = dict.fromkeys(("enqueued", "reported", "purged", "operated"), 0)

    def member(self, act: Callable[[Random], None]) -> Callable[[], None]:
        """One more who does ``act`` over and over, with a random stream of its own."""
        rng = stream(38, str(next(self._numbers)))

        def work() -> None:
            while _clock.mark() < self._ends_at:
                act(rng)

        return work

    def enqueue_one(self, rng: Random) -> None:
        default_store().enqueue([self._draw(rng)])
        self.counts["enqueued"] += 1

    def enqueue_many(self, rng: Random) -> None:
        jobs = [self._draw(rng) for _ in range(BULK)]
        default_store().enqueue(jobs)
        self.counts["enqueued"] += BULK

    def _draw(self, rng: Random) -> NewJob:
        keyed = rng.random() < 0.1
        policy = rng.choice(POLICIES) if keyed else IfDuplicate.ALLOW_AFTER_FAILURE
        key = f"{policy}-{rng.randrange(30)}" if keyed else None
        return new_job(0, due_at=None, unique_key=key, if_duplicate=policy, id=new_id())

    def pump(self) -> None:
        rng = stream(38, f"pump {next(self._numbers)}")
        request = claim_request(pump_id=new_id(), limit=20, retry=Retry(max_attempts=2))
        with own_store() as store:
            while _clock.mark() < self._ends_at:
                now = _clock.now()
                jobs = patiently(partial(store.claim, request, now=now)).jobs
                outcomes = [self._end(rng, job) for job in jobs]
                patiently(partial(store.report, outcomes, now=now))
                patiently(partial(store.settle, limit=100, now=now))
                self.counts["reported"] += len(jobs)

    @staticmethod
    def _end(rng: Random, job: LeasedJob) -> Ended:
        now = _clock.now()
        return failed(job, at=now) if rng.random() < 0.3 else succeeded(job, at=now)

    def purge(self) -> None:
        with own_store(StoreSettings(retention=AT_ONCE)) as store:
            while _clock.mark() < self._ends_at:
                purged = patiently(lambda: store.purge(limit=500, now=_clock.now()))
                self.counts["purged"] += purged.count

    def operate(self, rng: Random) -> None:
        ids: list[UUID] = list(Job.objects.order_by("-id").values_list("id", flat=True)[:2000])
        chosen = rng.sample(ids, min(len(ids), 100))
        store = default_store()
        act = rng.choice((store.requeue, store.cancel, store.run_now))
        act(chosen, actor=ACTOR, now=database_clock())
        self.counts["operated"] += len(chosen)


@pytest.mark.vendor("postgresql")
def test_f038_enqueuers_operators_pumps_and_purges_never_deadlock(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storm = Storm()
    with caplog.at_level(logging.WARNING, logger="backwave"):
        raised = at_once(
            *(storm.member(storm.enqueue_one) for _ in range(3)),
            *(storm.member(storm.enqueue_many) for _ in range(2)),
            *(storm.pump for _ in range(3)),
            *(storm.member(storm.operate) for _ in range(2)),
            storm.purge,
        )
    assert raised == []
    # What a pump's store can leave to the sweep, it does not raise.
    assert [record.getMessage() for record in caplog.records] == []
    assert all(storm.counts.values()), storm.counts


RAN: list[int] = []


@backwave.job("torture.fresh")
def fresh(number: int) -> None:
    RAN.append(number)


@pytest.fixture
def _lapsed_leases() -> None:
    """Leases that have lapsed, of a pump that nobody knows; a fifth has no attempt left.

    They are second attempts, which wait before they are tried again; a first one would not.
    """
    RAN.clear()
    now, pump = database_clock(), new_id()
    once = Retry(max_attempts=2)
    later = Retry(max_attempts=5, initial=timedelta(hours=1))
    call = fresh.s(0).new_job()
    jobs = [
        Job(
            id=new_id(),
            wire_name=call.wire_name,
            queue="default",
            state="leased",
            payload=call.payload,
            run=2,
            spent=1,
            due_at=now,
            created_at=now,
        )
        for _ in range(LAPSED)
    ]
    Job.objects.bulk_create(jobs, batch_size=500)
    Lease.objects.bulk_create(
        [
            Lease(
                id=new_id(),
                job=job,
                queue="default",
                pump_id=pump,
                run=2,
                acquired_at=now - timedelta(hours=1),
                expires_at=now - timedelta(minutes=1),
                retry=(once if number < LAPSED // 5 else later).encode(),
            )
            for number, job in enumerate(jobs)
        ],
        batch_size=500,
    )


@pytest.mark.usefixtures("_lapsed_leases")
def test_f040_leases_that_lapse_together_are_swept_while_new_jobs_run() -> None:
    with RunningNode(MAINTENANCE_INTERVAL=0.2, HEARTBEAT_INTERVAL=0.3, LEASE_DURATION=20):
        number = 0
        left = LAPSED
        while left:
            number += 1
            fresh.enqueue(number)
            until(partial(RAN.__contains__, number), what=f"new job {number} runs")
            now_left = Lease.objects.filter(expires_at__lt=database_clock()).count()
            assert now_left <= left
            left = now_left
        until(lambda: Job.objects.filter(state="succeeded").count() == number)
    assert Job.objects.filter(state="dead_lettered", cause="attempts").count() == LAPSED // 5
    assert Job.objects.filter(state="scheduled", spent=2).count() == LAPSED - LAPSED // 5
    lapses = Outcome.objects.filter(kind="lapsed", run=2)
    assert lapses.count() == lapses.values("job").distinct().count() == LAPSED
    assert number > 1
