"""Wake-up hints that get lost, and large things to hint at."""

from functools import partial

import pytest
from django.db import transaction

from backwave_django.core.bounds import MAX_QUEUE_CHARS
from backwave_django.models import Job
from tests.field import jobs
from tests.field.servers import LISTENERS, Background, cut
from tests.fieldapp import jobs as field_jobs
from tests.fieldapp.ledger import Ledger
from tests.pumps.waiting import until

#: So that only a hint can be what woke a pump.
HINTED = {"POLL_INTERVAL": 600, "LEASE_DURATION": 60, "HEARTBEAT_INTERVAL": 19}


def _started(ledger: Ledger, count: int) -> bool:
    return len(ledger.of("start")) == count


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
            until(partial(_started, ledger, number))
    until(lambda: "listening for hints again" in process.log, seconds=20)
    closed()
    assert field.stop(process) == [0]
    assert process.log.count("connection for hints is lost") <= 4


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
