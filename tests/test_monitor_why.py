"""Why a job does not run: all that is in its way, the decisive thing first."""

from datetime import timedelta

import pytest
from django.test.utils import override_settings

from backwave_django import monitor
from tests.factories import (
    MINUTE,
    SECOND,
    T0,
    DependencyFactory,
    JobFactory,
    LeaseFactory,
    LimitFactory,
    OutcomeFactory,
    PumpFactory,
    QueueFactory,
    uuid7,
)

pytestmark = pytest.mark.django_db

GONE = T0 - timedelta(hours=1)


def codes(job, *, clock=T0):
    return [reason.code for reason in monitor.why(job, clock=clock)]


def first(job, *, clock=T0):
    return monitor.why(job, clock=clock)[0].text


def test_due_job_with_a_pump_that_knows_it_is_claimable():
    PumpFactory.create()
    job = JobFactory.create()
    (reason,) = monitor.why(job, clock=T0)
    assert (reason.code, reason.blocks) == ("claimable", False)


def test_job_that_is_not_due_says_when_it_is():
    PumpFactory.create()
    job = JobFactory.create(due_at=T0 + 5 * MINUTE)
    assert codes(job) == ["not_due"]
    assert "in 5 min" in first(job)


def test_job_that_waits_after_a_failure_names_the_error_but_not_its_message():
    PumpFactory.create()
    job = JobFactory.create(run=1, spent=1, due_at=T0 + MINUTE)
    OutcomeFactory.create(job=job, message="secret")
    assert first(job).startswith("Attempt 1 failed (TimeoutError).")
    assert "secret" not in first(job)


@pytest.mark.parametrize(
    ("kind", "words"), [("snoozed", "put it off"), ("unroutable", "No pump could route it")]
)
def test_job_that_waits_without_a_failure_says_why(kind, words):
    PumpFactory.create()
    job = JobFactory.create(run=1, due_at=T0 + MINUTE)
    OutcomeFactory.create(job=job, kind=kind, error_class=None)
    assert words in first(job)


def test_paused_queue_is_named_with_who_when_why_and_until():
    PumpFactory.create()
    QueueFactory.create(
        name="default",
        paused=True,
        paused_at=T0 - MINUTE,
        paused_until=T0 + MINUTE,
        paused_by="ops",
        pause_reason="vendor outage",
    )
    job = JobFactory.create()
    assert codes(job) == ["paused"]
    for word in ("default", "ops", "ago", "until", "in 1 min", "vendor outage"):
        assert word in first(job)


def test_all_that_is_in_the_way_is_listed_in_the_order_of_a_claim():
    QueueFactory.create(name="default", paused=True, limit=1)
    LeaseFactory.create(pump_id=uuid7(1))
    job = JobFactory.create(due_at=T0 + MINUTE)
    assert codes(job) == ["not_due", "paused", "limit", "no_pump"]


def test_full_limit_of_a_key_is_told():
    PumpFactory.create()
    LimitFactory.create(key="gateway", limit=1)
    LeaseFactory.create(limit_key="gateway")
    assert codes(JobFactory.create(limit_key="gateway")) == ["limit"]
    assert codes(JobFactory.create(limit_key="other")) == ["claimable"]


def test_full_limits_name_the_jobs_that_hold_them():
    PumpFactory.create()
    QueueFactory.create(name="default", limit=1)
    LimitFactory.create(key="gateway", limit=7)
    held = [LeaseFactory.create(limit_key="gateway").job_id for _ in range(7)]
    of_queue, of_key = monitor.why(JobFactory.create(limit_key="gateway"), clock=T0)
    assert of_queue.text.startswith("The queue's limit is full: 2 of 1 jobs run. Held by ")
    assert any(str(job) in of_queue.text for job in held)
    assert of_key.text == (
        "The limit gateway is full: 7 of 7 jobs run. "
        f"Held by {', '.join(map(str, held[:5]))} and others."
    )


def test_limit_of_zero_is_held_by_nobody():
    PumpFactory.create()
    QueueFactory.create(name="default", limit=0)
    assert first(JobFactory.create()) == (
        "The queue's limit is full: 0 of 0 jobs run. An operator says so."
    )


