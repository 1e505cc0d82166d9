from collections.abc import Callable

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.leases import (
    LeaseHealth,
    Progress,
    PumpHealth,
    PumpStatus,
    Renewal,
)
from backwave_django.core.memory import Snapshot
from tests.builders import (
    ACTOR,
    HOUR,
    MINUTE,
    OTHER_PUMP,
    PUMP,
    SECOND,
    T0,
    beat,
    claim_request,
    new_job,
    pump_info,
    succeeded,
    uid,
)
from tests.conformance.facts import expiries
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
RENEWED, LOST, BUSY = LeaseHealth.RENEWED, LeaseHealth.LOST, LeaseHealth.BUSY


def test_heartbeat_renews_every_listed_lease(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2)])
    first, second = store.claim(claim_request(), now=T0).jobs
    answer = store.heartbeat(beat(second.lease_id, first.lease_id), now=T0 + 20 * SECOND)
    assert answer.renewals == (
        Renewal(second.lease_id, RENEWED),
        Renewal(first.lease_id, RENEWED),
    )
    ends_at = T0 + 80 * SECOND
    assert expiries(observe()) == {uid(1): ends_at, uid(2): ends_at}


def test_lapsed_lease_that_nobody_took_is_renewed(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    answer = store.heartbeat(beat(job.lease_id), now=T0 + HOUR)
    assert answer.renewals == (Renewal(job.lease_id, RENEWED),)
    assert expiries(observe()) == {uid(1): T0 + HOUR + MINUTE}


def test_lease_that_is_gone_is_lost(store: Store) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([succeeded(job)], now=T0)
    answer = store.heartbeat(beat(job.lease_id, uid(404)), now=T0)
    assert answer.renewals == (Renewal(job.lease_id, LOST), Renewal(uid(404), LOST))


def test_lease_of_another_pump_is_lost_and_left_alone(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(pump_id=OTHER_PUMP), now=T0).jobs
    answer = store.heartbeat(beat(job.lease_id), now=T0 + SECOND)
    assert (answer.renewals, answer.unlisted) == ((Renewal(job.lease_id, LOST),), ())
    assert expiries(observe()) == {uid(1): T0 + MINUTE}


@pytest.mark.row_locks
def test_lease_whose_row_another_transaction_holds_is_busy(subject: Subject) -> None:
    store = subject.store
    store.enqueue([new_job(1), new_job(2)])
    first, second = store.claim(claim_request(), now=T0).jobs
    with subject.hold_lease(uid(1)):
        answer = store.heartbeat(beat(first.lease_id, second.lease_id), now=T0 + SECOND)
    assert [renewal.health for renewal in answer.renewals] == [BUSY, RENEWED]
    assert expiries(subject.observe()) == {uid(1): T0 + MINUTE, uid(2): T0 + SECOND + MINUTE}


@pytest.mark.row_locks
def test_held_job_row_does_not_keep_its_lease_from_being_renewed(subject: Subject) -> None:
    subject.store.enqueue([new_job(1)])
    (job,) = subject.store.claim(claim_request(), now=T0).jobs
    with subject.hold_job(uid(1)):
        answer = subject.store.heartbeat(beat(job.lease_id), now=T0)
    assert answer.renewals == (Renewal(job.lease_id, RENEWED),)


def test_requested_cancellation_is_told(store: Store) -> None:
    store.enqueue([new_job(1), new_job(2)])
    first, second = store.claim(claim_request(), now=T0).jobs
    store.cancel([uid(1)], actor=ACTOR, now=T0)
    answer = store.heartbeat(beat(first.lease_id, second.lease_id), now=T0)
    assert answer.renewals == (
        Renewal(first.lease_id, RENEWED, cancel_requested=True),
        Renewal(second.lease_id, RENEWED),
    )


def test_leases_that_the_pump_did_not_list_are_named(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2), new_job(3)])
    first, second, third = store.claim(claim_request(), now=T0).jobs
    answer = store.heartbeat(beat(second.lease_id), now=T0 + SECOND)
    assert set(answer.unlisted) == {first.lease_id, third.lease_id}
    assert expiries(observe())[uid(1)] == T0 + MINUTE


def test_registered_pump_is_seen(store: Store, observe: Observe) -> None:
    info = pump_info(queues=("a", "b"), wire_names=(("x", 1), ("y", 12)))
    store.register(info, now=T0)
    assert observe().pumps == {
        PUMP: {
            "info": info,
            "health": PumpHealth.HEALTHY,
            "problem": "",
            "executing": 0,
            "abandoned": 0,
            "succeeded": 0,
            "failed": 0,
            "memory_bytes": 0,
            "drain_requested": False,
            "seen_at": T0,
            "stopped_at": None,
        }
    }


