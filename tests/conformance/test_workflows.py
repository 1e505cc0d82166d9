from collections.abc import Callable
from itertools import count

import pytest

from backwave_django.core.contract import ActionResult, Store, StoreSettings, WorkflowAnswer
from backwave_django.core.errors import UnknownParent
from backwave_django.core.jobs import EdgeMode, IfDuplicate, NewJob
from backwave_django.core.memory import Snapshot
from backwave_django.core.retention import Retention
from backwave_django.core.states import Cause, JobState
from backwave_django.core.workflows import NewWorkflow, RetryScope
from tests.builders import (
    ACTOR,
    DAY,
    HOUR,
    ONCE,
    SECOND,
    T0,
    after,
    claim_request,
    failed,
    new_job,
    succeeded,
    uid,
)
from tests.conformance.conftest import MakeSubject
from tests.conformance.facts import Facts, column, edges, facts, made, met, states

Observe = Callable[[], Snapshot]
FLOW, AGAIN = uid(500), uid(600)
NOW = T0 + SECOND
FAILED, BELOW = RetryScope.FAILED, RetryScope.FAILED_AND_BELOW
DONE, REFUSED, CONFLICT = ActionResult.DONE, ActionResult.REFUSED, ActionResult.CONFLICT


def step(
    number: int, *parents: int, mode: EdgeMode = EdgeMode.ON_SUCCESS, **more: object
) -> NewJob:
    return new_job(number, workflow=FLOW, parents=after(*parents, mode=mode), **more)


def start(store: Store, *steps: NewJob, **names: int) -> None:
    named = {name: uid(number) for name, number in names.items()}
    store.start_workflow(NewWorkflow(id=FLOW, name="checkout", steps=named), steps)


def run(store: Store, *bad: int) -> None:
    """Claim what is due until nothing is; those of ``bad`` fail for good."""
    while jobs := store.claim(claim_request(retry=ONCE), now=NOW).jobs:
        outcomes = [failed(job) if job.job_id.int in bad else succeeded(job) for job in jobs]
        store.report(outcomes, now=NOW)


def told(answer: WorkflowAnswer) -> tuple[ActionResult, tuple[int, ...]]:
    return answer.result, tuple(job_id.int for job_id in answer.jobs)


def audited(snapshot: Snapshot) -> list[tuple[object, ...]]:
    return [
        (a.action, a.target_kind, a.target, a.before, a.after, a.result) for a in snapshot.actions
    ]


def test_workflow_is_inserted_with_its_jobs(store: Store, observe: Observe) -> None:
    workflow = NewWorkflow(id=FLOW, name="checkout", steps={"pay": uid(2)})
    answer = store.start_workflow(workflow, [step(1), step(2, 1)])
    assert answer == (made(1, JobState.SCHEDULED), made(2, JobState.AWAITING))
    (row,) = observe().workflows.values()
    assert (row.name, row.size, row.steps) == ("checkout", 2, {"pay": uid(2)})
    assert column(observe(), 2, "workflow") == (FLOW,)


def test_workflow_with_a_step_that_cannot_be_leaves_nothing(store: Store, observe: Observe) -> None:
    with pytest.raises(UnknownParent):
        start(store, step(1), step(2, 404))
    assert (observe().jobs, observe().workflows) == ({}, {})


def test_step_whose_key_is_held_stands_for_the_holder(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(9, unique_key="k")])
    workflow = NewWorkflow(id=FLOW, name="checkout", steps={"pay": uid(1)})
    answer = store.start_workflow(workflow, [step(1, unique_key="k"), step(2, 1)])
    assert answer == (met(9, JobState.SCHEDULED), made(2, JobState.AWAITING))
    row = observe().workflows[FLOW]
    assert (row.size, row.steps) == (1, {"pay": uid(9)})
    assert edges(observe(), 2) == {uid(9): False}


def test_workflow_of_which_nothing_was_created_is_none(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(9, unique_key="k")])
    start(store, step(1, unique_key="k"))
    assert observe().workflows == {}


