from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.memory import Snapshot
from backwave_django.core.retries import RetryTable
from backwave_django.core.states import JobState
from tests.builders import (
    ACTOR,
    HOUR,
    MINUTE,
    ONCE,
    OTHER_PUMP,
    PUMP,
    RETRY,
    SECOND,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    released,
    uid,
)
from tests.conformance.facts import Facts, column, facts, numbers
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
TICK = timedelta(microseconds=1)


def test_claim_leases_a_due_job(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0 + SECOND).jobs
    assert facts(observe(), 1) == Facts(JobState.LEASED, 1, 0, T0)
    assert observe().leases == {
        uid(1): {
            "queue": "default",
            "limit_key": None,
            "pump_id": PUMP,
            "run": 1,
            "acquired_at": T0 + SECOND,
            "expires_at": T0 + SECOND + MINUTE,
            "retry": RETRY.encode(),
            "cancel_requested": False,
            "progress": None,
        }
    }
    assert job.lease_id != job.job_id


def test_leased_job_carries_what_an_attempt_needs(store: Store) -> None:
    options: dict[str, Any] = {
        "wire_name": "shop.charge",
        "queue": "billing",
        "payload": '{"args":[7]}',
        "payload_version": 2,
        "due_at": T0,
        "deadline": T0 + HOUR,
        "tags": "{}",
        "limit_key": "gateway",
        "schedule": "nightly",
        "scheduled_for": T0,
        "workflow": uid(77),
        "trace": "00-trace",
    }
    store.enqueue([new_job(1, **options)])
    (job,) = store.claim(claim_request("billing"), now=T0).jobs
    assert job == LeasedJob(
        lease_id=job.lease_id,
        job_id=uid(1),
        run=1,
        spent=0,
        unroutable_since=None,
        retry=RETRY.encode(),
        expires_at=T0 + MINUTE,
        **options,
    )


def test_policy_of_the_job_type_governs_before_that_of_the_group(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1, wire_name="shop.charge"), new_job(2)])
    table = RetryTable(default=RETRY, own={"shop.charge": ONCE})
    jobs = store.claim(claim_request(retries=table), now=T0).jobs
    assert [job.retry for job in jobs] == [ONCE.encode(), RETRY.encode()]
    assert [column(observe(), number, "max_attempts") for number in (1, 2)] == [(1,), (3,)]


def test_job_is_leased_to_one_caller(store: Store) -> None:
    store.enqueue([new_job(1)])
    first = store.claim(claim_request(), now=T0)
    second = store.claim(claim_request(pump_id=OTHER_PUMP), now=T0)
    assert (numbers(first.jobs), second.jobs) == ((1,), ())


def test_run_grows_with_every_claim_and_spent_does_not(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    for _ in range(3):
        (job,) = store.claim(claim_request(), now=T0).jobs
        store.report([released(job)], now=T0)
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 3, 0, T0)


def test_leased_job_tells_the_attempts_that_were_spent(store: Store) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([failed(job, due_at=T0)], now=T0)
    (job,) = store.claim(claim_request(), now=T0).jobs
    assert (job.run, job.spent, job.attempt) == (2, 1, 2)


def test_job_is_due_from_its_very_instant(store: Store) -> None:
    store.enqueue([new_job(1)])
    assert store.claim(claim_request(), now=T0 - TICK).jobs == ()
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1,)


def test_awaiting_and_ended_jobs_are_not_claimed(store: Store) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1)), new_job(3)])
    store.cancel([uid(3)], actor=ACTOR, now=T0)
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (1,)


def test_only_the_queues_that_were_named_are_served(store: Store) -> None:
    store.enqueue([new_job(1, queue="mail"), new_job(2, queue="bulk"), new_job(3)])
    assert numbers(store.claim(claim_request("bulk", "mail"), now=T0).jobs) == (2, 1)


def test_order_is_queue_then_priority_then_due_time_then_id(store: Store) -> None:
    store.enqueue(
        [
            new_job(1, queue="bulk", priority=100, due_at=T0 - HOUR),
            new_job(2, priority=-5, due_at=T0 - HOUR),
            new_job(3, due_at=T0),
            new_job(5, due_at=T0 - SECOND),
            new_job(4, due_at=T0 - SECOND),
            new_job(6, priority=7, due_at=T0),
        ]
    )
    answer = store.claim(claim_request("default", "bulk"), now=T0)
    assert numbers(answer.jobs) == (6, 4, 5, 3, 2, 1)


