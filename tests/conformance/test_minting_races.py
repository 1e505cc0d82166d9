"""Several pumps and people at once: every tick once, and no job beside another that forbids it."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from backwave_django import models
from backwave_django.core.contract import Store, StoreSettings
from backwave_django.core.errors import StoreUnavailable
from backwave_django.core.schedule_answers import DeclareMode
from backwave_django.core.schedules import Rule, decide
from backwave_django.store.executors import PumpStore, open_pump_store
from tests.builders import ACTOR, MINUTE, SECOND, T0, schedule_spec

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 4


@pytest.fixture
def stores() -> Iterator[list[PumpStore]]:
    """A store for each thread, each on a connection of its own."""
    opened = [
        open_pump_store(
            "default",
            StoreSettings(),
            application_name=f"race-{number}",
            lease_duration=10 * MINUTE,
        )
        for number in range(THREADS)
    ]
    yield opened
    for store in opened:
        store.close()


def at_once(stores: list[PumpStore], act: Callable[[PumpStore], object]) -> list[object]:
    """Do the same in every thread, as nearly together as threads can."""
    barrier = Barrier(len(stores), timeout=30)

    def run(store: PumpStore) -> object:
        barrier.wait()
        return act(store)

    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(run, stores))


def turn(store: Store, *, second: int) -> None:
    """What a pump does at a tick; a database that is busy is asked again."""
    now = T0 + second * SECOND
    while True:
        try:
            read = store.load_schedules(after="", limit=100).schedules
            found = [decide(one, now=now) for one in read]
            store.mint([one for one in found if one is not None], now=now)
        except StoreUnavailable:
            continue
        return


def test_every_tick_is_decided_about_once(stores: list[PumpStore]) -> None:
    specs = [schedule_spec(f"s{number}", rule=Rule(every_seconds=1.0)) for number in range(10)]
    stores[0].declare_schedules(specs, owner="shop", release=None, mode=DeclareMode.CREATE, now=T0)

    def run(store: PumpStore) -> None:
        for second in range(1, 21):
            turn(store, second=second)

    at_once(stores, run)
    turn(stores[0], second=20)
    ticks = Counter(models.Job.objects.values_list("schedule", "scheduled_for"))
    assert set(ticks.values()) == {1}
    # Threads do not keep in step: a tick may be passed over for a later one, and is counted.
    minted = Counter(name for name, _ in ticks)
    skipped = dict(models.Schedule.objects.values_list("name", "skipped"))
    assert {name: minted[name] + skipped[name] for name in skipped} == {
        spec.name: 20 for spec in specs
    }


def test_of_jobs_that_never_overlap_one_is_made(stores: list[PumpStore]) -> None:
    spec = schedule_spec(no_overlap=True, rule=Rule(every_seconds=1.0))
    stores[0].declare_schedules([spec], owner="shop", release=None, mode=DeclareMode.CREATE, now=T0)

    def run(store: PumpStore) -> None:
        turn(store, second=1)
        while True:
            try:
                store.trigger_schedule("nightly", actor=ACTOR, now=T0)
            except StoreUnavailable:
                continue
            return

    at_once(stores, run)
    assert models.Job.objects.count() == 1


def test_pumps_that_start_together_make_each_schedule_once(stores: list[PumpStore]) -> None:
    specs = [schedule_spec(f"s{number}") for number in range(20)]

    def run(store: PumpStore) -> None:
        store.declare_schedules(specs, owner="shop", release=None, mode=DeclareMode.UPDATE, now=T0)

    at_once(stores, run)
    assert models.Schedule.objects.count() == 20
