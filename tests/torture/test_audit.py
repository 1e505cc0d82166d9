"""The audit finds what it is there to find: in evidence that was spoilt by hand."""

import pytest

from tests.builders import MINUTE, SECOND, T0
from tests.torture.audit import CHECKS, audit, summary
from tests.torture.evidence import End
from tests.torture.scenes import Scene, healthy


def broken(scene: Scene) -> set[str]:
    return {violation.id for violation in audit(scene.evidence())}


def test_a_run_that_kept_every_promise_has_no_violation():
    assert audit(healthy().evidence()) == []


def _succeeded_out_of_nothing(scene):
    scene.end("late", "succeeded", None, "succeeded", "returned")


def _expired_after_success(scene):
    scene.end("parent", "expired", None, "expired", "deadline")


def _run_twice(scene):
    scene.end("again", "failed", 4, "scheduled")


def _run_back(scene):
    scene.outcomes["again"][0]["run"] = 3


def _claim_forgotten(scene):
    scene.jobs["child"]["run"] = 2


def _spent_by_a_snooze(scene):
    scene.jobs["again"]["spent"] = 1


def _attempt_not_counted(scene):
    scene.outcomes["again"][1]["attempt"] = 1


def _spent_too_much(scene):
    scene.jobs["failing"]["max_attempts"] = 0


def _ended_twice(scene):
    scene.end("parent", "succeeded", 2, "succeeded", "returned")


def _came_back_by_itself(scene):
    scene.actions[0]["result"] = "refused"


def _changed_after_its_end(scene):
    scene.jobs["failing"].update(state="succeeded", cause="returned")


def _without_a_cause(scene):
    scene.jobs["parent"]["cause"] = None


def _stamped_alive(scene):
    scene.job("alive", terminal_at=T0)


def _leased_without_lease(scene):
    scene.job("held", state="leased", run=1)


def _lease_of_an_ended_job(scene):
    scene.leases.append({"job_id": "parent", "run": 1})


def _two_leases(scene):
    scene.job("held", state="leased", run=1)
    scene.leases += [{"job_id": "held", "run": 1}] * 2


def _lease_without_a_job(scene):
    scene.leases.append({"job_id": "nobody", "run": 1})


def _key_kept(scene):
    scene.jobs["keyed"]["unique_live"] = "after-failure-1"


def _key_let_go_too_early(scene):
    scene.job("live", unique_key="after-failure-2")


def _two_successes_of_a_key(scene):
    ends = ("succeeded", 1, "succeeded", "returned")
    scene.job("second", ends, unique_key="after-failure-1")


def _rejected_and_there(scene):
    for name in ("one", "two"):
        scene.job(name, ("gave_up", 1, "dead_lettered", "gave_up"), unique_key="reject-1")


def _awaiting_for_ever(scene):
    scene.job("waiting", state="awaiting", pending_parents=1)
    scene.link("parent", "waiting")["settled"] = False


def _scheduled_for_ever(scene):
    scene.job("waiting")


def _counted_twice(scene):
    scene.link("again", "child")["settled"] = False


def _edge_forgotten(scene):
    scene.edges[0]["settled"] = False
    scene.jobs["child"]["pending_parents"] = 1


def _ran_before_its_parent_ended(scene):
    scene.link("again", "child")


def _ran_after_its_parent_failed(scene):
    scene.link("failing", "child")


def _cancelled_by_nobody(scene):
    scene.actions = [row for row in scene.actions if row["target"] != "stopped"]


def _cancelled_itself_without_saying_so(scene):
    scene.job("self", ("cancelled", 1, "cancelled", "job"))


def _request_forgotten(scene):
    scene.outcomes["asked"][0].update(state="dead_lettered", cause="attempts", kind="failed")


def _expired_after_it_ran(scene):
    scene.say("body.started", job="late", run=1, queue="plain")


def _body_of_a_quarantining_run(scene):
    scene.say("body.started", job="alien", run=2, queue="plain")


def _output_of_a_failure(scene):
    scene.jobs["failing"]["output"] = "1"


def _output_of_another_run(scene):
    scene.jobs["again"]["output"] = '{"run":1}'


def _tag_of_a_lapsed_run(scene):
    scene.jobs["again"]["tags"]["r2"] = "1"