def test_claim_takes_the_first_of_the_order_up_to_its_limit(store: Store) -> None:
    store.enqueue([new_job(number, priority=-number) for number in range(1, 6)])
    answers = [store.claim(claim_request(limit=2), now=T0) for _ in range(3)]
    assert [numbers(answer.jobs) for answer in answers] == [(1, 2), (3, 4), (5,)]
    assert [answer.short for answer in answers] == [False, False, True]


def test_keyed_jobs_come_after_unkeyed_ones_of_their_priority(store: Store) -> None:
    store.enqueue(
        [
            new_job(1, limit_key="a", due_at=T0 - HOUR),
            new_job(2),
            new_job(3, limit_key="b", priority=1),
        ]
    )
    assert numbers(store.claim(claim_request(), now=T0).jobs) == (3, 2, 1)


def test_keys_take_turns_from_the_cursor_on(store: Store) -> None:
    keys = {1: "a", 2: "b", 3: "c", 4: "b", 5: "C"}
    store.enqueue([new_job(number, limit_key=key) for number, key in keys.items()])
    answer = store.claim(claim_request(key_cursor="a"), now=T0)
    assert numbers(answer.jobs) == (2, 4, 3, 5, 1)


def test_cursor_of_the_answer_names_the_last_key_served(store: Store) -> None:
    store.enqueue([new_job(number, limit_key=key) for number, key in enumerate("abc", start=1)])
    first = store.claim(claim_request(limit=2), now=T0)
    store.enqueue([new_job(4, limit_key="a")])
    second = store.claim(claim_request(key_cursor=first.key_cursor, limit=1), now=T0)
    assert (numbers(first.jobs), first.key_cursor, numbers(second.jobs)) == ((1, 2), "b", (3,))


def test_queue_named_twice_counts_once(store: Store) -> None:
    store.enqueue([new_job(1), new_job(2, queue="mail")])
    answer = store.claim(claim_request("mail", "default", "mail"), now=T0)
    assert numbers(answer.jobs) == (2, 1)


def test_passed_deadline_is_not_claimed(store: Store) -> None:
    store.enqueue([new_job(1, deadline=T0), new_job(2, deadline=T0 + TICK)])
    answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((2,), T0)


@pytest.mark.row_locks
def test_row_of_another_transaction_is_passed_over_and_counts_as_withheld(subject: Subject) -> None:
    subject.store.enqueue([new_job(1), new_job(2)])
    with subject.hold_job(uid(1)):
        answer = subject.store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.short, answer.next_due) == ((2,), True, T0)


@pytest.mark.parametrize("until", [None, T0 + HOUR])
def test_paused_queue_yields_nothing(store: Store, until: object) -> None:
    store.enqueue([new_job(1), new_job(2, queue="mail")])
    store.pause("default", until=until, actor=ACTOR, now=T0)  # type: ignore[arg-type]  # by parameter
    answer = store.claim(claim_request("default", "mail"), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((2,), None)


def test_pause_ends_at_its_instant(store: Store) -> None:
    store.enqueue([new_job(1)])
    store.pause("default", until=T0 + HOUR, actor=ACTOR, now=T0)
    assert store.claim(claim_request(), now=T0 + HOUR - TICK).jobs == ()
    assert numbers(store.claim(claim_request(), now=T0 + HOUR).jobs) == (1,)


def test_next_due_is_now_when_the_batch_was_too_small(store: Store) -> None:
    store.enqueue([new_job(1), new_job(2)])
    answer = store.claim(claim_request(limit=1), now=T0 + SECOND)
    assert (numbers(answer.jobs), answer.next_due) == ((1,), T0 + SECOND)


def test_next_due_is_the_earliest_future_job_of_the_served_queues(store: Store) -> None:
    store.enqueue(
        [
            new_job(1, due_at=T0 + HOUR),
            new_job(2, due_at=T0 + MINUTE, priority=-9),
            new_job(3, due_at=T0 + SECOND, queue="mail"),
            new_job(4, due_at=T0 + 2 * MINUTE, limit_key="a"),
        ]
    )
    answer = store.claim(claim_request(), now=T0)
    assert (answer.jobs, answer.short, answer.next_due) == ((), True, T0 + MINUTE)


def test_next_due_is_none_when_nothing_is_scheduled(store: Store) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    answer = store.claim(claim_request(), now=T0)
    assert (numbers(answer.jobs), answer.next_due) == ((1,), None)


def test_empty_store_answers_a_short_claim(store: Store) -> None:
    answer = store.claim(claim_request(), now=T0)
    assert (answer.jobs, answer.short, answer.next_due, answer.key_cursor) == ((), True, None, "")