def test_no_pump_at_all_is_told_with_the_command():
    with override_settings(BACKWAVE={"GROUPS": {"post": {"QUEUES": ["mail"]}}}):
        text = first(JobFactory.create(queue="mail"))
    assert text == "No pump is live. Start one: python manage.py runpumps --group post"


def test_pump_of_other_queues_does_not_help():
    PumpFactory.create(queues=["other"])
    assert codes(JobFactory.create()) == ["no_pump"]
    assert "serves the queue default" in first(JobFactory.create())


@pytest.mark.parametrize("known", [{}, {"shop.send_receipt": 1}])
def test_pump_that_does_not_know_the_type_in_that_version_does_not_help(known):
    PumpFactory.create(wire_names=known)
    job = JobFactory.create(payload_version=2)
    assert codes(job) == ["unknown_type"]
    assert "shop.send_receipt in version 2" in first(job)


def test_passed_deadline_comes_first():
    PumpFactory.create()
    assert codes(JobFactory.create(deadline=T0 - SECOND)) == ["deadline"]


def test_awaiting_job_names_its_parents_and_their_states():
    edge = DependencyFactory.create(parent__wire_name="shop.charge")
    DependencyFactory.create(child=edge.child, settled=True)
    assert codes(edge.child) == ["parent"]
    assert first(edge.child) == f"It waits for shop.charge {edge.parent_id}, which is scheduled."


def test_awaiting_job_whose_parent_is_gone_says_so():
    edge = DependencyFactory.create()
    edge.parent.delete()
    assert "which is gone" in first(edge.child)


def test_awaiting_job_without_open_edges_waits_for_the_sweep():
    assert codes(JobFactory.create(state="awaiting")) == ["unsettled"]


def test_running_job_names_its_pump_and_what_is_left_of_the_lease():
    lease = LeaseFactory.create(pump_id=PumpFactory.create(hostname="web-7", pid=7).pk)
    assert codes(lease.job) == ["running"]
    assert "web-7:7" in first(lease.job)
    assert "50 s left" in first(lease.job)


def test_lost_lease_says_when_the_job_comes_back():
    lease = LeaseFactory.create(pump_id=PumpFactory.create(seen_at=GONE).pk)
    assert codes(lease.job) == ["pump_gone"]
    assert codes(lease.job, clock=T0 + MINUTE) == ["lapsed"]
    assert codes(JobFactory.create(state="leased")) == ["no_lease"]


def test_lease_of_a_purged_pump_is_lost_too():
    assert codes(LeaseFactory.create(pump_id=uuid7(1)).job) == ["pump_gone"]


def test_running_job_that_was_asked_to_stop_says_so():
    assert codes(LeaseFactory.create(cancel_requested=True).job) == ["running", "cancel_requested"]


def test_ended_job_says_how_it_ended():
    dead = JobFactory.create(state="dead_lettered", spent=3, run=3)
    OutcomeFactory.create(job=dead, attempt=3, message="secret")
    assert first(dead) == (
        "It is dead-lettered after 3 attempts: no attempts left. "
        "The last attempt raised TimeoutError."
    )
    assert first(JobFactory.create(state="succeeded", run=2, spent=1)) == (
        "It succeeded at attempt 2."
    )
    assert first(JobFactory.create(state="cancelled")) == (
        "It is cancelled: cancelled by a person."
    )


def test_replaced_job_names_the_one_that_replaced_it():
    old = JobFactory.create(state="cancelled", cause="superseded", unique_key="receipt:42")
    new = JobFactory.create(unique_key="receipt:42")
    assert codes(old) == ["ended", "duplicate"]
    assert f"duplicate of job {new.pk}" in monitor.why(old, clock=T0)[1].text
    new.delete()
    assert codes(old) == ["ended"]


def test_cause_of_a_later_version_is_shown_as_it_is():
    assert monitor.cause_label("eaten") == "eaten"


def test_percent_sign_in_an_error_class_is_only_text():
    job = JobFactory.create(state="dead_lettered", spent=1, run=1)
    OutcomeFactory.create(job=job, error_class="100%s")
    assert "raised 100%s." in first(job)
