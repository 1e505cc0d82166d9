from collections.abc import Callable
from datetime import timedelta

import pytest

from backwave_django.core.contract import Store, StoreSettings
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import Outcome
from backwave_django.core.retention import Retention
from tests.builders import (
    ACTOR,
    DAY,
    PUMP,
    SECOND,
    T0,
    after,
    cancelled,
    claim_request,
    failed,
    new_job,
    pump_info,
    succeeded,
    uid,
    undecodable,
)
from tests.conformance.conftest import MakeSubject
from tests.conformance.facts import states

Observe = Callable[[], Snapshot]
TICK = timedelta(microseconds=1)
LONG = T0 + 400 * DAY


def end_all(store: Store, make: Callable[[LeasedJob], Outcome] = succeeded) -> None:
    while jobs := store.claim(claim_request(), now=T0).jobs:
        store.report([make(job) for job in jobs], now=T0)


@pytest.mark.parametrize(
    ("make", "age"),
    [(succeeded, 7 * DAY), (cancelled, 7 * DAY), (failed, 30 * DAY), (undecodable, 30 * DAY)],
)
def test_terminal_job_goes_when_it_is_older_than_its_retention(
    store: Store, observe: Observe, make: Callable[[LeasedJob], Outcome], age: timedelta
) -> None:
    store.enqueue([new_job(1)])
    end_all(store, make)
    assert store.purge(limit=10, now=T0 + age).count == 0
    assert store.purge(limit=10, now=T0 + age + TICK).count == 1
    assert (observe().jobs, observe().outcomes) == ({}, {})


def test_expired_job_goes_when_it_is_older_than_its_retention(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1, deadline=T0)])
    store.settle(limit=10, now=T0)
    assert store.purge(limit=10, now=T0 + 7 * DAY).count == 0
    assert store.purge(limit=10, now=T0 + 8 * DAY).count == 1


def test_live_jobs_are_never_purged(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3, parents=after(1))])
    store.claim(claim_request(limit=1), now=T0)
    assert store.purge(limit=10, now=LONG).count == 0
    assert states(observe(), 1, 2, 3) == ("leased", "scheduled", "awaiting")


def test_state_without_a_retention_is_kept_for_ever(make_subject: MakeSubject) -> None:
    subject = make_subject(StoreSettings(retention=Retention(succeeded=None)))
    subject.store.enqueue([new_job(1)])
    end_all(subject.store)
    assert subject.store.purge(limit=10, now=LONG).count == 0


def test_parent_of_a_live_child_stays_and_goes_after_it(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1), due_at=T0 + 100 * DAY)])
    end_all(store)
    assert store.purge(limit=10, now=T0 + 50 * DAY).count == 0
    store.cancel([uid(2)], actor=ACTOR, now=T0)
    assert store.purge(limit=10, now=T0 + 50 * DAY).count == 2
    assert (observe().jobs, observe().edges) == ({}, {})


def test_child_goes_though_its_parent_stays(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1, due_at=LONG), new_job(2, parents=after(1))])
    store.cancel([uid(2)], actor=ACTOR, now=T0)
    assert store.purge(limit=10, now=T0 + 8 * DAY).count == 1
    assert (set(observe().jobs), observe().edges) == ({uid(1)}, {})
    store.claim(claim_request(), now=LONG)


def test_members_of_a_live_workflow_stay(store: Store, observe: Observe) -> None:
    flow, other = uid(500), uid(501)
    store.enqueue(
        [
            new_job(1, workflow=flow),
            new_job(2, workflow=flow, due_at=LONG),
            new_job(3, workflow=other),
            new_job(4, workflow=other),
        ]
    )
    end_all(store)
    assert store.purge(limit=10, now=T0 + 8 * DAY).count == 2
    assert set(observe().jobs) == {uid(1), uid(2)}


def test_purge_deletes_at_most_its_limit_the_oldest_first(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(number) for number in (1, 2, 3)])
    jobs = store.claim(claim_request(), now=T0).jobs
    for second, job in enumerate(reversed(jobs)):
        store.report([succeeded(job)], now=T0 + second * SECOND)
    answer = store.purge(limit=2, now=LONG)
    assert (answer.count, answer.full, set(observe().jobs)) == (2, True, {uid(1)})
    answer = store.purge(limit=2, now=LONG)
    assert (answer.count, answer.full, observe().jobs) == (1, False, {})


def test_purged_key_is_free_for_good(store: Store) -> None:
    store.enqueue([new_job(1, unique_key="k")])
    end_all(store)
    store.purge(limit=10, now=LONG)
    (answer,) = store.enqueue([new_job(2, unique_key="k")])
    assert answer.created


def test_old_actions_and_silent_pumps_go_too(store: Store, observe: Observe) -> None:
    store.register(pump_info(), now=T0)
    store.register(pump_info(uid(9_002)), now=LONG)
    store.pause("default", until=None, actor=ACTOR, now=T0)
    store.resume("default", actor=ACTOR, now=LONG)
    assert store.purge(limit=10, now=LONG).count == 0
    assert [action.action for action in observe().actions] == ["resume"]
    assert set(observe().pumps) == {uid(9_002)}


def test_silent_pump_stays_while_it_has_leases(store: Store, observe: Observe) -> None:
    store.register(pump_info(), now=T0)
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.purge(limit=10, now=LONG)
    assert set(observe().pumps) == {PUMP}


def test_actions_and_pumps_are_kept_for_ever_if_the_settings_say_so(
    make_subject: MakeSubject,
) -> None:
    retention = Retention(operator_actions=None, dead_pumps=None)
    subject = make_subject(StoreSettings(retention=retention))
    subject.store.register(pump_info(), now=T0)
    subject.store.pause("default", until=None, actor=ACTOR, now=T0)
    subject.store.purge(limit=10, now=LONG)
    assert (len(subject.observe().actions), len(subject.observe().pumps)) == (1, 1)
