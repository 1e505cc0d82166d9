"""Cancel, in each state that a job can be in."""

from datetime import timedelta

from backwave_django import operations
from backwave_django.core.contract import ActionResult
from backwave_django.jobs.ids import new_id
from backwave_django.models import Job, OperatorAction, Outcome
from backwave_django.monitor import database_clock
from tests.field import jobs
from tests.field.stranding import ACTOR
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

DONE, REQUESTED = ActionResult.DONE, ActionResult.REQUESTED
REFUSED, GONE = ActionResult.REFUSED, ActionResult.GONE


def cancel(*handles):
    """Ask once for all of them; return what was answered."""
    ids = [handle.id for handle in handles]
    answers = operations.cancel(ids, actor=ACTOR, now=database_clock())
    assert all(answer.detail for answer in answers if answer.result is not DONE)
    return [answer.result for answer in answers]


def end_of(handle):
    job = Job.objects.get(pk=handle.id)
    return job.state, job.cause


def starts(ledger, handle):
    return [entry.attempt for entry in ledger.of("start") if entry.job_id == handle.id]


def test_f146_what_does_not_run_when_it_is_cancelled_never_starts_again(field, ledger, closed):
    process = field.ready()
    retried = jobs.fail_first.enqueue()
    until(lambda: Outcome.objects.filter(job_id=retried.id, kind="failed"))
    assert field.stop(process) == [0]
    waiting = field_jobs.noop.enqueue()
    future = field_jobs.noop.options(delay=timedelta(seconds=2)).enqueue()
    assert cancel(waiting, future, retried) == [DONE] * 3
    assert cancel(waiting, future, retried) == [REFUSED] * 3
    due = Job.objects.get(pk=retried.id).due_at, Job.objects.get(pk=future.id).due_at
    process = field.ready()
    until(lambda: database_clock() > max(due), what="all of them would be due")
    closed()  # which runs a job that was enqueued after these
    assert field.stop(process) == [0]
    for handle, begun in ((waiting, []), (future, []), (retried, [1])):
        assert end_of(handle) == ("cancelled", "operator")
        assert starts(ledger, handle) == begun


def test_f146_a_body_that_looks_is_stopped_and_one_that_does_not_ends_as_it_likes(
    field, ledger, closed
):
    process = field.ready()
    heeds = jobs.heed.enqueue()
    gate = str(field.gate)
    fails, returns = (jobs.ignore.enqueue(gate, then) for then in ("fail", "return"))
    running = [heeds, fails, returns]
    until(lambda: len(ledger.of("start")) == 3)
    assert cancel(*running) == [REQUESTED] * 3
    assert set(cancel(fails, returns)) == {REQUESTED}
    until(lambda: end_of(heeds) == ("cancelled", "operator"))
    assert cancel(heeds) == [REFUSED]
    assert {end_of(handle) for handle in (fails, returns)} == {("leased", None)}
    field.open_gate()
    until(lambda: end_of(fails) == ("cancelled", "operator"))
    until(lambda: end_of(returns) == ("succeeded", "returned"))
    closed()
    assert field.stop(process) == [0]
    assert [starts(ledger, handle) for handle in running] == [[1]] * 3


def test_f146_what_has_ended_stays_as_it_is_and_nobody_is_made_up(field, ledger, closed):
    finished, failed = field_jobs.noop.enqueue(), field_jobs.fail.enqueue()
    process = field.ready()
    until(lambda: finished.refresh().state == "succeeded")
    until(lambda: failed.refresh().state == "dead_lettered")
    before = list(Job.objects.order_by("id").values())
    unknown = new_id()
    (answer,) = operations.cancel([unknown], actor=ACTOR, now=database_clock())
    assert (answer.result, answer.state) == (GONE, None)
    assert [cancel(finished, failed) for _ in range(2)] == [[REFUSED] * 2] * 2
    assert list(Job.objects.order_by("id").values()) == before
    assert finished.cancel(actor="ada").state == "succeeded"
    told = OperatorAction.objects.filter(action="cancel", result="refused")
    assert told.filter(target=str(finished.id)).count() == 3
    closed()
    assert field.stop(process) == [0]