def test_cancel_ends_all_that_waits_and_asks_all_that_runs(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2), step(3, 1, 2))
    store.claim(claim_request(limit=1), now=T0)
    answer = store.cancel_workflow(FLOW, actor=ACTOR, now=NOW)
    assert told(answer) == (DONE, (1, 2, 3))
    assert states(observe(), 1, 2, 3) == ("leased", "cancelled", "cancelled")
    assert observe().leases[uid(1)]["cancel_requested"] is True
    assert [facts(observe(), number).cause for number in (2, 3)] == [Cause.OPERATOR] * 2


def test_cancel_cascades_out_of_the_workflow(store: Store, observe: Observe) -> None:
    start(store, step(1))
    store.enqueue([new_job(7, parents=after(1))])
    store.cancel_workflow(FLOW, actor=ACTOR, now=NOW)
    assert facts(observe(), 7).cause == Cause.PARENT


def test_cancel_of_what_only_runs_is_a_request(store: Store) -> None:
    start(store, step(1))
    store.claim(claim_request(), now=T0)
    assert told(store.cancel_workflow(FLOW, actor=ACTOR, now=NOW)) == (ActionResult.REQUESTED, (1,))


def test_cancel_of_what_is_over_is_refused(store: Store) -> None:
    start(store, step(1))
    run(store)
    assert told(store.cancel_workflow(FLOW, actor=ACTOR, now=NOW)) == (REFUSED, ())


def test_actions_on_a_workflow_are_audited_as_one(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2, 1))
    store.cancel_workflow(FLOW, actor=ACTOR, now=NOW)
    store.retry_workflow(FLOW, scope=FAILED, actor=ACTOR, now=NOW)
    store.retry_workflow(uid(404), scope=FAILED, actor=ACTOR, now=NOW)
    over, scope = {"cancelled": 2}, {"scope": "failed"}
    assert audited(observe()) == [
        ("cancel", "workflow", str(FLOW), {"scheduled": 1, "awaiting": 1}, over, "done"),
        ("retry", "workflow", str(FLOW), over, over | scope, "refused"),
        ("retry", "workflow", str(uid(404)), {}, scope, "gone"),
    ]


@pytest.mark.parametrize("act", ["cancel", "retry", "restart"])
def test_actions_on_a_workflow_that_is_not_there_say_so(store: Store, act: str) -> None:
    answers = {
        "cancel": lambda: store.cancel_workflow(FLOW, actor=ACTOR, now=NOW),
        "retry": lambda: store.retry_workflow(FLOW, scope=BELOW, actor=ACTOR, now=NOW),
        "restart": lambda: store.restart_workflow(
            FLOW, new_id=lambda: uid(1), actor=ACTOR, now=NOW
        ),
    }
    assert answers[act]().result is ActionResult.GONE


def test_retry_brings_failures_back_with_what_they_doomed(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2, 1, deadline=T0 + HOUR), step(3, 2), step(4, 3))
    run(store, 2)
    assert states(observe(), 1, 2, 3, 4) == (
        *("succeeded", "dead_lettered", "cancelled", "cancelled"),
    )
    answer = store.retry_workflow(FLOW, scope=FAILED, actor=ACTOR, now=NOW)
    assert told(answer) == (DONE, (2, 3, 4))
    assert facts(observe(), 2) == Facts(JobState.SCHEDULED, 1, 0, NOW)
    assert column(observe(), 2, "deadline", "pending_parents") == (None, 0)
    assert states(observe(), 3, 4) == ("awaiting", "awaiting")
    assert column(observe(), 4, "pending_parents") == (1,)
    assert (edges(observe(), 2), edges(observe(), 3)) == ({uid(1): True}, {uid(2): False})
    run(store)
    assert states(observe(), 1, 2, 3, 4) == ("succeeded",) * 4


