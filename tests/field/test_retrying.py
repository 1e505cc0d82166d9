"""Attempts that fail or run out of time, alone and a thousand at once."""

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from backwave_django import operations
from backwave_django.models import Job, Outcome
from backwave_django.monitor import database_clock
from tests.field import jobs
from tests.field.stranding import ACTOR
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

WAVE = 1_000


def outcomes(handle):
    return list(Outcome.objects.filter(job_id=handle.id).order_by("id"))


def has_ended(handle, *, times):
    return len(outcomes(handle)) == times


@pytest.mark.parametrize(("job_type", "attempts"), [(jobs.hang, 1), (jobs.hang_thrice, 3)])
def test_f145_a_time_out_is_final_after_the_last_attempt(field, ledger, closed, job_type, attempts):
    process = field.ready()
    handle = job_type.enqueue()
    until(lambda: handle.refresh().state == "dead_lettered")
    closed()
    process.kill()  # its bodies hang for ever
    assert Job.objects.get(pk=handle.id).cause == "timeout"
    assert [each.kind for each in outcomes(handle)] == ["timed_out"] * attempts
    starts = [entry.attempt for entry in ledger.of("start") if entry.job_id == handle.id]
    assert starts == list(range(1, attempts + 1))


def test_f160_a_restart_neither_shortens_a_wait_nor_begins_it_again(field, ledger, closed, client):
    client.force_login(User.objects.create_superuser("ada"))
    handle = jobs.fail_always.enqueue()
    process = field.ready()
    dues = []
    for attempt in range(1, 4):
        until(partial(has_ended, handle, times=attempt))
        due_at = Job.objects.get(pk=handle.id).due_at
        page = client.get(reverse("admin:backwave_job_change", args=[handle.id]))
        assert f'Due again: <time datetime="{due_at.isoformat()}"' in page.content.decode()
        # Nobody takes it before we have had a look.
        operations.pause("default", actor=ACTOR, now=database_clock())
        if attempt == 2:
            process.kill()
        else:
            assert field.stop(process) == [0]
        process = field.ready()
        job = Job.objects.get(pk=handle.id)
        assert (job.state, job.due_at) == ("scheduled", due_at)
        operations.resume("default", actor=ACTOR, now=database_clock())
        dues.append(due_at)
    until(lambda: handle.refresh().state == "dead_lettered")
    closed()
    assert field.stop(process) == [0]
    ended = outcomes(handle)
    assert [each.kind for each in ended] == ["failed"] * 4
    for number, (before, after, due_at) in enumerate(zip(ended, ended[1:], dues, strict=False)):
        wait, middle = due_at - before.finished_at, timedelta(seconds=1.5 * 1.5**number)
        assert 0.9 * middle <= wait <= 1.1 * middle
        assert before.next_due_at == due_at <= after.started_at
    assert [entry.attempt for entry in ledger.of("start") if entry.job_id == handle.id] == [
        *range(1, 5)
    ]


def test_f161_a_thousand_failures_come_back_spread_out_and_hold_up_no_other_queue(
    field, ledger, closed
):
    jobs.fail_together.enqueue_many([(str(field.gate),)] * WAVE)
    # The wave comes first in its order, and has all of its slots but one.
    process = field.ready(QUEUES=["default", "other"], POOL_SIZE=4)
    until(lambda: Job.objects.filter(state="scheduled", spent=1).count() == WAVE, seconds=90)
    operations.limit_queue("default", 3, actor=ACTOR, now=database_clock())
    failures = Outcome.objects.filter(kind="failed")
    waits = [each.next_due_at - each.finished_at for each in failures if each.next_due_at]
    minutes = [wait / timedelta(minutes=1) for wait in waits]
    assert len(minutes) == WAVE
    assert 8 <= min(minutes) <= max(minutes) <= 12
    in_each = [sum(low <= wait < low + 1 for wait in minutes) for low in range(8, 12)]
    assert min(in_each) > WAVE / 8, "an even share in all parts of the span"
    ids = list(Job.objects.filter(wire_name="ground.fail_together").values_list("id", flat=True))
    operations.run_now(ids, actor=ACTOR, now=database_clock())
    until(lambda: len(ledger.of("start")) == 3, what="the wave is there")
    others = [field_jobs.noop.options(queue="other").enqueue() for _ in range(5)]
    until(lambda: all(handle.refresh().state == "succeeded" for handle in others))
    assert ledger.of("finish") == [], "nothing of the wave has gone by"
    assert Job.objects.filter(state="scheduled", due_at__lte=database_clock()).count() == WAVE - 3
    operations.limit_queue("default", None, actor=ACTOR, now=database_clock())
    field.open_gate()
    until(lambda: not Job.objects.exclude(state="succeeded").exists(), seconds=90)
    closed()
    assert field.stop(process) == [0]
