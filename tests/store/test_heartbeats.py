"""Heartbeats that meet locks, and words that no database keeps."""

import pytest
from django.db import transaction

from backwave_django.core.leases import LeaseHealth, Progress, PumpStatus
from backwave_django.models import Lease, Pump
from backwave_django.store import PumpStore
from tests.builders import ACTOR, MINUTE, PUMP, T0, beat, claim_request, new_job, pump_info


@pytest.mark.vendor("postgresql")
def test_registry_row_that_an_operator_holds_stops_no_heartbeat(store: PumpStore) -> None:
    store.register(pump_info(), now=T0)
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    with transaction.atomic():
        Pump.objects.select_for_update().get(pk=PUMP)
        answer = store.heartbeat(beat(job.lease_id), now=T0 + MINUTE)
    assert (answer.registered, answer.renewals[0].health) == (True, LeaseHealth.RENEWED)
    assert Lease.objects.get().expires_at == T0 + 2 * MINUTE
    assert Pump.objects.get().seen_at == T0
    store.heartbeat(beat(job.lease_id), now=T0 + MINUTE)
    assert Pump.objects.get().seen_at == T0 + MINUTE


def test_words_that_no_database_keeps_are_cleaned(store: PumpStore) -> None:
    store.register(pump_info(), now=T0)
    store.enqueue([new_job(1)])
    (job,) = store.claim(claim_request(), now=T0).jobs
    said = Progress(lease_id=job.lease_id, done=1, total=None, message="a\0b\ud800" + "x" * 300)
    status = PumpStatus(problem="c\0d")
    store.heartbeat(beat(job.lease_id, progress=(said,), status=status), now=T0)
    lease = Lease.objects.get()
    assert (lease.progress_done, lease.progress_total) == (1, None)
    assert lease.progress_message == ("a\N{REPLACEMENT CHARACTER}b?" + "x" * 300)[:200]
    assert Pump.objects.get().problem == "c\N{REPLACEMENT CHARACTER}d"
    store.retire(pump_id=PUMP, problem="e\0f", now=T0)
    assert Pump.objects.get().problem == "e\N{REPLACEMENT CHARACTER}f"


def test_drain_is_heard_with_the_next_beat(store: PumpStore) -> None:
    store.register(pump_info(), now=T0)
    assert not store.heartbeat(beat(), now=T0).drain_requested
    assert store.request_drain(PUMP, actor=ACTOR, now=T0)
    assert store.heartbeat(beat(), now=T0).drain_requested
