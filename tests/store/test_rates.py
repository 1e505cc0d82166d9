"""Rates under many claimers: over a minute by a clock that is moved, and all at once."""

import threading
import time
from datetime import datetime, timedelta

import pytest
from django.db import connection

from backwave_django.core.rates import Rate
from backwave_django.models import Limit
from backwave_django.store import PumpStore, default_store
from tests.builders import ACTOR, MINUTE, SECOND, T0, claim_request, new_job, succeeded, uid
from tests.store.conftest import OpenStore
from tests.store.test_races import in_threads, still_busy

TEN = Rate.parse("10/second")
KINDS = ["queue", "key", "pattern"]


def limited(store: PumpStore, kind: str, rate: Rate, *, total: int) -> None:
    key = None if kind == "queue" else "gateway:1"
    default_store().enqueue([new_job(number, limit_key=key) for number in range(1, total + 1)])
    if kind == "queue":
        store.set_queue_rate("default", rate, actor=ACTOR, now=T0)
    else:
        name = "gateway:1" if kind == "key" else "gateway:*"
        store.set_rate(name, rate, actor=ACTOR, now=T0)


def finish(store: PumpStore, jobs: object, now: datetime) -> None:
    outcomes = list(map(succeeded, jobs))  # type: ignore[call-overload]  # jobs of a claim
    while outcomes:
        outcomes = still_busy(outcomes, store.report(outcomes, now=now))


def assert_kept(starts: list[tuple[datetime, int]], rate: Rate) -> None:
    """No span of time has more starts than the bucket holds and gets."""
    starts.sort()
    for first, (began, _) in enumerate(starts):
        total = 0
        for at, count in starts[first:]:
            total += count
            assert total <= rate.number + (at - began) // rate.interval


@pytest.mark.parametrize("kind", KINDS)
def test_ten_per_second_hold_with_four_pumps_over_a_minute(
    open_store: OpenStore, kind: str
) -> None:
    stores = [open_store() for _ in range(4)]
    limited(stores[0], kind, TEN, total=700)
    starts: list[tuple[datetime, int]] = []
    for step in range(4 * 60 + 1):
        now = T0 + step * SECOND / 4
        # Who comes first takes what there is: let it be another one each time.
        for turn in range(4):
            number = (step + turn) % 4
            request = claim_request(pump_id=uid(number + 1), limit=20)
            jobs = stores[number].claim(request, now=now).jobs
            finish(stores[number], jobs, now)
            starts += [(now, len(jobs))] if jobs else []
    assert_kept(starts, TEN)
    assert sum(count for _, count in starts) == 10 + 60 * 10


@pytest.mark.parametrize("kind", KINDS)
def test_rate_is_never_exceeded_by_eight_claimers(open_store: OpenStore, kind: str) -> None:
    rate = Rate.parse("40/second")
    stores = [open_store() for _ in range(8)]
    limited(stores[0], kind, rate, total=600)
    lock, starts = threading.Lock(), list[tuple[datetime, int]]()
    began = time.perf_counter()

    def work(number: int) -> None:
        request = claim_request(pump_id=uid(number + 1), limit=5)
        for _ in range(40):
            now = T0 + timedelta(seconds=time.perf_counter() - began)
            jobs = stores[number].claim(request, now=now).jobs
            if jobs:
                with lock:
                    starts.append((now, len(jobs)))
                finish(stores[number], jobs, now)

    in_threads(8, work)
    assert_kept(starts, rate)
    assert sum(count for _, count in starts) >= rate.number


@pytest.mark.parametrize("kind", KINDS)
def test_eight_claimers_at_one_instant_get_what_the_bucket_holds(
    open_store: OpenStore, kind: str
) -> None:
    rate = Rate.parse("7/minute")
    stores = [open_store() for _ in range(8)]
    limited(stores[0], kind, rate, total=100)
    for minute in range(3):
        now, taken = T0 + minute * (MINUTE + SECOND), list[int]()

        def work(number: int, now: datetime = now, taken: list[int] = taken) -> None:
            request = claim_request(pump_id=uid(number + 1), limit=2)
            while True:
                answer = stores[number].claim(request, now=now)
                taken.append(len(answer.jobs))
                # A row that another claimer holds is due now; a token is due later.
                if not answer.jobs and answer.next_due != now:
                    return

        in_threads(8, work)
        assert sum(taken) == rate.number


def test_cap_of_a_pattern_is_never_exceeded_for_keys_that_appear_while_eight_claim(
    open_store: OpenStore,
) -> None:
    stores = [open_store() for _ in range(8)]
    stores[0].set_limit("tenant:*", 2, actor=ACTOR, now=T0)
    tenants, each = 12, 10
    default_store().enqueue(
        [
            new_job(number, limit_key=f"tenant:{number % tenants}")
            for number in range(1, tenants * each + 1)
        ]
    )
    lock, held, most, done = threading.Lock(), dict[str, int](), dict[str, int](), [0]

    def work(number: int) -> None:
        request = claim_request(pump_id=uid(number + 1), limit=4)
        while done[0] < tenants * each:
            jobs = stores[number].claim(request, now=T0).jobs
            keys = [str(job.limit_key) for job in jobs]
            with lock:
                for key in keys:
                    held[key] = held.get(key, 0) + 1
                    most[key] = max(most.get(key, 0), held[key])
            with lock:
                # Before the report: its slots may be taken before it returns.
                for key in keys:
                    held[key] -= 1
                done[0] += len(keys)
            finish(stores[number], jobs, T0)

    in_threads(8, work)
    assert set(most) == {f"tenant:{number}" for number in range(tenants)}
    assert max(most.values()) <= 2
    rows = Limit.objects.exclude(source="pattern").values_list("limit", "rate", "source").distinct()
    assert list(rows) == [(None, None, "code")]


@pytest.mark.vendor("postgresql")
def test_keys_whose_row_an_open_transaction_makes_are_withheld_without_waiting(
    store: PumpStore,
) -> None:
    store.set_limit("tenant:*", 2, actor=ACTOR, now=T0)
    store.enqueue([new_job(1, limit_key="tenant:a"), new_job(2)])
    other = connection.copy("default")
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            cursor.execute("INSERT INTO backwave_limit (key, source) VALUES ('tenant:a', 'code')")
        answer = store.claim(claim_request(), now=T0)
        assert ([job.job_id.int for job in answer.jobs], answer.next_due) == ([2], T0)
    finally:
        other.rollback()
        other.close()
    assert [job.job_id.int for job in store.claim(claim_request(), now=T0).jobs] == [1]