def _served_by_a_stranger(scene):
    scene.pumps["pump"]["queues"] = ["other"]


def _tick_minted_twice(scene):
    scene.jobs["tick-1"]["scheduled_for"] = T0


def _minted_over_a_live_one(scene):
    scene.jobs["tick-0"]["terminal_at"] = T0 + MINUTE


def _commit_lost(scene):
    scene.say("enqueue.asked", label="lost")
    scene.say("enqueue.committed", label="lost", job="lost", created=True)


def _answered_with_anothers_id(scene):
    scene.say("enqueue.committed", label="t-parent", job="child", created=True)


def _bulk_in_part(scene):
    scene.say("enqueue.asked", label="bulk", bulk=2)
    scene.job("half", ("gave_up", 1, "dead_lettered", "gave_up"), tags={"label": "bulk"})


def _rolled_back_and_there(scene):
    scene.say("enqueue.rolled_back", label="t-parent")


def _nobody_asked_for_it(scene):
    scene.job("stray", ("gave_up", 1, "dead_lettered", "gave_up"), tags={"label": "stray"})


def _body_without_a_claim(scene):
    scene.say("body.started", job="parent", run=2, queue="plain")


def _body_twice_in_one_run(scene):
    scene.say("body.started", job="parent", run=1, queue="plain")


def _body_of_nothing(scene):
    scene.say("body.started", job="nobody", run=1, queue="plain")


def _success_without_a_body(scene):
    scene.entries = [e for e in scene.entries if e.data.get("job") != "parent"]


def _action_without_a_row(scene):
    scene.actions.pop()


def _row_without_an_action(scene):
    scene.actions.append({**scene.actions[0], "reason": "op-99"})


def _row_with_another_result(scene):
    scene.actions[1]["result"] = "refused"


def _claimed_while_paused(scene):
    for entry in scene.entries:
        if entry.data.get("action") == "resume" and entry.what == "operator.asked":
            scene.entries.remove(entry)
            break
    scene.say("operator.asked", at=20.0, label="op-9", action="resume", targets=["plain"])
    scene.say("watch.lease", queue="plain", acquired=15.0)


def _answered_after_a_minute(scene):
    scene.say("operator.asked", at=30.0, label="", action="resume", targets=["plain"])
    scene.say("operator.failed", at=90.0, label="", error="an outage")


def _dead_letter_told_to_nobody(scene):
    observer = next(name for name, end in scene.heard.items() if end.job_id == "failing")
    for rows in (scene.heard, scene.jobs, scene.outcomes):
        del rows[observer]


def _dead_letter_told_twice(scene):
    scene.tell(next(end for end in scene.heard.values() if end.job_id == "failing"))


def _success_told(scene):
    scene.tell(End("parent", "succeeded", "returned", 1, 1))


def _told_before_its_end(scene):
    scene.tell(End("failing", "dead_lettered", "attempts", 2, 2))


def _unobserved_told(scene):
    scene.jobs["failing"]["wire_name"] = "torture.tick"


def _observers_end_told(scene):
    observer = next(iter(scene.heard))
    scene.tell(End(observer, "dead_lettered", "gave_up", 1, 1))


def _observer_without_a_mark(scene):
    scene.jobs[next(iter(scene.heard))]["tags"] = {"r1": "1"}


def _job_marked_as_an_observers(scene):
    scene.jobs["parent"]["tags"]["backwave.observes"] = "failing"


def _seen_by_the_watcher(scene):
    scene.say("watch.broke", id="limit-never-exceeded", detail="4 leases")


def _pump_halted(scene):
    scene.say("pump.broke", name="pump-1", how="it ended with 3")


def _enqueue_raised(scene):
    scene.say("enqueue.broke", error="IntegrityError")


def _deadlock(scene):
    scene.server_log += "2040-01-01 ERROR:  deadlock detected\n"


def _server_complains(scene):
    scene.server_log += "2040-01-01 ERROR:  division by zero\n"


