from collections.abc import Callable

import pytest

from backwave_django.core.contract import ActionAnswer, ActionResult, Actor, Store
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.memory import Snapshot
from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause, JobState
from tests.builders import (
    ACTOR,
    HOUR,
    MINUTE,
    ONCE,
    OTHER_PUMP,
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
from tests.conformance.facts import Ended, Facts, column, edges, facts, history, numbers, states
from tests.conformance.subjects import Subject

Observe = Callable[[], Snapshot]
DONE, REQUESTED, REFUSED = ActionResult.DONE, ActionResult.REQUESTED, ActionResult.REFUSED
CONFLICT, GONE = ActionResult.CONFLICT, ActionResult.GONE
NOW = T0 + SECOND


def told(answers: tuple[ActionAnswer, ...]) -> list[tuple[int, ActionResult, object]]:
    return [(answer.job_id.int, answer.result, answer.state) for answer in answers]


def audited(snapshot: Snapshot) -> list[tuple[object, ...]]:
    return [
        (a.action, a.target_kind, a.target, a.before, a.after, a.result) for a in snapshot.actions
    ]


def end(store: Store, *, well: bool = False) -> None:
    jobs = store.claim(claim_request(retry=ONCE), now=T0).jobs
    store.report([succeeded(job) if well else failed(job) for job in jobs], now=T0)


def test_cancel_ends_what_waits(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1), unique_key="k")])
    answers = store.cancel([uid(2), uid(1)], actor=ACTOR, now=NOW)
    assert told(answers) == [(2, DONE, JobState.CANCELLED), (1, DONE, JobState.CANCELLED)]
    for number in (1, 2):
        assert facts(observe(), number) == Facts("cancelled", 0, 0, T0, Cause.OPERATOR)
        assert history(observe(), number) == (
            Ended(OutcomeKind.CANCELLED, JobState.CANCELLED, Cause.OPERATOR, None, 1),
        )
    assert column(observe(), 1, "terminal_at") == (NOW,)


def test_cancel_asks_a_running_job_to_stop(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    store.claim(claim_request(), now=T0)
    assert told(store.cancel([uid(1)], actor=ACTOR, now=NOW)) == [(1, REQUESTED, JobState.LEASED)]
    assert observe().leases[uid(1)]["cancel_requested"] is True
    assert history(observe(), 1) == ()
    assert told(store.cancel([uid(1)], actor=ACTOR, now=NOW)) == [(1, REQUESTED, JobState.LEASED)]


def test_cancel_refuses_what_has_ended_or_is_not_there(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    end(store)
    before = observe().jobs
    answers = store.cancel([uid(1), uid(404)], actor=ACTOR, now=NOW)
    assert told(answers) == [(1, REFUSED, JobState.DEAD_LETTERED), (404, GONE, None)]
    assert observe().jobs == before


def test_cancel_refuses_a_job_whose_lease_row_is_lost(subject: Subject) -> None:
    subject.store.enqueue([new_job(1)])
    subject.store.claim(claim_request(), now=T0)
    subject.lose_lease(uid(1))
    answers = subject.store.cancel([uid(1)], actor=ACTOR, now=NOW)
    assert told(answers) == [(1, REFUSED, JobState.LEASED)]


def test_cancel_cascades_to_dependents(store: Store, observe: Observe) -> None:
    store.enqueue(
        [
            new_job(1),
            new_job(2, parents=after(1)),
            new_job(3, parents=after(2)),
            new_job(4, parents=after(1, mode=EdgeMode.ON_ANY)),
        ]
    )
    store.cancel([uid(1)], actor=ACTOR, now=NOW)
    assert [facts(observe(), number).cause for number in (2, 3)] == [Cause.PARENT] * 2
    assert facts(observe(), 4) == Facts(JobState.SCHEDULED, 0, 0, NOW)


def test_cancelled_key_is_free(store: Store) -> None:
    store.enqueue([new_job(1, unique_key="k")])
    store.cancel([uid(1)], actor=ACTOR, now=NOW)
    assert store.enqueue([new_job(2, unique_key="k")])[0].created


def test_job_named_twice_is_cancelled_once(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    answers = store.cancel([uid(1), uid(1)], actor=ACTOR, now=NOW)
    assert told(answers) == [(1, DONE, JobState.CANCELLED)] * 2
    assert len(history(observe(), 1)) == len(observe().actions) == 1


def test_every_action_on_a_job_is_audited(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2)])
    actor = Actor(name="eve", source="admin", user_id="7", reason="duplicate order")
    store.claim(claim_request(limit=1), now=T0)
    store.cancel([uid(2), uid(1), uid(404)], actor=actor, now=NOW)
    assert audited(observe()) == [
        ("cancel", "job", str(uid(2)), {"state": "scheduled"}, {"state": "cancelled"}, "done"),
        ("cancel", "job", str(uid(1)), {"state": "leased"}, {"state": "leased"}, "requested"),
        ("cancel", "job", str(uid(404)), {}, {}, "gone"),
    ]
    first = observe().actions[0]
    assert (first.at, first.actor_name, first.source, first.user_id, first.reason) == (
        *(NOW, "eve", "admin", "7", "duplicate order"),
    )


@pytest.mark.parametrize("ending", ["dead_lettered", "cancelled", "expired"])
def test_requeue_brings_a_job_back_as_if_it_had_never_failed(
    store: Store, observe: Observe, ending: str
) -> None:
    store.enqueue([new_job(1, deadline=T0 + HOUR)])
    if ending == "dead_lettered":
        end(store)
    elif ending == "cancelled":
        store.cancel([uid(1)], actor=ACTOR, now=T0)
    else:
        store.settle(limit=10, now=T0 + HOUR)
    run = facts(observe(), 1).run
    past = history(observe(), 1)
    answers = store.requeue([uid(1)], actor=ACTOR, now=T0 + 2 * HOUR)
    assert told(answers) == [(1, DONE, JobState.SCHEDULED)]
    assert facts(observe(), 1) == Facts(JobState.SCHEDULED, run, 0, T0 + 2 * HOUR)
    assert column(observe(), 1, "deadline", "terminal_at") == (None, None)
    assert history(observe(), 1) == past


def test_requeued_job_has_all_its_attempts_again(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1)])
    end(store)
    store.requeue([uid(1)], actor=ACTOR, now=NOW)
    (job,) = store.claim(claim_request(), now=NOW).jobs
    assert (job.run, job.spent) == (2, 0)