def test_retry_leaves_alone_what_ran_after_a_failure(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2, 1, mode=EdgeMode.ON_ANY))
    run(store, 1)
    assert told(store.retry_workflow(FLOW, scope=FAILED, actor=ACTOR, now=NOW)) == (DONE, (1,))
    assert states(observe(), 1, 2) == ("scheduled", "succeeded")
    assert edges(observe(), 2) == {uid(1): True}
    run(store)
    assert facts(observe(), 2).run == 1


def test_retry_with_what_is_below_runs_successes_again(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2, 1, mode=EdgeMode.ON_ANY), step(3, 2))
    store.report([failed(store.claim(claim_request(retry=ONCE), now=NOW).jobs[0])], now=NOW)
    (second,) = store.claim(claim_request(), now=NOW).jobs
    store.report([succeeded(second, output='"first"')], now=NOW)
    run(store)
    answer = store.retry_workflow(FLOW, scope=BELOW, actor=ACTOR, now=NOW)
    assert told(answer) == (DONE, (1, 2, 3))
    assert states(observe(), 1, 2, 3) == ("scheduled", "awaiting", "awaiting")
    assert column(observe(), 2, "output", "cause") == (None, None)
    run(store)
    assert [facts(observe(), number).run for number in (1, 2, 3)] == [2, 2, 2]
    assert states(observe(), 1, 2, 3) == ("succeeded",) * 3


def test_retry_where_nothing_failed_is_refused(store: Store, observe: Observe) -> None:
    start(store, step(1))
    assert told(store.retry_workflow(FLOW, scope=BELOW, actor=ACTOR, now=NOW)) == (REFUSED, ())
    assert states(observe(), 1) == ("scheduled",)


def test_retry_moves_all_or_none(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2, unique_key="k"))
    run(store, 1, 2)
    store.enqueue([new_job(9, unique_key="k")])
    before = observe().jobs
    answer = store.retry_workflow(FLOW, scope=FAILED, actor=ACTOR, now=NOW)
    assert told(answer) == (CONFLICT, ())
    assert answer.detail == f"job {uid(9)} holds the unique key of job {uid(2)}"
    assert observe().jobs == before
    assert [row.result for row in observe().actions] == ["conflict"]


def test_retried_keys_are_held_again(store: Store) -> None:
    start(store, step(1, unique_key="k"))
    run(store, 1)
    store.retry_workflow(FLOW, scope=FAILED, actor=ACTOR, now=NOW)
    assert store.enqueue([new_job(9, unique_key="k")]) == (met(1, JobState.SCHEDULED),)


def test_retry_while_other_members_run(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2), step(3, 1, 2))
    first, second = store.claim(claim_request(retry=ONCE), now=NOW).jobs
    store.report([failed(first)], now=NOW)
    assert states(observe(), 1, 2, 3) == ("dead_lettered", "leased", "cancelled")
    store.retry_workflow(FLOW, scope=FAILED, actor=ACTOR, now=NOW)
    assert column(observe(), 3, "state", "pending_parents") == ("awaiting", 2)
    store.report([succeeded(second)], now=NOW)
    assert column(observe(), 3, "state", "pending_parents") == ("awaiting", 1)
    run(store)
    assert states(observe(), 1, 2, 3) == ("succeeded",) * 3


def restart(store: Store) -> WorkflowAnswer:
    ids = count(600)
    return store.restart_workflow(FLOW, new_id=lambda: uid(next(ids)), actor=ACTOR, now=NOW)


