from collections.abc import Callable
from datetime import datetime

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.leases import PumpInfo
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import Outcome, OutcomeKind, Reported, Unroutable, Verdict
from backwave_django.core.states import Cause, JobState
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
    failed,
    new_job,
    pump_info,
    released,
    snoozed,
    uid,
    undecodable,
    unroutable,
)
from tests.conformance.facts import Ended, Facts, column, facts, history

Observe = Callable[[], Snapshot]
GRACE = 5 * MINUTE
OVER = T0 + GRACE


def hand_back(store: Store, *, at: datetime, why: Unroutable = Unroutable.UNKNOWN_TYPE) -> Reported:
    (job,) = store.claim(claim_request(), now=at).jobs
    return store.report([unroutable(job, at=at, why=why)], now=at).rows[0]


@pytest.mark.parametrize("why", Unroutable)
def test_first_hand_back_rests_and_starts_the_clock(
    store: Store, observe: Observe, why: Unroutable
) -> None:
    store.enqueue([new_job(1)])
    row = hand_back(store, at=T0, why=why)
    assert (row.verdict, row.state) == (Verdict.APPLIED, JobState.SCHEDULED)
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 1, 0, T0 + 10 * SECOND)
    assert column(observe(), 1, "unroutable_since") == (T0,)


def test_clock_goes_on_from_the_first_hand_back(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    hand_back(store, at=T0 + MINUTE)
    assert column(observe(), 1, "unroutable_since") == (T0,)


def test_leased_job_tells_since_when_it_is_handed_back(store: Store) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    (job,) = store.claim(claim_request(), now=T0 + MINUTE).jobs
    assert job.unroutable_since == T0


@pytest.mark.parametrize("why", Unroutable)
def test_job_that_nobody_knows_is_quarantined_when_the_grace_is_over(
    store: Store, observe: Observe, why: Unroutable
) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0, why=why)
    hand_back(store, at=OVER - SECOND, why=why)
    assert facts(observe(), 1).state == JobState.SCHEDULED
    row = hand_back(store, at=OVER + 10 * SECOND, why=why)
    assert row.state == JobState.QUARANTINED
    assert facts(observe(), 1) == Facts(
        JobState.QUARANTINED, 3, 0, OVER + 9 * SECOND, Cause.UNROUTABLE
    )
    assert history(observe(), 1)[-1] == Ended(
        OutcomeKind.UNROUTABLE, JobState.QUARANTINED, Cause.UNROUTABLE, 3, 1
    )
    assert column(observe(), 1, "terminal_at") == (OVER + 10 * SECOND,)


def test_grace_is_over_at_its_very_instant(store: Store) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    assert hand_back(store, at=OVER).state == JobState.QUARANTINED


def test_live_pump_that_knows_the_type_keeps_the_job_waiting(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    store.register(pump_info(OTHER_PUMP), now=OVER)
    assert hand_back(store, at=OVER).state == JobState.SCHEDULED
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, 2, 0, OVER + 10 * SECOND)


def test_arguments_that_do_not_bind_are_hopeless_though_a_pump_knows_the_type(store: Store) -> None:
    store.enqueue([new_job(1)])
    store.register(pump_info(OTHER_PUMP), now=OVER)
    hand_back(store, at=T0, why=Unroutable.ARGUMENTS)
    assert hand_back(store, at=OVER, why=Unroutable.ARGUMENTS).state == JobState.QUARANTINED


@pytest.mark.parametrize(
    ("pump", "known"),
    [
        (pump_info(wire_names=(("shop.pack", 2),)), True),
        (pump_info(wire_names=(("shop.other", 1), ("shop.pack", 3))), True),
        (pump_info(wire_names=(("shop.pack", 1),)), False),
        (pump_info(wire_names=(("shop.other", 2),)), False),
        (pump_info(wire_names=()), False),
        (pump_info(queues=("mail", "default"), wire_names=(("shop.pack", 2),)), True),
        (pump_info(queues=("mail",), wire_names=(("shop.pack", 2),)), False),
    ],
)
def test_pump_knows_a_job_by_its_queue_its_type_and_its_version(
    store: Store, pump: PumpInfo, *, known: bool
) -> None:
    store.enqueue([new_job(1, payload_version=2)])
    hand_back(store, at=T0)
    store.register(pump, now=OVER)
    expected = JobState.SCHEDULED if known else JobState.QUARANTINED
    assert hand_back(store, at=OVER, why=Unroutable.NEWER_VERSION).state == expected


def test_pump_that_was_not_seen_for_its_lease_is_no_hope(store: Store) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    store.register(pump_info(), now=OVER - MINUTE)
    assert hand_back(store, at=OVER).state == JobState.QUARANTINED


def test_heartbeat_makes_a_pump_a_hope_again(store: Store) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    store.register(pump_info(), now=OVER - HOUR)
    store.heartbeat(beat(), now=OVER - MINUTE + SECOND)
    assert hand_back(store, at=OVER).state == JobState.SCHEDULED


def test_pump_that_retired_is_no_hope(store: Store) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    store.register(pump_info(), now=OVER)
    store.retire(pump_id=PUMP, problem="", now=OVER)
    assert hand_back(store, at=OVER).state == JobState.QUARANTINED


@pytest.mark.parametrize("make", [failed, snoozed, released])
def test_body_that_ran_stops_the_clock(
    store: Store, observe: Observe, make: Callable[..., Outcome]
) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    (job,) = store.claim(claim_request(), now=OVER).jobs
    store.report([make(job, at=OVER) if make is released else make(job, due_at=OVER)], now=OVER)
    assert column(observe(), 1, "unroutable_since") == (None,)
    assert hand_back(store, at=OVER).state == JobState.SCHEDULED


def test_lapsed_attempt_stops_the_clock(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    store.claim(claim_request(), now=T0 + MINUTE)
    store.dispose(pumps=[PUMP], now=T0 + MINUTE)
    assert column(observe(), 1, "unroutable_since") == (None,)


def test_recovered_attempt_leaves_the_clock_alone(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    store.claim(claim_request(), now=T0 + MINUTE)
    store.recover(pump_id=PUMP, held=[], now=T0 + MINUTE)
    assert column(observe(), 1, "unroutable_since") == (T0,)


def test_requeue_stops_the_clock(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    hand_back(store, at=OVER)
    store.requeue([uid(1)], actor=ACTOR, now=OVER)
    assert column(observe(), 1, "unroutable_since") == (None,)
    assert hand_back(store, at=OVER).state == JobState.SCHEDULED


def test_requested_cancellation_wins_over_a_quarantine(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    hand_back(store, at=T0)
    (job,) = store.claim(claim_request(), now=OVER).jobs
    store.cancel([uid(1)], actor=ACTOR, now=OVER)
    store.report([unroutable(job, at=OVER)], now=OVER)
    assert facts(observe(), 1).cause == Cause.OPERATOR


def test_undecodable_payload_is_quarantined_at_once(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    store.report([undecodable(job)], now=T0)
    assert facts(observe(), 1) == Facts(JobState.QUARANTINED, 1, 0, T0, Cause.UNDECODABLE)