def test_requeue_refuses_successes_live_jobs_and_what_is_not_there(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1)])
    end(store, well=True)
    store.enqueue([new_job(2), new_job(3), new_job(4, parents=after(2))])
    store.claim(claim_request(limit=1), now=T0)
    before = observe().jobs
    answers = store.requeue([uid(number) for number in (1, 2, 3, 4, 404)], actor=ACTOR, now=NOW)
    assert told(answers) == [
        (1, REFUSED, JobState.SUCCEEDED),
        (2, REFUSED, JobState.LEASED),
        (3, REFUSED, JobState.SCHEDULED),
        (4, REFUSED, JobState.AWAITING),
        (404, GONE, None),
    ]
    assert observe().jobs == before


def test_requeue_is_refused_while_a_live_job_holds_the_key(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1, unique_key="k")])
    end(store)
    store.enqueue([new_job(2, unique_key="k")])
    answers = store.requeue([uid(1)], actor=ACTOR, now=NOW)
    assert told(answers) == [(1, CONFLICT, JobState.DEAD_LETTERED)]
    store.cancel([uid(2)], actor=ACTOR, now=NOW)
    assert told(store.requeue([uid(1)], actor=ACTOR, now=NOW)) == [(1, DONE, "scheduled")]
    assert not store.enqueue([new_job(3, unique_key="k")])[0].created


def test_conflict_of_one_job_does_not_keep_others_from_coming_back(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1, unique_key="k"), new_job(2, unique_key="other"), new_job(3)])
    end(store)
    store.enqueue([new_job(4, unique_key="k")])
    answers = store.requeue([uid(1), uid(2), uid(3)], actor=ACTOR, now=NOW)
    assert [result for _, result, _ in told(answers)] == [CONFLICT, DONE, DONE]


def test_first_of_two_requeued_jobs_takes_their_common_key(store: Store) -> None:
    for number in (1, 2):
        store.enqueue([new_job(number, unique_key="k")])
        end(store)
    answers = store.requeue([uid(2), uid(1)], actor=ACTOR, now=NOW)
    assert told(answers) == [(2, DONE, "scheduled"), (1, CONFLICT, "dead_lettered")]


