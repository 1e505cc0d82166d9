"""Defaults of the settings among many pumps: they hold for all, and noting them waits for none."""

import pytest

from backwave_django.core.jobs import LeasedJob
from backwave_django.core.limits import Cap
from backwave_django.core.queues import NO_DEFAULTS, QueueDefaults
from backwave_django.core.rates import Rate
from backwave_django.models import Lease, Queue
from backwave_django.store import PumpStore, default_store
from tests.builders import ACTOR, T0, claim_request, new_job, uid
from tests.conformance.subjects import held_row
from tests.store.conftest import OpenStore
from tests.store.test_races import in_threads

SAID = {"default": QueueDefaults(Cap(3, Rate.parse("9/minute")), "always"), "bulk": NO_DEFAULTS}


def claim_together(stores: list[PumpStore]) -> list[LeasedJob]:
    """Let all claim at once, until none of them gets anything and none was in another's way."""
    taken: list[LeasedJob] = []

    def work(number: int) -> None:
        request = claim_request(pump_id=uid(number + 1), limit=2)
        idle = 0
        while idle < 3:
            jobs = stores[number].claim(request, now=T0).jobs
            taken.extend(jobs)
            idle = 0 if jobs else idle + 1

    in_threads(len(stores), work)
    # What was locked by another at each of somebody's last tries is there for the next.
    taken.extend(stores[0].claim(claim_request(pump_id=uid(1)), now=T0).jobs)
    return taken


def test_default_that_one_pump_notes_holds_for_two_that_claim_at_once(
    open_store: OpenStore,
) -> None:
    stores = [open_store() for _ in range(2)]
    default_store().enqueue([new_job(number) for number in range(1, 60)])
    stores[0].declare_queues(SAID)
    assert len(claim_together(stores)) == 3
    stores[1].set_queue_limit("default", 5, actor=ACTOR, now=T0)
    assert len(claim_together(stores)) == 2
    stores[1].set_queue_limit("default", None, actor=ACTOR, now=T0)
    assert claim_together(stores) == []
    Lease.objects.all().delete()
    # Five of nine tokens are gone, and three of the other four find a slot.
    assert len(claim_together(stores)) == 3


@pytest.mark.vendor("postgresql")
def test_pump_that_starts_waits_for_nobody_if_the_settings_are_as_they_were(
    store: PumpStore,
) -> None:
    store.declare_queues(SAID)
    with held_row(Queue, name="default"):
        # A lock would be waited for, and that is an error before the row is let go.
        store.declare_queues(SAID)
    row = Queue.objects.get()
    assert (row.limit_default, row.rate_default, row.window_default) == (3, "9/minute", "always")


def test_pumps_that_start_and_claim_at_once_get_on_with_each_other(open_store: OpenStore) -> None:
    stores = [open_store() for _ in range(4)]
    default_store().enqueue([new_job(number) for number in range(1, 400)])
    names = ["default", "mail", "bulk"]

    def work(number: int) -> None:
        request = claim_request(*names, pump_id=uid(number + 1), limit=1)
        for turn in range(20):
            cap = Cap(turn % 5 + 1)
            order = names if number % 2 else names[::-1]
            stores[number].declare_queues(dict.fromkeys(order, QueueDefaults(cap)))
            stores[number].claim(request, now=T0)

    in_threads(4, work)
    assert set(Queue.objects.values_list("limit_default", flat=True)) == {5}
    assert Lease.objects.count() <= 5
