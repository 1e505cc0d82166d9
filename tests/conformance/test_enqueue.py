from collections.abc import Callable

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.errors import UnknownParent
from backwave_django.core.jobs import Enqueued
from backwave_django.core.memory import Snapshot
from backwave_django.core.states import JobState
from tests.builders import DAY, HOUR, T0, after, claim_request, new_job, uid
from tests.conformance.facts import Facts, column, facts, history, states

Observe = Callable[[], Snapshot]


def test_job_begins_scheduled_with_no_runs_and_nothing_spent(
    store: Store, observe: Observe
) -> None:
    answer = store.enqueue([new_job(1, due_at=T0 + HOUR)])
    assert answer == (Enqueued(uid(1), created=True, state=JobState.SCHEDULED),)
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 0, 0, T0 + HOUR)
    assert history(observe(), 1) == ()


def test_every_option_of_a_job_is_kept(store: Store, observe: Observe) -> None:
    store.enqueue(
        [
            new_job(
                1,
                wire_name="shop.charge",
                queue="billing",
                payload='{"args":["é",null]}',
                payload_version=3,
                priority=-100,
                deadline=T0 + DAY,
                tags='{"team":"billing"}',
                limit_key="gateway",
                unique_key="charge:1",
                workflow=uid(77),
                schedule="nightly",
                scheduled_for=T0,
                trace="00-trace",
            )
        ]
    )
    names = (
        *("wire_name", "queue", "payload", "payload_version", "priority", "deadline", "tags"),
        *("limit_key", "unique_key", "workflow", "schedule", "scheduled_for", "trace"),
    )
    assert column(observe(), 1, *names) == (
        *("shop.charge", "billing", '{"args":["é",null]}', 3, -100, T0 + DAY),
        *({"team": "billing"}, "gateway", "charge:1", uid(77), "nightly", T0, "00-trace"),
    )


RARE = {
    "due_at": T0 + HOUR,
    "deadline": T0 + DAY,
    "limit_key": "gateway",
    "workflow": uid(77),
    "schedule": "nightly",
    "scheduled_for": T0,
    "trace": "00-trace",
}
NOTHING_RARE = {**dict.fromkeys(RARE), "due_at": T0}


@pytest.mark.parametrize("company", [0, 1], ids=["alone", "beside one that has none of them"])
@pytest.mark.parametrize("names", [(), tuple(RARE), *((name,) for name in RARE)], ids="+".join)
def test_what_few_jobs_have_is_kept_of_those_that_have_it(
    store: Store, observe: Observe, names: tuple[str, ...], company: int
) -> None:
    given = {name: RARE[name] for name in names}
    plain = {"due_at": T0}
    store.enqueue([new_job(1, **plain | given), *[new_job(2, **plain)] * company])
    assert column(observe(), 1, *RARE) == tuple((NOTHING_RARE | given).values())
    if company:
        assert column(observe(), 2, *RARE) == tuple(NOTHING_RARE.values())


def test_job_without_a_due_time_is_due_now_by_the_clock_of_the_store(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1, due_at=None)])
    due_at, created_at = column(observe(), 1, "due_at", "created_at")
    assert due_at == created_at < T0


def test_nothing_is_enqueued_by_an_empty_batch(store: Store, observe: Observe) -> None:
    assert store.enqueue([]) == ()
    assert observe().jobs == {}


def test_many_jobs_are_answered_in_the_order_of_the_request(store: Store) -> None:
    answer = store.enqueue([new_job(number) for number in (5, 2, 9)])
    assert [row.id for row in answer] == [uid(5), uid(2), uid(9)]


def test_thousands_of_jobs_go_in_at_once(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(number) for number in range(1, 2_502)])
    assert len(observe().jobs) == 2_501


def test_unknown_parent_refuses_the_whole_batch(store: Store, observe: Observe) -> None:
    with pytest.raises(UnknownParent) as refusal:
        store.enqueue([new_job(1), new_job(2, parents=after(1, 404))])
    assert refusal.value.missing == (uid(404),)
    assert observe().jobs == {}


def test_jobs_can_be_claimed_after_a_refused_batch(store: Store) -> None:
    with pytest.raises(UnknownParent):
        store.enqueue([new_job(1, parents=after(404))])
    store.enqueue([new_job(1)])
    assert len(store.claim(claim_request(), now=T0).jobs) == 1


def test_two_batches_do_not_disturb_each_other(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.enqueue([new_job(2)])
    assert states(observe(), 1, 2) == (JobState.LEASED, JobState.SCHEDULED)