def test_restart_makes_the_whole_graph_anew(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(7)])
    start(
        store,
        step(1, 7, tags='{"a":"1"}', priority=7, deadline=T0 + HOUR, unique_key="k"),
        step(2, 1, mode=EdgeMode.ON_ANY),
        pay=2,
    )
    run(store, 2)
    answer = restart(store)
    assert (told(answer), answer.restarted_as) == ((DONE, (601, 602)), AGAIN)
    old, new = observe().jobs[uid(1)], observe().jobs[uid(601)]
    same = ("wire_name", "queue", "payload", "payload_version", "priority", "tags", "unique_key")
    assert [old[name] for name in same] == [new[name] for name in same]
    assert (new["workflow"], new["deadline"], new["due_at"]) == (AGAIN, None, NOW)
    assert observe().edges[uid(601), uid(602)] == (EdgeMode.ON_ANY, False)
    assert edges(observe(), 601) == {uid(7): True}
    assert states(observe(), 601, 602, 1, 2) == (
        *("scheduled", "awaiting", "succeeded", "dead_lettered"),
    )
    made_anew = observe().workflows[AGAIN]
    assert (made_anew.name, made_anew.size, made_anew.steps) == ("checkout", 2, {"pay": uid(602)})
    assert observe().actions[-1].after == {
        "succeeded": 1,
        "dead_lettered": 1,
        "restarted_as": str(AGAIN),
    }


def test_restart_of_what_lives_is_refused(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2))
    store.report([succeeded(store.claim(claim_request(limit=1), now=NOW).jobs[0])], now=NOW)
    assert told(restart(store)) == (REFUSED, ())
    assert set(observe().workflows) == {FLOW}


def test_restart_needs_the_unique_keys_to_be_free(store: Store, observe: Observe) -> None:
    start(store, step(1), step(2, unique_key="k"))
    run(store, 2)
    store.enqueue([new_job(9, unique_key="k")])
    answer = restart(store)
    assert told(answer) == (CONFLICT, ())
    assert f"job {uid(9)} holds the unique key of job {uid(2)}" in answer.detail
    assert set(observe().workflows) == {FLOW}
    assert len(observe().jobs) == 3


def test_restart_leaves_out_what_another_step_replaced(store: Store, observe: Observe) -> None:
    start(
        store,
        step(1, unique_key="k"),
        step(2, unique_key="k", if_duplicate=IfDuplicate.REPLACE),
    )
    run(store)
    assert states(observe(), 1, 2) == ("cancelled", "succeeded")
    assert told(restart(store)) == (DONE, (601,))
    assert column(observe(), 601, "unique_key") == ("k",)


def test_of_two_members_with_one_key_only_one_can_come_back(store: Store, observe: Observe) -> None:
    start(
        store,
        step(1, unique_key="k"),
        step(2, unique_key="k", if_duplicate=IfDuplicate.REPLACE),
    )
    run(store, 2)
    store.requeue([uid(1)], actor=ACTOR, now=NOW)
    run(store, 1)
    for answer in (store.retry_workflow(FLOW, scope=FAILED, actor=ACTOR, now=NOW), restart(store)):
        assert told(answer) == (CONFLICT, ())
        assert answer.detail == f"job {uid(1)} holds the unique key of job {uid(2)}"
    assert states(observe(), 1, 2) == ("dead_lettered", "dead_lettered")
    assert set(observe().workflows) == {FLOW}


def test_restart_of_what_is_partly_purged_is_refused(make_subject: MakeSubject) -> None:
    settings = StoreSettings(retention=Retention(succeeded=DAY, dead_lettered=30 * DAY))
    store = make_subject(settings).store
    start(store, step(1), step(2))
    run(store, 2)
    store.purge(limit=10, now=NOW + 2 * DAY)
    answer = restart(store)
    assert told(answer) == (REFUSED, ())
    assert answer.detail == "1 of its 2 jobs were purged after their retention"


def test_workflow_goes_with_its_last_job(make_subject: MakeSubject) -> None:
    settings = StoreSettings(retention=Retention(succeeded=DAY, dead_lettered=3 * DAY))
    subject = make_subject(settings)
    start(subject.store, step(1), step(2))
    run(subject.store, 2)
    subject.store.purge(limit=10, now=NOW + 2 * DAY)
    assert set(subject.observe().workflows) == {FLOW}
    subject.store.purge(limit=10, now=NOW + 4 * DAY)
    assert subject.observe().workflows == {}