def test_requeue_is_refused_while_a_parent_has_failed(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    end(store)
    (answer,) = store.requeue([uid(2)], actor=ACTOR, now=NOW)
    assert (answer.result, answer.state) == (REFUSED, JobState.CANCELLED)
    assert str(uid(1)) in answer.detail


def test_requeue_of_a_graph_puts_parents_before_children(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(3), new_job(2, parents=after(3)), new_job(1, parents=after(2))])
    end(store)
    answers = store.requeue([uid(1), uid(2), uid(3)], actor=ACTOR, now=NOW)
    assert told(answers) == [(1, DONE, "awaiting"), (2, DONE, "awaiting"), (3, DONE, "scheduled")]
    assert (edges(observe(), 1), edges(observe(), 2)) == ({uid(2): False}, {uid(3): False})
    for expected in (3, 2, 1):
        (job,) = store.claim(claim_request(), now=NOW).jobs
        assert numbers((job,)) == (expected,)
        store.report([succeeded(job)], now=NOW)
    assert states(observe(), 1, 2, 3) == ("succeeded",) * 3


def test_requeued_child_waits_for_its_live_parent_and_not_for_a_satisfied_one(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1), new_job(2, due_at=T0 + HOUR), new_job(3, parents=after(1, 2))])
    end(store, well=True)
    store.cancel([uid(3)], actor=ACTOR, now=T0)
    store.requeue([uid(3)], actor=ACTOR, now=NOW)
    assert facts(observe(), 3) == Facts(JobState.AWAITING, 0, 0, NOW)
    assert (edges(observe(), 3), column(observe(), 3, "pending_parents")) == (
        {uid(1): True, uid(2): False},
        (1,),
    )


def test_requeued_child_does_not_mind_a_failed_parent_if_any_end_will_do(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1, mode=EdgeMode.ON_ANY))])
    store.cancel([uid(2), uid(1)], actor=ACTOR, now=T0)
    assert told(store.requeue([uid(2)], actor=ACTOR, now=NOW)) == [(2, DONE, "scheduled")]


@pytest.mark.parametrize(
    ("mode", "result"), [(EdgeMode.ON_SUCCESS, REFUSED), (EdgeMode.ON_ANY, DONE)]
)
def test_vanished_parent_counts_as_one_that_did_not_succeed_at_a_requeue(
    subject: Subject, mode: EdgeMode, result: ActionResult
) -> None:
    subject.store.enqueue([new_job(1), new_job(2, parents=after(1, mode=mode))])
    subject.store.cancel([uid(2)], actor=ACTOR, now=T0)
    subject.lose_job(uid(1))
    (answer,) = subject.store.requeue([uid(2)], actor=ACTOR, now=NOW)
    assert answer.result == result


def test_settled_children_are_left_alone_when_their_parent_comes_back(
    store: Store, observe: Observe
) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    end(store)
    store.requeue([uid(1)], actor=ACTOR, now=NOW)
    assert (states(observe(), 2), edges(observe(), 2)) == (("cancelled",), {uid(1): True})


def test_requeue_is_audited(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1), new_job(2, due_at=T0 + HOUR)])
    end(store)
    store.requeue([uid(1), uid(2), uid(404)], actor=ACTOR, now=NOW)
    rows = {row[2]: (row[0], *row[3:]) for row in audited(observe())}
    assert rows == {
        str(uid(1)): ("requeue", {"state": "dead_lettered"}, {"state": "scheduled"}, "done"),
        str(uid(2)): ("requeue", {"state": "scheduled"}, {"state": "scheduled"}, "refused"),
        str(uid(404)): ("requeue", {}, {}, "gone"),
    }


def test_run_now_makes_a_scheduled_job_due(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1, due_at=T0 + HOUR), new_job(2, due_at=T0 - HOUR)])
    answers = store.run_now([uid(1), uid(2)], actor=ACTOR, now=NOW)
    assert told(answers) == [(1, DONE, "scheduled"), (2, DONE, "scheduled")]
    assert [facts(observe(), number).due_at for number in (1, 2)] == [NOW, T0 - HOUR]


def test_run_now_refuses_what_is_not_scheduled(store: Store) -> None:
    store.enqueue([new_job(1), new_job(2, parents=after(1))])
    store.claim(claim_request(), now=T0)
    answers = store.run_now([uid(1), uid(2), uid(404)], actor=ACTOR, now=NOW)
    assert told(answers) == [(1, REFUSED, "leased"), (2, REFUSED, "awaiting"), (404, GONE, None)]


