"""Claims and limits while many claim at once: limits hold, nobody starves, nothing deadlocks.

``TORTURE_CONTENDED_JOBS`` (2,000) says how many jobs there are to fight for.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import cycle, islice

import pytest
from django.db import connection, transaction

from backwave_django import models
from backwave_django.core.outcomes import Outcome, Verdict
from backwave_django.store.executors import PumpStore
from backwave_django.store.faults import is_deadlock
from tests.builders import ACTOR, T0, claim_request, new_job, succeeded, uid
from tests.torture.rivalry import at_once, own_store, patiently

pytestmark = pytest.mark.django_db(transaction=True)

CLAIMERS = 8
JOBS = int(os.environ.get("TORTURE_CONTENDED_JOBS", "2000"))
LIMITS = {"one": 1, "three": 3, "free": None}
#: One in ten under the limit of one: each of those is a round trip of its own.
QUEUES = ("one", *["three"] * 3, *["free"] * 6)


@pytest.fixture
def stores() -> Iterator[list[PumpStore]]:
    with ExitStack() as stack:
        yield [stack.enter_context(own_store()) for _ in range(CLAIMERS)]


def work(store: PumpStore, number: int, ended: list[str]) -> None:
    """Claim and report until nothing is due; claimers prefer different queues."""
    queues = list(islice(cycle(LIMITS), number % 3, number % 3 + 3))
    request = claim_request(*queues, pump_id=uid(9_100 + number), limit=4)
    while True:
        answer = patiently(partial(store.claim, request, now=T0))
        if not answer.jobs and answer.next_due is None:
            return
        report(store, [succeeded(job) for job in answer.jobs])
        ended += [job.queue for job in answer.jobs]


def report(store: PumpStore, outcomes: list[Outcome]) -> None:
    """Report, and again what is busy: another may hold a row that it has just failed to claim."""
    while outcomes:
        rows = patiently(partial(store.report, outcomes, now=T0)).rows
        assert Verdict.STALE not in {row.verdict for row in rows}
        busy = {row.lease_id for row in rows if row.verdict is Verdict.BUSY}
        outcomes = [outcome for outcome in outcomes if outcome.lease_id in busy]


def look(stop: threading.Event, seen: list[Counter[str]]) -> None:
    """Count live leases over and over, all in one statement."""
    while not stop.wait(0.002):
        seen.append(Counter(models.Lease.objects.values_list("queue", flat=True)))


def test_limits_hold_and_nobody_starves_under_eight_claimers(stores: list[PumpStore]) -> None:
    for queue, limit in LIMITS.items():
        stores[0].set_queue_limit(queue, limit, actor=ACTOR, now=T0)
    queues = list(islice(cycle(QUEUES), JOBS))
    stores[0].enqueue([new_job(n, queue=queue) for n, queue in enumerate(queues, start=1)])
    ended: list[str] = []
    seen: list[Counter[str]] = []
    problems: list[Exception] = []
    over = threading.Event()

    def claim_all() -> None:
        try:
            problems.extend(at_once(*(partial(work, s, n, ended) for n, s in enumerate(stores))))
        finally:
            over.set()

    assert at_once(claim_all, lambda: look(over, seen)) == problems == []
    assert Counter(ended) == Counter(queues)
    assert set(models.Job.objects.values_list("state", "run").distinct()) == {("succeeded", 1)}
    assert models.Outcome.objects.count() == JOBS
    assert len(seen) > 20, "the watcher was held up"
    assert max(counts["one"] for counts in seen) == 1
    assert 2 <= max(counts["three"] for counts in seen) <= 3


@pytest.mark.vendor("postgresql")
def test_a_deadlock_would_be_told_from_other_outages() -> None:
    both_hold_one = threading.Barrier(2, timeout=30)

    def hold(*numbers: int) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            for number in numbers:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])
                if number == numbers[0]:
                    both_hold_one.wait()

    raised = at_once(lambda: hold(1, 2), lambda: hold(2, 1))
    assert [is_deadlock(error) for error in raised] == [True]
    assert not is_deadlock(ValueError())
