"""Operator actions: what is asked for happens once, is checked first, and is on record."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser

from backwave_django import operations
from backwave_django.core import bounds
from backwave_django.core.contract import ActionResult, Actor
from backwave_django.core.errors import InvalidOption
from backwave_django.models import Job, Lease, OperatorAction, Outcome, Pump, Queue
from tests.factories import MINUTE, T0, JobFactory, LeaseFactory, PumpFactory, uuid7

pytestmark = pytest.mark.django_db

OPS = Actor(name="ops", source="command", reason="because")
SILENT = Actor(name="ops", source="command")


def results(answers):
    return [answer.result for answer in answers]


def log():
    return list(OperatorAction.objects.order_by("id").values_list("action", "target", "result"))


def test_cancel_answers_each_job_in_order_and_writes_who_and_why(django_user_model):
    user = django_user_model.objects.create_user("operator1")
    waiting, running = JobFactory.create(), LeaseFactory.create().job
    ended = JobFactory.create(state="succeeded")
    actor = operations.actor_for(user, reason=" vendor outage ")
    ids = [ended.pk, waiting.pk, running.pk, uuid7(9)]
    answers = operations.cancel(ids, actor=actor, now=T0)
    assert [answer.job_id for answer in answers] == ids
    assert results(answers) == [
        ActionResult.REFUSED,
        ActionResult.DONE,
        ActionResult.REQUESTED,
        ActionResult.GONE,
    ]
    assert Job.objects.get(pk=waiting.pk).state == "cancelled"
    assert Lease.objects.get().cancel_requested
    entry = OperatorAction.objects.get(target=str(waiting.pk))
    assert (entry.actor_name, entry.actor, entry.source) == ("operator1", user, "admin")
    assert (entry.reason, entry.at, entry.result) == ("vendor outage", T0, "done")
    assert (entry.before, entry.after["state"]) == ({"state": "scheduled"}, "cancelled")


def test_action_that_comes_twice_changes_nothing_the_second_time():
    dead = JobFactory.create(state="dead_lettered", spent=3, run=3)
    first = operations.requeue([dead.pk], actor=OPS, now=T0)
    second = operations.requeue([dead.pk], actor=OPS, now=T0 + MINUTE)
    assert results(first + second) == [ActionResult.DONE, ActionResult.REFUSED]
    job = Job.objects.get()
    assert (job.state, job.spent, job.run, job.due_at) == ("scheduled", 0, 3, T0)
    assert [result for *_, result in log()] == ["done", "refused"]


def test_requeue_keeps_the_history():
    dead = JobFactory.create(state="dead_lettered", spent=1, run=1)
    Outcome.objects.create(
        job=dead, run=1, attempt=1, kind="failed", state="dead_lettered", finished_at=T0
    )
    operations.requeue([dead.pk], actor=OPS, now=T0)
    assert Outcome.objects.filter(job=dead).count() == 1


def test_bulk_requeue_skips_what_meets_a_live_unique_key():
    live = JobFactory.create(unique_key="k")
    dead = JobFactory.create_batch(4, state="dead_lettered", unique_key="k", unique_live=None)
    others = JobFactory.create_batch(16, state="dead_lettered")
    answers = operations.requeue([job.pk for job in dead + others], actor=OPS, now=T0)
    counts = operations.tally(answers)
    assert counts == {ActionResult.CONFLICT: 4, ActionResult.DONE: 16}
    assert Job.objects.get(unique_live="k") == live


def test_id_that_is_given_twice_counts_once():
    job = JobFactory.create()
    assert len(operations.cancel([job.pk, job.pk], actor=OPS, now=T0)) == 1
    assert len(log()) == 1


def test_many_jobs_go_in_bounded_batches(monkeypatch):
    monkeypatch.setattr(bounds, "MAX_BATCH", 3)
    jobs = JobFactory.create_batch(7)
    answers = operations.cancel([job.pk for job in jobs], actor=OPS, now=T0)
    assert [answer.job_id for answer in answers] == [job.pk for job in jobs]
    assert set(results(answers)) == {ActionResult.DONE}


def test_no_jobs_are_no_answers():
    assert operations.cancel([], actor=OPS, now=T0) == ()


def test_run_now_drops_the_delay():
    job = JobFactory.create(due_at=T0 + timedelta(days=2))
    (answer,) = operations.run_now([job.pk], actor=OPS, now=T0)
    assert answer.result is ActionResult.DONE
    assert Job.objects.get().due_at == T0


def test_pause_and_resume_are_on_record_with_their_reason():
    operations.pause("mail", until=T0 + MINUTE, actor=OPS, now=T0)
    queue = Queue.objects.get(pk="mail")
    assert (queue.paused, queue.paused_until, queue.paused_by) == (True, T0 + MINUTE, "ops")
    assert queue.pause_reason == "because"
    operations.resume("mail", actor=OPS, now=T0)
    assert not Queue.objects.get(pk="mail").paused
    assert log() == [("pause", "mail", "done"), ("resume", "mail", "done")]


@pytest.mark.parametrize("queue", ["", "q" * 101])
def test_queue_that_cannot_be_is_refused(queue):
    with pytest.raises(InvalidOption, match="write 1 to 100 characters"):
        operations.pause(queue, actor=OPS, now=T0)
    with pytest.raises(InvalidOption):
        operations.resume(queue, actor=OPS, now=T0)
    assert log() == []


def test_pause_that_is_over_before_it_begins_is_refused():
    with pytest.raises(InvalidOption, match="write a time in the future"):
        operations.pause("mail", until=T0, actor=OPS, now=T0)


def test_what_others_will_ask_about_needs_a_reason():
    with pytest.raises(InvalidOption, match="say why"):
        operations.pause("mail", actor=SILENT, now=T0)
    with pytest.raises(InvalidOption, match="say why"):
        operations.resume("mail", actor=Actor(name="ops", reason="  "), now=T0)
    with pytest.raises(InvalidOption, match="say why"):
        operations.drain(PumpFactory.create().pk, actor=SILENT, now=T0)
    assert log() == []


def test_reason_has_a_bound():
    with pytest.raises(InvalidOption, match="2,000 characters"):
        operations.cancel([uuid7(1)], actor=Actor(name="ops", reason="x" * 2001), now=T0)


def test_drain_asks_a_live_pump_and_only_that():
    live, gone = PumpFactory.create(), PumpFactory.create(seen_at=T0 - timedelta(hours=1))
    assert operations.drain(live.pk, actor=OPS, now=T0)
    assert not operations.drain(gone.pk, actor=OPS, now=T0)
    assert not operations.drain(uuid7(1), actor=OPS, now=T0)
    assert list(Pump.objects.filter(drain_requested=True)) == [live]


def test_purge_goes_on_until_nothing_is_past_its_retention(monkeypatch):
    monkeypatch.setattr(bounds, "PURGE_BATCH", 2)
    old = T0 - timedelta(days=8)
    JobFactory.create_batch(5, state="succeeded", terminal_at=old)
    JobFactory.create(state="dead_lettered", terminal_at=old)
    JobFactory.create(due_at=old)
    assert operations.purge(now=T0) == 5
    assert sorted(Job.objects.values_list("state", flat=True)) == ["dead_lettered", "scheduled"]


def test_actor_of_nobody_is_named_so():
    actor = operations.actor_for(AnonymousUser())
    assert (actor.name, actor.user_id) == ("", None)