def test_run_now_is_audited(store: Store, observe: Observe) -> None:
    store.enqueue([new_job(1, due_at=T0 + HOUR)])
    store.run_now([uid(1), uid(404)], actor=ACTOR, now=NOW)
    before = {"state": "scheduled", "due_at": (T0 + HOUR).isoformat()}
    assert audited(observe()) == [
        ("run_now", "job", str(uid(1)), before, before | {"due_at": NOW.isoformat()}, "done"),
        ("run_now", "job", str(uid(404)), {}, {}, "gone"),
    ]


def test_pause_and_resume_are_kept_and_audited(store: Store, observe: Observe) -> None:
    until = T0 + HOUR
    bounds = ("limit", "rate", "window")
    limits = dict.fromkeys((*bounds, *(f"{name}_default" for name in bounds), "rate_full_at"))
    store.pause("mail", until=until, actor=ACTOR, now=NOW)
    assert observe().queues["mail"] == limits | {
        "paused": True,
        "paused_at": NOW,
        "paused_until": until,
        "paused_by": "ada",
        "pause_reason": "because",
    }
    store.resume("mail", actor=ACTOR, now=T0 + MINUTE)
    assert observe().queues["mail"] == limits | {"paused": False} | dict.fromkeys(
        ("paused_at", "paused_until", "paused_by", "pause_reason")
    )
    off, on = {"paused": False, "until": None}, {"paused": True, "until": until.isoformat()}
    assert audited(observe()) == [
        ("pause", "queue", "mail", off, on, "done"),
        ("resume", "queue", "mail", on, off, "done"),
    ]


def test_pause_keeps_a_limit_and_a_limit_keeps_a_pause(store: Store, observe: Observe) -> None:
    store.set_queue_limit("mail", 3, actor=ACTOR, now=T0)
    store.pause("mail", until=None, actor=ACTOR, now=T0)
    store.set_queue_limit("mail", 4, actor=ACTOR, now=T0)
    row = observe().queues["mail"]
    assert (row["paused"], row["paused_until"], row["limit"]) == (True, None, 4)
    store.resume("mail", actor=ACTOR, now=T0)
    assert observe().queues["mail"]["limit"] == 4


def test_limits_are_audited(store: Store, observe: Observe) -> None:
    store.set_queue_limit("mail", 3, actor=ACTOR, now=T0)
    store.set_queue_limit("mail", None, actor=ACTOR, now=T0)
    store.set_limit("gateway", 2, actor=ACTOR, now=T0)
    store.set_limit("gateway", 5, actor=ACTOR, now=T0)
    store.set_limit("gateway", None, actor=ACTOR, now=T0)
    assert [row[1:5] for row in audited(observe())] == [
        ("queue", "mail", {"limit": None}, {"limit": 3}),
        ("queue", "mail", {"limit": 3}, {"limit": None}),
        ("limit_key", "gateway", {"limit": None}, {"limit": 2}),
        ("limit_key", "gateway", {"limit": 2}, {"limit": 5}),
        ("limit_key", "gateway", {"limit": 5}, {"limit": None}),
    ]


def test_drain_is_requested_of_live_pumps_only(store: Store, observe: Observe) -> None:
    store.register(pump_info(), now=T0)
    store.register(pump_info(OTHER_PUMP), now=T0)
    store.retire(pump_id=OTHER_PUMP, problem="", now=T0)
    assert store.request_drain(PUMP, actor=ACTOR, now=NOW)
    assert not store.request_drain(OTHER_PUMP, actor=ACTOR, now=NOW)
    assert not store.request_drain(uid(404), actor=ACTOR, now=NOW)
    assert not store.request_drain(PUMP, actor=ACTOR, now=T0 + MINUTE)
    off, on = {"drain_requested": False}, {"drain_requested": True}
    assert audited(observe()) == [
        ("drain", "pump", str(PUMP), off, on, "done"),
        ("drain", "pump", str(OTHER_PUMP), {}, {}, "gone"),
        ("drain", "pump", str(uid(404)), {}, {}, "gone"),
        ("drain", "pump", str(PUMP), {}, {}, "gone"),
    ]
    assert observe().pumps[PUMP]["drain_requested"] is True


def test_no_jobs_make_no_actions(store: Store, observe: Observe) -> None:
    for act in (store.cancel, store.requeue, store.run_now):
        assert act([], actor=ACTOR, now=T0) == ()
    assert observe().actions == ()
