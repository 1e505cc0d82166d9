"""What a pump remembers of a queue does not outlive a window, a rate or a cap that is set on it."""

from collections.abc import Callable

import pytest

from backwave_django.core.limits import Cap
from backwave_django.core.queues import QueueDefaults
from backwave_django.core.rates import Rate
from backwave_django.models import Queue
from backwave_django.store import PumpStore, default_store
from tests.builders import ACTOR, HOUR, MINUTE, T0, claim_request, new_job, succeeded

SHUT = "01:00-02:00 UTC"
TWO = Rate.parse("2/day")

CHANGES: list[tuple[Callable[[PumpStore], None], int]] = [
    (lambda store: store.set_window("default", SHUT, actor=ACTOR, now=T0), 0),
    (lambda store: store.set_queue_rate("default", TWO, actor=ACTOR, now=T0), 2),
    (lambda store: store.set_queue_limit("default", 3, actor=ACTOR, now=T0), 3),
    (lambda store: store.declare_queues({"default": QueueDefaults(window=SHUT)}), 0),
    (lambda store: store.declare_queues({"default": QueueDefaults(Cap(None, TWO))}), 2),
    (lambda store: store.declare_queues({"default": QueueDefaults(Cap(3))}), 3),
]
KINDS = ["window", "rate", "cap", "default-window", "default-rate", "default-cap"]


@pytest.mark.parametrize(("change", "left"), CHANGES, ids=KINDS)
@pytest.mark.parametrize("merged", [False, True], ids=["claim", "turn"])
def test_queue_that_was_unlimited_a_moment_ago_is_claimed_with_care(
    store: PumpStore,
    change: Callable[[PumpStore], None],
    left: int,
    merged: bool,  # noqa: FBT001 - parametrized
) -> None:
    default_store().enqueue([new_job(number) for number in range(1, 40)])
    request = claim_request(limit=4)
    first = store.claim(request, now=T0).jobs
    second = store.claim(request, now=T0).jobs
    store.report([succeeded(job) for job in first], now=T0)
    change(store)
    outcomes = [succeeded(job) for job in second]
    if merged:
        jobs = store.turn(outcomes, request, now=T0)[1].jobs
    else:
        store.report(outcomes, now=T0)
        jobs = store.claim(request, now=T0).jobs
    assert len(jobs) == left
    assert store.claim(request, now=T0).jobs == ()


def test_window_that_cannot_be_read_here_keeps_its_queue_closed_and_says_so(
    store: PumpStore, caplog: pytest.LogCaptureFixture
) -> None:
    Queue.objects.create(name="default", window="00:00-24:00 Nowhere/Else")
    default_store().enqueue([new_job(1), new_job(2, queue="mail")])
    for _ in range(2):
        answer = store.claim(claim_request("default", "mail"), now=T0)
    assert [job.job_id.int for job in answer.jobs] == []
    assert answer.next_due == T0 + MINUTE
    said = [record.getMessage() for record in caplog.records if "stays closed" in record.message]
    assert len(said) == 1
    assert "Nowhere/Else" in said[0]


def test_closed_queue_opens_for_a_pump_that_remembers_nothing_due(store: PumpStore) -> None:
    store.set_window("default", SHUT, actor=ACTOR, now=T0)
    default_store().enqueue([new_job(1)])
    assert store.claim(claim_request(), now=T0).next_due == T0 + HOUR
    assert len(store.claim(claim_request(), now=T0 + HOUR).jobs) == 1
