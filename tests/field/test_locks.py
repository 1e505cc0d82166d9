"""A transaction of somebody else's that holds what a pump wants to write."""

import pytest

from backwave_django.models import Job, Lease, Outcome
from tests.field import jobs
from tests.field.ground import QUICK
from tests.field.passing import passes
from tests.field.servers import held
from tests.fieldapp import jobs as field_jobs
from tests.fieldapp.ledger import now
from tests.pumps.waiting import until

LEASE = QUICK["LEASE_DURATION"]
#: What somebody's transaction holds: of the first, second, ... of some pairs of jobs.
HELD = (
    "SELECT id FROM backwave_job WHERE id = '{parent}' FOR UPDATE",
    "SELECT id FROM backwave_job WHERE id = '{parent}' FOR KEY SHARE",
    "SELECT id FROM backwave_lease WHERE job_id = '{parent}' FOR UPDATE",
    "SELECT id FROM backwave_job WHERE id = '{child}' FOR UPDATE",
)


@pytest.mark.vendor("postgresql")
def test_a_transaction_that_holds_rows_holds_up_those_rows_only(
    field, ledger, closed, database_url
):
    parents = field_jobs.until.enqueue_many([(str(field.gate),)] * len(HELD))
    children = [field_jobs.noop.options(after=parent).enqueue() for parent in parents]
    process = field.ready(POOL_SIZE=len(HELD))
    until(lambda: len(ledger.of("start")) == len(HELD))
    statements = [
        statement.format(parent=parent.id, child=child.id)
        for statement, parent, child in zip(HELD, parents, children, strict=True)
    ]
    with held(database_url, "; ".join(statements)):
        field.open_gate()
        until(lambda: len(ledger.of("finish")) == len(HELD))
        others = field_jobs.noop.enqueue_many([()] * 8)
        until(lambda: all(other.refresh().state == "succeeded" for other in others))
        passes(1.5 * LEASE)
        more = field_jobs.noop.enqueue()
        until(lambda: more.refresh().state == "succeeded")
        assert [parent.refresh().state for parent in parents] == [*(["leased"] * 3), "succeeded"]
        assert {child.refresh().state for child in children} == {"awaiting"}
    until(lambda: all(child.refresh().state == "succeeded" for child in children))
    assert {parent.refresh().state for parent in parents} == {"succeeded"}
    closed()
    assert field.stop(process) == [0]
    assert not Outcome.objects.exclude(kind="succeeded").exists()
    assert process.log.count("degraded") == 0


@pytest.mark.vendor("sqlite")
def test_f047_a_body_that_holds_the_only_lock_past_the_lease_runs_once(field, ledger, closed):
    processes = [field.ready(), field.ready()]
    handle = jobs.hold_lock.enqueue("held", str(field.gate))
    until(lambda: ledger.of("holds"))
    passes(2 * LEASE)
    field.open_gate()
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(*processes) == [0, 0]
    assert len(ledger.of("start")) - 1 == 1  # and the fresh one
    assert list(Outcome.objects.filter(job_id=handle.id).values_list("kind", flat=True)) == [
        "succeeded"
    ]


@pytest.mark.vendor("sqlite")
@pytest.mark.parametrize("advised", [False, True], ids=["as Django comes", "as advised"])
@pytest.mark.parametrize(
    "count", [150, pytest.param(1000, marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_f046_another_writer_costs_no_outcome(field, closed, advised, count):
    options = {} if advised else {"transaction_mode": None, "timeout": 5, "init_command": None}
    jobs.write.enqueue_many([(f"row {number}",) for number in range(count)])
    writer = field.manage("shell", "-v0", "-c", WRITER.format(gate=str(field.gate)))
    process = field.ready(database={"OPTIONS": options}, POOL_SIZE=4)
    began = now()
    until(
        lambda: Job.objects.filter(state="succeeded").count() == count,
        seconds=60 + count / 10,
        what=f"all have succeeded, {now() - began:.0f} s",
    )
    field.open_gate()
    assert writer.wait() == 0
    closed()
    assert field.stop(process) == [0]
    assert not Lease.objects.exists()
    assert not Outcome.objects.exclude(kind="succeeded").exists()


WRITER = """
import os, time
from django.contrib.auth.models import Group
number = 0
while not os.path.exists({gate!r}):
    Group.objects.update_or_create(name="writer", defaults={{}})
    Group.objects.filter(name="writer").update(name="writer")
    time.sleep(0.005)
"""
