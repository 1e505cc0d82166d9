"""Pumps that are away for longer than their leases, and come back with what they did meanwhile."""

import pytest

from backwave_django.models import Job, Outcome
from backwave_django.monitor import database_clock
from tests.field import jobs
from tests.field.closing import Bounds
from tests.field.ground import QUICK
from tests.field.passing import freeze, passes, thaw
from tests.field.stranding import every_second, ticks
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

LEASE = QUICK["LEASE_DURATION"]
#: So that only a hint can be what woke a pump.
HINTED = {"POLL_INTERVAL": 600}


def test_f017_a_pump_that_slept_through_its_lease_changes_nothing_and_goes_on(
    field, ledger, closed
):
    every_second()
    first = field.ready(**HINTED)
    handle = jobs.first_waits.enqueue(str(field.gate))
    until(lambda: ledger.of("start"))
    second = field.ready(**HINTED)
    freeze(first)
    until(lambda: handle.refresh().state == "succeeded")
    assert handle.output == second.pid
    made = ticks()
    until(lambda: ticks() > made, what="the other pump minds the schedules")
    thaw(first)
    until(lambda: "lost its lease" in first.log)
    field.open_gate()
    until(lambda: len(ledger.of("finish")) == 2)
    assert field.stop(second) == [0]
    made, started = ticks(), len(ledger.of("start"))
    field_jobs.noop.enqueue()
    until(lambda: len(ledger.of("start")) > started, what="a hint wakes it")
    until(lambda: ticks() > made, what="it minds the schedules again")
    closed()
    assert field.stop(first) == [0]
    assert first.log.count("lost its lease") == 1
    assert handle.refresh().output == second.pid
    assert list(
        Outcome.objects.filter(job_id=handle.id).order_by("run").values_list("kind", flat=True)
    ) == ["lapsed", "succeeded"]


def test_f011_a_lonely_pump_that_slept_goes_on_where_it_was(field, ledger, closed):
    every_second()
    process = field.ready()
    handle = field_jobs.until.enqueue(str(field.gate))
    until(lambda: ledger.of("start"))
    until(lambda: ticks() > 0)
    freeze(process)
    asleep_at = database_clock()
    passes(2 * LEASE)
    awake_at = database_clock()
    thaw(process)
    until(lambda: Job.objects.filter(schedule="ticking", scheduled_for__gt=awake_at).exists())
    missed = Job.objects.filter(
        schedule="ticking", scheduled_for__gt=asleep_at, scheduled_for__lt=awake_at
    )
    assert missed.count() <= 2  # the one that was due before it slept, and one made up for
    field.open_gate()
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(process) == [0]
    assert len(Outcome.objects.filter(job_id=handle.id, state="succeeded")) == 1


@pytest.mark.parametrize(
    "count", [40, pytest.param(500, marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_f017_bodies_about_as_long_as_the_lease_have_one_accepted_outcome_each(
    field, ledger, closed, count
):
    lease = 2.0
    dials = {"LEASE_DURATION": lease, "HEARTBEAT_INTERVAL": 0.4, "POOL_SIZE": 16}
    steady, sleepy = field.ready(**dials), field.ready(**dials)
    # From 0.8 to 1.2 leases, evenly.
    lengths = [lease * (0.8 + 0.4 * number / count) for number in range(count)]
    handles = field_jobs.sleep.enqueue_many([(seconds,) for seconds in lengths])
    until(lambda: len(ledger.of("start")) >= 16)

    def ended() -> int:
        return Job.objects.filter(state="succeeded").count()

    for _ in range(max(2, count // 50)):
        freeze(sleepy)
        passes(1.5 * lease)
        thaw(sleepy)
        passes(lease / 2)
    until(lambda: ended() == count, seconds=30 + count / 4)
    closed(Bounds(lease=lease))
    assert field.stop(steady, sleepy) == [0, 0]
    finished = {entry.job_id for entry in ledger.of("finish")}
    assert {handle.id for handle in handles} <= finished
    accepted = Outcome.objects.filter(state="succeeded", kind="succeeded")
    assert accepted.filter(job_id__in=[handle.id for handle in handles]).count() == count


def test_a_body_that_holds_the_interpreter_past_the_lease_is_fenced(field, ledger, closed):
    pumps = [field.ready(), field.ready()]
    handle = jobs.seize_interpreter.enqueue(3 * LEASE)
    until(lambda: handle.refresh().state == "succeeded")
    until(lambda: len(ledger.of("finish")) == 2)
    closed()
    assert field.stop(*pumps) == [0, 0]
    seized, other = ledger.of("start")[:2]
    assert {seized.pid, other.pid} == {pump.pid for pump in pumps}
    assert list(
        Outcome.objects.filter(job_id=handle.id).order_by("run").values_list("kind", flat=True)
    ) == ["lapsed", "succeeded"]