SPOILT = {
    "legal-transition": (_succeeded_out_of_nothing, _expired_after_success),
    "one-outcome-per-run": (_run_twice, _claim_forgotten),
    "run-monotonic": (_run_back,),
    "unspent-release": (_spent_by_a_snooze, _attempt_not_counted),
    "spent-ceiling": (_spent_too_much,),
    "terminal-stable": (_ended_twice, _came_back_by_itself, _changed_after_its_end),
    "terminal-stamped": (_without_a_cause, _stamped_alive),
    "lease-iff-leased": (_leased_without_lease, _lease_of_an_ended_job, _lease_without_a_job),
    "no-double-lease": (_two_leases,),
    "unique-key-holds": (
        _key_kept,
        _key_let_go_too_early,
        _two_successes_of_a_key,
        _rejected_and_there,
    ),
    "no-orphan-awaiting": (_awaiting_for_ever,),
    "every-job-terminates": (_scheduled_for_ever,),
    "edge-settled-once": (_counted_twice, _edge_forgotten, _ran_before_its_parent_ended),
    "cascade-complete": (_ran_after_its_parent_failed,),
    "cancel-has-cause": (_cancelled_by_nobody, _cancelled_itself_without_saying_so),
    "cancel-never-lost": (_request_forgotten,),
    "expired-never-ran": (_expired_after_it_ran,),
    "quarantining-run-ran-no-body": (_body_of_a_quarantining_run,),
    "output-only-on-success": (_output_of_a_failure,),
    "stale-outcome-inert": (_output_of_another_run, _tag_of_a_lapsed_run),
    "only-served-queues": (_served_by_a_stranger,),
    "tick-minted-once": (_tick_minted_twice,),
    "no-overlap-at-mint": (_minted_over_a_live_one,),
    "committed-job-exists": (_commit_lost, _answered_with_anothers_id, _bulk_in_part),
    "rolled-back-job-is-not": (_rolled_back_and_there, _nobody_asked_for_it),
    "body-has-claim": (
        _body_without_a_claim,
        _body_twice_in_one_run,
        _body_of_nothing,
        _success_without_a_body,
    ),
    "audit-complete": (_action_without_a_row, _row_without_an_action, _row_with_another_result),
    "paused-never-claimed": (_claimed_while_paused,),
    "nobody-waits-for-ever": (_answered_after_a_minute,),
    "observer-exactly-once": (
        _dead_letter_told_to_nobody,
        _dead_letter_told_twice,
        _success_told,
        _told_before_its_end,
        _unobserved_told,
    ),
    "observers-end-untold": (_observers_end_told,),
    "observer-is-marked": (_observer_without_a_mark, _job_marked_as_an_observers),
    "limit-never-exceeded": (_seen_by_the_watcher,),
    "pumps-go-on": (_pump_halted,),
    "clients-see-outages-only": (_enqueue_raised,),
    "no-deadlock": (_deadlock,),
    "server-has-no-complaint": (_server_complains,),
}


@pytest.mark.parametrize(
    ("invariant", "spoil"),
    [
        pytest.param(invariant, spoil, id=f"{invariant}: {spoil.__name__[1:].replace('_', ' ')}")
        for invariant, ways in SPOILT.items()
        for spoil in ways
    ],
)
def test_what_was_spoilt_is_found_under_its_invariant(invariant, spoil):
    scene = healthy()
    spoil(scene)
    assert invariant in broken(scene)


def test_no_check_is_left_out_by_the_spoilt_scenes():
    silent = set(CHECKS)
    for ways in SPOILT.values():
        for spoil in ways:
            scene = healthy()
            spoil(scene)
            evidence = scene.evidence()
            silent -= {check for check in silent if any(True for _ in check(evidence))}
    assert silent == set()


def test_summary_says_how_often_and_shows_cases():
    scene = healthy()
    _scheduled_for_ever(scene)
    _deadlock(scene)
    lines = summary(audit(scene.evidence()))
    assert lines[0] == "every-job-terminates: 1"
    assert "deadlock detected" in lines[-1]


def test_a_job_may_end_by_its_deadline_after_it_has_run():
    scene = healthy()
    ends = (("failed", 1, "scheduled"), ("expired", None, "dead_lettered", "deadline"))
    scene.job("overdue", *ends)
    assert broken(scene) == set()


def test_a_leased_job_that_lost_its_lease_was_put_back_without_a_run():
    scene = healthy()
    scene.job("put-back", ("released", None, "scheduled"))
    scene.end("put-back", "succeeded", 2, "succeeded", "returned")
    assert broken(scene) == set()
    scene.jobs["tick-1"]["created_at"] = T0 + SECOND
    assert broken(scene) == set()
