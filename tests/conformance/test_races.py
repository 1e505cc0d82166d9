"""Several stores at once, each on a connection of its own in a thread of its own."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

import pytest

from backwave_django.core.contract import StoreSettings
from backwave_django.core.errors import StoreUnavailable
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.outcomes import Verdict
from backwave_django.core.states import JobState
from backwave_django.store.executors import PumpStore, open_pump_store
from backwave_django.store.names import Statement
from tests.builders import ACTOR, MINUTE, T0, after, claim_request, new_job, succeeded, uid
from tests.conformance.facts import states
from tests.conformance.observing import observe_database

pytestmark = pytest.mark.django_db(transaction=True)
T = TypeVar("T")
THREADS = 4
LEASES = Statement("SELECT count(*) FROM {lease} l WHERE l.queue = 'default'")


@pytest.fixture
def stores() -> Iterator[list[PumpStore]]:
    """One store for each thread."""
    opened = [
        open_pump_store(
            "default", StoreSettings(), application_name=f"race-{n}", lease_duration=5 * MINUTE
        )
        for n in range(THREADS)
    ]
    yield opened
    for store in opened:
        store.close()


def at_once(stores: list[PumpStore], *acts: Callable[[PumpStore], T]) -> list[T]:
    """Run the acts in turn over the stores, as nearly together as threads can."""
    barrier = Barrier(len(stores), timeout=30)

    def run(number: int) -> T:
        barrier.wait()
        return acts[number % len(acts)](stores[number])

    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(run, range(len(stores))))


def patiently(act: Callable[[], T]) -> T:
    """Do it again while the database is busy."""
    while True:
        try:
            return act()
        except StoreUnavailable:
            continue


def take(store: PumpStore, limit: int = 5) -> tuple[LeasedJob, ...]:
    return patiently(lambda: store.claim(claim_request(limit=limit), now=T0)).jobs


def end(store: PumpStore, jobs: tuple[LeasedJob, ...]) -> list[Verdict]:
    outcomes = [succeeded(job) for job in jobs]
    return [row.verdict for row in patiently(lambda: store.report(outcomes, now=T0)).rows]


def settle_all(store: PumpStore) -> None:
    """Sweep until there is nothing left."""
    full = True
    while full:
        full = patiently(lambda: store.settle(limit=100, now=T0)).full


def test_job_goes_to_one_claimer(stores: list[PumpStore]) -> None:
    stores[0].enqueue([new_job(number) for number in range(1, 201)])

    def claim_all(store: PumpStore) -> list[Any]:
        claimed: list[Any] = []
        while jobs := take(store):
            claimed += [job.job_id for job in jobs]
        return claimed

    claimed = [job_id for part in at_once(stores, claim_all) for job_id in part]
    assert sorted(claimed) == [uid(number) for number in range(1, 201)]
    assert {job["run"] for job in observe_database().jobs.values()} == {1}


@pytest.mark.parametrize("cap", [1, 3])
@pytest.mark.parametrize("limited", ["queue", "key"])
def test_limit_holds_whoever_claims(stores: list[PumpStore], limited: str, cap: int) -> None:
    if limited == "queue":
        stores[0].set_queue_limit("default", cap, actor=ACTOR, now=T0)
    else:
        stores[0].set_limit("gateway", cap, actor=ACTOR, now=T0)
    key = "gateway" if limited == "key" else None
    stores[0].enqueue([new_job(number, limit_key=key) for number in range(1, 41)])

    def work(store: PumpStore) -> int:
        most = 0
        for _ in range(20):
            jobs = take(store, limit=4)
            most = max(most, patiently(lambda: store.executor.fetch(LEASES, {})[0][0]))
            assert set(end(store, jobs)) <= {Verdict.APPLIED}
        return most

    assert max(at_once(stores, work)) <= cap
    while jobs := take(stores[0]):
        end(stores[0], jobs)
    assert set(states(observe_database(), *range(1, 41))) == {JobState.SUCCEEDED}


def test_lapsed_lease_is_ended_by_one_sweeper(stores: list[PumpStore]) -> None:
    stores[0].enqueue([new_job(number) for number in range(1, 61)])
    assert len(take(stores[0], limit=30) + take(stores[0], limit=30)) == 60

    def sweep(store: PumpStore) -> int:
        later, count = T0 + MINUTE, 0
        for _ in range(20):
            count += patiently(lambda: store.expire_leases(limit=10, now=later)).count
        return count

    assert sum(at_once(stores, sweep)) == 60
    snapshot = observe_database()
    assert {job["spent"] for job in snapshot.jobs.values()} == {1}
    assert {len(rows) for rows in snapshot.outcomes.values()} == {1}


def test_late_outcome_and_sweep_cannot_both_count(stores: list[PumpStore]) -> None:
    stores[0].enqueue([new_job(number) for number in range(1, 41)])
    jobs = take(stores[0], limit=40)
    later = T0 + MINUTE

    def report(store: PumpStore) -> int:
        return sum(end(store, (job,)).count(Verdict.APPLIED) for job in jobs)

    def sweep(store: PumpStore) -> int:
        count = 0
        while part := patiently(lambda: store.expire_leases(limit=3, now=later)).count:
            count += part
        return count

    assert sum(at_once(stores, report, sweep)) == 40
    snapshot = observe_database()
    assert {len(rows) for rows in snapshot.outcomes.values()} == {1}
    assert snapshot.leases == {}


def test_key_is_won_by_one_enqueuer(stores: list[PumpStore]) -> None:
    for key in range(20):

        def enqueue(store: PumpStore, key: int = key) -> Any:
            job = new_job(1_000 * key + stores.index(store) + 1, unique_key=f"k{key}")
            return patiently(lambda: store.enqueue([job]))[0]

        answers = at_once(stores, enqueue)
        assert len({answer.id for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1
    assert len(observe_database().jobs) == 20


def test_no_child_is_forgotten_when_it_is_linked_while_its_parent_ends(
    stores: list[PumpStore],
) -> None:
    for parent in range(1, 16):
        stores[0].enqueue([new_job(parent)])
        jobs = take(stores[0])

        def link(store: PumpStore, parent: int = parent) -> None:
            child = new_job(1_000 * parent + stores.index(store), parents=after(parent))
            patiently(lambda: store.enqueue([child]))

        def report(store: PumpStore, jobs: tuple[LeasedJob, ...] = jobs) -> None:
            end(store, jobs)

        at_once(stores, link, report)
    settle_all(stores[0])
    left = [job["state"] for job in observe_database().jobs.values()]
    assert (len(left), left.count(JobState.AWAITING)) == (45, 0)


def test_graph_that_ends_from_all_sides_counts_each_parent_once(stores: list[PumpStore]) -> None:
    parents = range(1, 41)
    stores[0].enqueue(
        [
            *(new_job(parent) for parent in parents),
            *(new_job(child, parents=after(*parents)) for child in range(1_001, 1_006)),
        ]
    )

    def work(store: PumpStore) -> None:
        while jobs := take(store, limit=3):
            # A claim elsewhere may hold a row for a moment that it looked at and did not get.
            while Verdict.BUSY in (verdicts := end(store, jobs)):
                jobs = tuple(j for j, v in zip(jobs, verdicts, strict=True) if v is Verdict.BUSY)

    at_once(stores, work)
    settle_all(stores[0])
    work(stores[0])
    snapshot = observe_database()
    assert {job["state"] for job in snapshot.jobs.values()} == {JobState.SUCCEEDED}
    assert {job["pending_parents"] for job in snapshot.jobs.values()} == {0}
