"""What is the reference store's own; its verbs are checked by tests/conformance."""

from itertools import count

import pytest

from backwave_django.core.errors import UnknownParent
from backwave_django.core.memory import MemoryStore
from backwave_django.core.memory.rows import EdgeRow
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    PUMP,
    SECOND,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    pump_info,
    succeeded,
    uid,
)


@pytest.fixture
def store():
    return fresh()


def fresh(*, first_lease=10**6):
    leases = count(first_lease)
    return MemoryStore(clock=lambda: T0 - SECOND, ids=lambda: uid(next(leases)))


def busy_day(store):
    """A little of everything."""
    store.register(pump_info(), now=T0)
    store.enqueue([new_job(1), new_job(2), new_job(3, parents=after(1)), new_job(4)])
    first, second, _ = store.claim(claim_request(), now=T0).jobs
    store.report([succeeded(first), failed(second, due_at=T0)], now=T0)
    store.pause("default", until=None, actor=ACTOR, now=T0)
    store.set_limit("gateway", 3, actor=ACTOR, now=T0)


def test_clock_of_every_answer_is_the_injected_one(store):
    assert store.claim(claim_request(), now=T0).clock == T0 - SECOND
    assert store.register(pump_info(), now=T0) == T0 - SECOND


def test_leases_are_numbered_by_the_injected_factory(store):
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    assert job.lease_id == uid(10**6)


def test_snapshots_of_equal_histories_are_equal_whatever_the_ids_of_leases():
    stores = fresh(), fresh(first_lease=5)
    for each in stores:
        busy_day(each)
    assert stores[0].snapshot() == stores[1].snapshot()


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.enqueue([new_job(9)]),
        lambda store: store.cancel([uid(4)], actor=ACTOR, now=T0),
        lambda store: store.resume("default", actor=ACTOR, now=T0),
        lambda store: store.set_limit("gateway", 4, actor=ACTOR, now=T0),
        lambda store: store.retire(pump_id=PUMP, problem="", now=T0),
        lambda store: (
            store.claim(claim_request("default"), now=T0) and store.dispose(pumps=[PUMP], now=T0)
        ),
    ],
)
def test_snapshot_is_a_value_that_later_changes_leave_alone(store, change):
    busy_day(store)
    before = store.snapshot()
    twin = fresh()
    busy_day(twin)
    change(store)
    assert (before == twin.snapshot(), before == store.snapshot()) == (True, False)


def test_held_row_is_passed_over_until_it_is_released(store):
    store.enqueue([new_job(1)])
    store.hold(uid(1))
    assert store.claim(claim_request(), now=T0).jobs == ()
    store.release(uid(1))
    store.release(uid(1))
    assert len(store.claim(claim_request(), now=T0).jobs) == 1


def test_refused_enqueue_leaves_no_trace(store):
    busy_day(store)
    before = store.snapshot()
    batch = [
        new_job(10, unique_key="k"),
        new_job(11, unique_key="k", parents=after(404)),
    ]
    with pytest.raises(UnknownParent):
        store.enqueue(batch)
    assert store.snapshot() == before


def test_id_that_is_taken_is_a_bug(store):
    store.enqueue([new_job(1)])
    with pytest.raises(AssertionError, match="taken"):
        store.enqueue([new_job(1)])
    with pytest.raises(AssertionError, match="twice"):
        store.enqueue([new_job(2), new_job(2)])


def test_illegal_transition_is_stopped(store):
    store.enqueue([new_job(1)])
    job = store.tables.jobs[uid(1)]
    with pytest.raises(AssertionError, match="legal-transition: scheduled to succeeded"):
        store.tables.move(job, JobState.SUCCEEDED, at=T0, cause=Cause.RETURNED)


@pytest.mark.parametrize(
    ("state", "cause"), [(JobState.CANCELLED, None), (JobState.LEASED, Cause.JOB)]
)
def test_cause_goes_with_terminal_states_alone(store, state, cause):
    store.enqueue([new_job(1)])
    with pytest.raises(AssertionError, match="terminal-stamped"):
        store.tables.move(store.tables.jobs[uid(1)], state, at=T0, cause=cause)


def test_second_lease_of_a_job_is_stopped(store):
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    with pytest.raises(AssertionError, match="no-double-lease"):
        store.tables.add_lease(store.tables.lease_of[uid(1)])


def test_second_outcome_of_a_run_is_stopped(store):
    busy_day(store)
    (row,) = store.tables.outcomes[uid(1)]
    with pytest.raises(AssertionError, match="one-outcome-per-run"):
        store.tables.append(row)


def test_second_live_holder_of_a_key_is_stopped(store):
    store.enqueue([new_job(1, unique_key="k")])
    store.cancel([uid(1)], actor=ACTOR, now=T0)
    store.enqueue([new_job(2, unique_key="k")])
    with pytest.raises(AssertionError, match="unique-key-holds"):
        store.tables.move(store.tables.jobs[uid(1)], JobState.SCHEDULED, at=T0)


def test_live_job_cannot_be_forgotten(store):
    store.enqueue([new_job(1)])
    with pytest.raises(AssertionError, match="purge of a live job"):
        store.tables.forget(store.tables.jobs[uid(1)])


def test_ends_without_a_lease_may_be_many(store):
    store.enqueue([new_job(1)])
    for _ in range(2):
        store.cancel([uid(1)], actor=ACTOR, now=T0)
        store.requeue([uid(1)], actor=ACTOR, now=T0)
    kinds = [row.kind for row in store.tables.outcomes[uid(1)]]
    assert kinds == [OutcomeKind.CANCELLED] * 2


def test_open_edges_come_in_the_order_of_children(store):
    for child in (9, 3, 7):
        edge = EdgeRow(parent=uid(1), child=uid(child), mode=after(1)[0][1], settled=child == 7)
        store.tables.add_edge(edge)
    assert [edge.child for edge in store.tables.open_edges(uid(1))] == [uid(3), uid(9)]
