"""What is urgent, what is not, and who has a pump of its own."""

import pytest

from tests.field import jobs
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

#: (the queue of the urgent, the queue of the others, what the pump serves)
BY_QUEUE = ("high", "low", ["high", "low", "default"])
BY_PRIORITY = ("default", "default", ["default"])


def begun(ledger, handles):
    ids = {handle.id for handle in handles}
    return [entry for entry in ledger.of("start") if entry.job_id in ids]


@pytest.mark.parametrize("order", [BY_QUEUE, BY_PRIORITY], ids=["queues", "priorities"])
def test_f163_strict_order_lets_nothing_less_urgent_by(field, ledger, closed, order):
    high, low, served = order
    patient = [field_jobs.noop.options(queue=low).enqueue() for _ in range(5)]
    for _ in range(4):
        jobs.next_in_line.options(queue=high, priority=50).enqueue(str(field.gate))
    process = field.ready(QUEUES=served, POOL_SIZE=2)
    until(lambda: len(ledger.of("start")) > 60, what="the urgent ones go on and on")
    assert begun(ledger, patient) == []
    field.open_gate()
    until(lambda: all(handle.refresh().state == "succeeded" for handle in patient))
    closed()
    assert field.stop(process) == [0]


def test_f163_a_pump_for_the_less_urgent_queue_runs_it_at_once(field, ledger, closed):
    gate = str(field.gate)
    urgent = [field_jobs.until.options(queue="high").enqueue(gate) for _ in range(12)]
    process = field.ready(QUEUES=["high", "low", "default"], POOL_SIZE=2)
    until(lambda: len(begun(ledger, urgent)) == 2)
    patient = [field_jobs.noop.options(queue="low").enqueue() for _ in range(5)]
    own = field.ready(QUEUES=["low"], POOL_SIZE=1)
    until(lambda: all(handle.refresh().state == "succeeded" for handle in patient))
    assert {entry.pid for entry in begun(ledger, patient)} == {own.pid}
    assert (ledger.of("finish"), len(begun(ledger, urgent))) == ([], 2)
    field.open_gate()
    until(lambda: all(handle.refresh().state == "succeeded" for handle in urgent))
    closed()
    assert field.stop(process, own) == [0, 0]
