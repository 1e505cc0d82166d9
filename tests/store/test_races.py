"""Many pumps at once: each job to one of them, limits kept, foreign locks stepped over."""

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from backwave_django.core.contract import ReportAnswer
from backwave_django.core.jobs import Enqueued, IfDuplicate, LeasedJob
from backwave_django.core.leases import LeaseHealth
from backwave_django.core.outcomes import Outcome, Verdict
from backwave_django.models import Job, Lease, Queue
from backwave_django.store import PumpStore, default_store
from backwave_django.store.names import Statement
from tests.builders import ACTOR, MINUTE, T0, beat, claim_request, new_job, succeeded, uid
from tests.pumps.waiting import until
from tests.store.conftest import OpenStore

CLAIMERS = 8
ENQUEUERS = 50
ROUNDS = 5


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run ``work`` in threads at once; raise what one of them raised."""
    faults: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if faults:
        raise faults[0]


def drain(store: PumpStore, pump: int, taken: list[LeasedJob], **options: object) -> None:
    """Claim and report until nothing is left."""
    request = claim_request(pump_id=uid(pump), **options)
    claimed = store.claim(request, now=T0)
    buffered: list[Outcome] = []
    while claimed.jobs or buffered or not claimed.short or claimed.next_due is not None:
        taken += claimed.jobs
        buffered += map(succeeded, claimed.jobs)
        reported, claimed = store.turn(buffered, request, now=T0)
        # Another pump may hold a row for a moment that it has just failed to claim.
        buffered = still_busy(buffered, reported)


def still_busy(outcomes: list[Outcome], reported: ReportAnswer) -> list[Outcome]:
    rows = zip(outcomes, reported.rows, strict=True)
    return [outcome for outcome, row in rows if row.verdict is Verdict.BUSY]


def test_two_thousand_jobs_go_to_eight_pumps_once_each(open_store: OpenStore) -> None:
    total = 2_000
    default_store().enqueue([new_job(number) for number in range(1, total + 1)])
    taken: list[LeasedJob] = []
    stores = [open_store() for _ in range(CLAIMERS)]
    in_threads(CLAIMERS, lambda n: drain(stores[n], n + 1, taken, limit=20))
    assert Counter(job.job_id for job in taken) == Counter(map(uid, range(1, total + 1)))
    assert Job.objects.filter(state="succeeded", run=1, spent=0).count() == total
    assert Lease.objects.count() == 0


@pytest.mark.parametrize("by_key", [False, True])
def test_limit_is_never_exceeded(open_store: OpenStore, by_key: bool) -> None:  # noqa: FBT001 - parametrized
    limit, total = 3, 120
    key = "gateway" if by_key else None
    store = default_store()
    store.enqueue([new_job(number, limit_key=key) for number in range(1, total + 1)])
    if by_key:
        store.set_limit("gateway", limit, actor=ACTOR, now=T0)
    else:
        store.set_queue_limit("default", limit, actor=ACTOR, now=T0)
    stores = [open_store() for _ in range(CLAIMERS)]
    lock = threading.Lock()
    held = most = done = 0

    def work(number: int) -> None:
        nonlocal held, most, done
        request = claim_request(pump_id=uid(number + 1), limit=5)
        while done < total:
            jobs = stores[number].claim(request, now=T0).jobs
            with lock:
                held += len(jobs)
                most = max(most, held)
            if jobs:
                with lock:
                    # Before the report: its slots may be taken before it returns.
                    held -= len(jobs)
                    done += len(jobs)
                outcomes = list(map(succeeded, jobs))
                while outcomes:
                    outcomes = still_busy(outcomes, stores[number].report(outcomes, now=T0))

    in_threads(CLAIMERS, work)
    assert most <= limit
    assert Job.objects.filter(state="succeeded").count() == total


def test_saturated_limit_hides_no_other_work(store: PumpStore) -> None:
    store.enqueue([new_job(n, queue="limited", priority=9) for n in range(1, 5)])
    store.enqueue([new_job(n, limit_key="full", priority=9) for n in range(11, 15)])
    store.enqueue([new_job(n) for n in range(21, 25)])
    store.set_queue_limit("limited", 1, actor=ACTOR, now=T0)
    store.set_limit("full", 1, actor=ACTOR, now=T0)
    request = claim_request("limited", "default")
    answer = store.claim(request, now=T0)
    assert [job.job_id.int for job in answer.jobs] == [1, 11, 21, 22, 23, 24]
    again = store.claim(request, now=T0)
    assert (again.jobs, again.next_due) == ((), T0)


def test_f131_one_key_goes_to_one_of_many_enqueuers(transactional_db: None) -> None:
    together = threading.Barrier(ENQUEUERS)
    answers: dict[int, list[Enqueued]] = {turn: [] for turn in range(ROUNDS)}

    def work(number: int) -> None:
        try:
            for turn in range(ROUNDS):
                together.wait(60)
                job = new_job(number + ENQUEUERS * turn + 1, unique_key=f"k{turn}")
                answers[turn] += default_store().enqueue([job])
        finally:
            connection.close()

    in_threads(ENQUEUERS, work)
    assert Job.objects.count() == ROUNDS
    held = dict(Job.objects.values_list("unique_key", "id"))
    for turn, found in answers.items():
        assert {answer.id for answer in found} == {held[f"k{turn}"]}
        assert sorted(each.created for each in found) == [False] * (ENQUEUERS - 1) + [True]


@pytest.mark.vendor("postgresql")
def test_enqueuer_that_waited_for_a_key_finds_its_holder(transactional_db: None) -> None:
    answers: list[Enqueued] = []
    inserted, begun = threading.Event(), threading.Event()

    def second() -> None:
        try:
            inserted.wait(10)
            begun.set()
            job = new_job(2, unique_key="k", if_duplicate=IfDuplicate.REJECT)
            answers.extend(default_store().enqueue([job]))
        finally:
            connection.close()

    thread = threading.Thread(target=second, daemon=True)
    thread.start()
    with transaction.atomic():
        default_store().enqueue([new_job(1, unique_key="k")])
        inserted.set()
        assert begun.wait(10)
    thread.join(30)
    assert [(answer.id, answer.created) for answer in answers] == [(uid(1), False)]


@pytest.mark.vendor("postgresql")
def test_rows_of_an_open_transaction_stop_no_pump(store: PumpStore) -> None:
    store.enqueue([new_job(number) for number in range(1, 5)])
    first = store.claim(claim_request(limit=2), now=T0).jobs
    other = connection.copy("default")
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM backwave_job WHERE id IN (%s, %s) FOR SHARE", [uid(1), uid(3)]
            )
            cursor.execute("SELECT 1 FROM backwave_lease WHERE job_id = %s FOR SHARE", [uid(2)])
        rows = store.report([succeeded(job) for job in first], now=T0).rows
        assert [row.verdict for row in rows] == [Verdict.BUSY, Verdict.BUSY]
        claimed = store.claim(claim_request(), now=T0)
        assert [job.job_id for job in claimed.jobs] == [uid(4)]
        assert (claimed.short, claimed.next_due) == (True, T0)
        beaten = store.heartbeat(beat(*(job.lease_id for job in first)), now=T0)
        assert [renewal.health for renewal in beaten.renewals] == [
            LeaseHealth.RENEWED,
            LeaseHealth.BUSY,
        ]
    finally:
        other.rollback()
        other.close()
    rows = store.report([succeeded(job) for job in first], now=T0).rows
    assert [row.verdict for row in rows] == [Verdict.APPLIED, Verdict.APPLIED]


@pytest.mark.vendor("postgresql")
def test_cap_that_somebody_holds_withholds_its_queue_for_a_turn(store: PumpStore) -> None:
    store.enqueue([new_job(1, queue="limited"), new_job(2)])
    store.set_queue_limit("limited", 5, actor=ACTOR, now=T0)
    with transaction.atomic():
        Queue.objects.select_for_update().get(name="limited")
        answer = store.claim(claim_request("limited", "default"), now=T0)
        assert ([job.job_id.int for job in answer.jobs], answer.next_due) == ([2], T0)
    answer = store.claim(claim_request("limited", "default"), now=T0)
    assert [job.job_id.int for job in answer.jobs] == [1]


def test_lapsed_leases_are_ended_once_by_many_sweepers(open_store: OpenStore) -> None:
    default_store().enqueue([new_job(number) for number in range(1, 101)])
    stores = [open_store() for _ in range(4)]
    for _ in range(5):
        stores[0].claim(claim_request(limit=20), now=T0)
    counts: list[int] = []
    later = T0 + 2 * MINUTE

    def work(number: int) -> None:
        counts.append(stores[number].expire_leases(limit=100, now=later).count)

    in_threads(4, work)
    work(0)  # for rows that two sweepers kept from each other
    assert sum(counts) == 100
    assert Job.objects.filter(spent=1, state="scheduled").count() == 100


@pytest.mark.vendor("postgresql")
@pytest.mark.django_db(transaction=True)
def test_enqueue_that_a_deadlock_undoes_is_tried_again(open_store: OpenStore) -> None:
    other = open_store()
    slow_to_notice = Statement("SELECT set_config('deadlock_timeout', '30s', true)")
    waiters = Statement("SELECT 1 FROM pg_locks WHERE NOT granted")
    answers: list[Enqueued] = []

    def work() -> None:
        # Takes "c", then waits for "m".
        keyed = [new_job(1, unique_key="c"), new_job(2, unique_key="m")]
        answers.extend(default_store().enqueue(keyed))
        connection.close()

    with other.executor.transaction():
        other.executor.fetch(slow_to_notice, {})
        other.enqueue([new_job(3, unique_key="m")])
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        until(lambda: bool(other.executor.fetch(waiters, {})), seconds=20)
        other.enqueue([new_job(4, unique_key="c")])
    thread.join(60)
    assert [(answer.id, answer.created) for answer in answers] == [(uid(4), False), (uid(3), False)]
    assert set(Job.objects.values_list("id", flat=True)) == {uid(3), uid(4)}
