"""Wake-up hints that get lost, and large things to hint at."""

import pytest
from django.db import transaction

from backwave_django.core.bounds import MAX_QUEUE_CHARS
from backwave_django.models import Job
from tests.field import jobs
from tests.field.servers import LISTENERS, Background, cut, cut_until_new
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

#: So that only a hint can be what woke a pump.
HINTED = {"POLL_INTERVAL": 600, "LEASE_DURATION": 60, "HEARTBEAT_INTERVAL": 19}


@pytest.mark.vendor("postgresql")
def test_f041_jobs_are_hinted_at_again_soon_after_a_cut_and_polled_for_meanwhile(
    field, ledger, closed
):
    process = field.ready()
    with Background(lambda: cut(LISTENERS), every_seconds=0.05):
        # Nobody listens for longer than a moment: polls find everything.
        until(lambda: "connection for hints is lost" in process.log)
        for number in range(1, 4):
            field_jobs.noop.enqueue()
            until(lambda n=number: len(ledger.of("start")) == n)
    until(lambda: "listening for hints again" in process.log, seconds=20)
    closed()
    assert field.stop(process) == [0]
    assert process.log.count("connection for hints is lost") <= 4


@pytest.mark.vendor("postgresql")
def test_f041_each_job_wakes_a_pump_after_its_listener_was_cut(field, ledger):
    process = field.ready(**HINTED)
    until(lambda: cut(LISTENERS), what="somebody listens")
    cut_until_new(LISTENERS)
    for number in range(1, 6):
        field_jobs.noop.enqueue()
        until(lambda n=number: len(ledger.of("start")) == n, what="a hint wakes the pump")
    assert field.stop(process) == [0]


def test_f043_whatever_is_enqueued_wakes_a_pump(field, ledger, closed):
    longest = "q" * MAX_QUEUE_CHARS
    process = field.ready(QUEUES=["default", longest], **HINTED)
    large = jobs.say.enqueue("x" * 1_000_000)
    until(lambda: large.refresh().state == "succeeded")
    wide = jobs.say.enqueue("é" * 7_999)
    until(lambda: wide.refresh().state == "succeeded")
    named = field_jobs.noop.options(queue=longest).enqueue()
    until(lambda: named.refresh().state == "succeeded")
    with transaction.atomic():
        jobs.short.enqueue_many([(0,)] * 2_000)
    until(lambda: Job.objects.filter(state="succeeded").count() == 2_003, seconds=60)
    closed()
    assert field.stop(process) == [0]