def test_heartbeat_carries_the_status_of_the_pump(store: Store, observe: Observe) -> None:
    store.register(pump_info(), now=T0)
    status = PumpStatus(
        health=PumpHealth.DEGRADED,
        executing=3,
        abandoned=1,
        succeeded=2**40,
        failed=7,
        memory_bytes=2**33,
        problem="lost its connection",
    )
    answer = store.heartbeat(beat(status=status), now=T0 + SECOND)
    assert (answer.registered, answer.drain_requested) == (True, False)
    assert observe().pumps[PUMP] == {
        "info": pump_info(),
        "health": PumpHealth.DEGRADED,
        "problem": "lost its connection",
        "executing": 3,
        "abandoned": 1,
        "succeeded": 2**40,
        "failed": 7,
        "memory_bytes": 2**33,
        "drain_requested": False,
        "seen_at": T0 + SECOND,
        "stopped_at": None,
    }


def test_pump_without_a_row_is_told_to_register(store: Store, observe: Observe) -> None:
    answer = store.heartbeat(beat(), now=T0)
    assert (answer.registered, answer.drain_requested, observe().pumps) == (False, False, {})


def test_requested_drain_is_told_and_outlives_another_registration(store: Store) -> None:
    store.register(pump_info(), now=T0)
    assert store.request_drain(PUMP, actor=ACTOR, now=T0)
    assert store.heartbeat(beat(), now=T0).drain_requested
    store.register(pump_info(), now=T0 + SECOND)
    assert store.heartbeat(beat(), now=T0 + SECOND).drain_requested


def test_drain_of_one_pump_leaves_the_others(store: Store) -> None:
    for pump in (PUMP, OTHER_PUMP):
        store.register(pump_info(pump), now=T0)
    store.request_drain(OTHER_PUMP, actor=ACTOR, now=T0)
    assert not store.heartbeat(beat(), now=T0).drain_requested


def test_progress_is_kept_with_the_lease(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2)])
    first, second = store.claim(claim_request(), now=T0).jobs
    progress = (
        Progress(lease_id=first.lease_id, done=3, total=None),
        Progress(lease_id=second.lease_id, done=9, total=12, message="half-way ☃"),
    )
    store.heartbeat(beat(first.lease_id, second.lease_id, progress=progress), now=T0)
    told = {job_id: lease["progress"] for job_id, lease in observe().leases.items()}
    assert told == {uid(1): (3, None, ""), uid(2): (9, 12, "half-way ☃")}


def test_progress_of_a_lost_lease_is_dropped(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(pump_id=OTHER_PUMP), now=T0).jobs
    progress = tuple(
        Progress(lease_id=lease_id, done=1, total=2) for lease_id in (job.lease_id, uid(404))
    )
    store.heartbeat(beat(job.lease_id, uid(404), progress=progress), now=T0)
    assert observe().leases[uid(1)]["progress"] is None


def test_progress_of_a_lease_that_was_not_listed_is_dropped(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    progress = (Progress(lease_id=job.lease_id, done=1, total=2),)
    store.heartbeat(beat(progress=progress), now=T0)
    assert observe().leases[uid(1)]["progress"] is None


def test_retired_pump_says_why(store: Store, observe: Observe) -> None:
    for pump in (PUMP, OTHER_PUMP):
        store.register(pump_info(pump), now=T0)
    store.retire(pump_id=PUMP, problem="", now=T0 + SECOND)
    store.retire(pump_id=OTHER_PUMP, problem="a broken invariant", now=T0 + MINUTE)
    store.retire(pump_id=uid(404), problem="", now=T0)
    gone = {
        pump_id: (row["health"], row["problem"], row["stopped_at"])
        for pump_id, row in observe().pumps.items()
    }
    assert gone == {
        PUMP: (PumpHealth.STOPPED, "", T0 + SECOND),
        OTHER_PUMP: (PumpHealth.HALTED, "a broken invariant", T0 + MINUTE),
    }


def test_retired_pump_keeps_its_leases(store: Store, observe: Observe) -> None:
    store.register(pump_info(), now=T0)
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    store.retire(pump_id=PUMP, problem="", now=T0)
    assert expiries(observe()) == {uid(1): T0 + MINUTE}
