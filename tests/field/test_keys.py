"""Unique keys and limits of jobs whose process was killed."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

import backwave_django as backwave
from backwave_django.models import Lease, Outcome, Pump
from tests.field import jobs
from tests.field.closing import SLACK_SECONDS
from tests.field.ground import QUICK
from tests.fieldapp.ledger import now
from tests.pumps.waiting import until

#: Nobody waits for this one: who runs again was recovered in another way.
ENDLESS = {"LEASE_DURATION": 600, "POOL_SIZE": 11}


def kinds(handle):
    rows = Outcome.objects.filter(job_id=handle.id).order_by("run")
    return list(rows.values_list("kind", flat=True))


@pytest.mark.parametrize("first", ["lost", "waits for its retry"])
def test_f133_lost_jobs_come_back_though_the_key_of_one_is_asked_for_again(
    field, ledger, closed, first
):
    others = jobs.first_waits.enqueue_many([(str(field.gate),)] * 10)
    keyed: backwave.JobHandle[Any]
    if first == "lost":
        keyed = jobs.first_waits.options(unique="k").enqueue(str(field.gate))
    else:
        keyed = jobs.fail_first.options(unique="k").enqueue()
    killed = field.ready(**ENDLESS)
    until(lambda: len(ledger.of("start")) == 11)
    if first != "lost":
        until(lambda: kinds(keyed) == ["failed"])
    killed.kill()
    again = jobs.first_waits.options(unique="k").enqueue(str(field.gate))
    assert (again.id, again.created) == (keyed.id, False)
    second = field.ready(**ENDLESS)
    until(lambda: all(handle.refresh().state == "succeeded" for handle in [keyed, *others]))
    closed()
    assert field.stop(second) == [0]
    ends = ["lapsed" if first == "lost" else "failed", "succeeded"]
    assert kinds(keyed) == ends
    assert [kinds(handle) for handle in others] == [["lapsed", "succeeded"]] * 10
    assert not {word for word in ("ERROR", "Traceback", "unique") if word in second.log}


def turns(ledger, handles):
    """When each of these bodies began and ended, in the order of their beginnings."""
    ids = {handle.id for handle in handles}
    spans = [
        (start.at, end.at)
        for start in ledger.of("start")
        for end in ledger.of("finish")
        if start.job_id in ids and (start.job_id, start.attempt) == (end.job_id, end.attempt)
    ]
    return sorted(spans)


def test_f136_a_killed_jobs_limit_is_free_after_its_lease_and_anothers_is_never_passed(
    field, ledger, closed
):
    lost = jobs.alone.options(unique="k").enqueue(str(field.gate))
    first = field.ready(POOL_SIZE=1)
    until(lambda: ledger.of("start"))
    second = field.ready(POOL_SIZE=4)
    beside = jobs.in_turn.enqueue_many([(0.2,)] * 12)
    until(lambda: turns(ledger, beside))
    # As if it were on another host: nobody sees that it is gone.
    Pump.objects.filter(pid=first.pid).update(boot_id="another boot of another host")
    first.kill()
    killed_at, expires_at = now(), Lease.objects.get(job_id=lost.id).expires_at
    first = field.ready(POOL_SIZE=1)
    again = jobs.alone.options(unique="k").enqueue(str(field.gate))
    assert (again.id, again.created) == (lost.id, False)
    waiting = jobs.alone.enqueue(str(field.gate))
    until(lambda: Outcome.objects.filter(job_id=lost.id))
    lapsed = Outcome.objects.get(job_id=lost.id)
    most = timedelta(seconds=QUICK["MAINTENANCE_INTERVAL"] + 2 + SLACK_SECONDS)
    assert expires_at <= lapsed.finished_at <= expires_at + most
    until(lambda: Lease.objects.filter(limit_key="ground.alone"))
    assert Lease.objects.filter(limit_key="ground.alone").count() == 1
    field.open_gate()
    until(lambda: all(h.refresh().state == "succeeded" for h in [lost, waiting, *beside]))
    closed()
    assert field.stop(first, second) == [0, 0]
    for handles, count in (([lost, waiting], 2), (beside, 12)):
        spans = turns(ledger, handles)
        assert len(spans) == count
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    # The others went on while the lost one had its slot.
    free_again_at = turns(ledger, [lost, waiting])[0][0]
    assert any(killed_at < start < free_again_at for start, _ in turns(ledger, beside))
