from datetime import timedelta

import pytest
from django.conf import settings

import backwave_django as backwave
from backwave_django import conf
from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.contract import ClaimRequest
from backwave_django.models import Pump
from backwave_django.pumps.exchange import Exchange, Turn, merged
from backwave_django.pumps.nodes import Node
from backwave_django.pumps.plans import plan_node
from backwave_django.pumps.progress import ProgressBoard
from backwave_django.store import open_pump_store
from tests.pumps.waiting import until

HOURS = timedelta(hours=8)


@backwave.job("exchange.note")
def note() -> None:
    return None


@pytest.fixture
def pump():
    config, _ = conf.read({}, databases=tuple(settings.DATABASES))
    return Node(plan_node(config, groups=["default"]), config=config).pumps[0]


@pytest.fixture
def exchange(pump, transactional_db):
    config, _ = conf.read({}, databases=tuple(settings.DATABASES))
    store = open_pump_store(
        config.database,
        config.store_settings,
        application_name="backwave:test",
        lease_duration=timedelta(minutes=1),
    )
    exchange = Exchange(
        store=store,
        clock=pump._clock,
        info=pump.info,
        vitals=pump.vitals,
        status=pump._status,
        progress=ProgressBoard(),
    )
    exchange.greet()
    yield exchange
    exchange.close()


def claim(pump, *, limit=10):
    return c.Claim(
        request=ClaimRequest(
            pump_id=pump.info.id,
            queues=("default",),
            limit=limit,
            lease_duration=timedelta(minutes=1),
        )
    )


def has_claimed(exchange, pump):
    answered = exchange.ask(claim(pump))
    assert isinstance(answered, e.Claimed)
    return bool(answered.answer.jobs)


@pytest.mark.parametrize("hours", [HOURS, -HOURS], ids=["ahead", "behind"])
def test_a_clock_that_is_hours_off_is_measured_before_a_lease_is_trusted(
    exchange, pump, hours, caplog
):
    note.enqueue()
    clock = pump._clock
    there = clock.now()
    mark = clock.mark()
    clock.adopt(there + hours, sent_at=mark, received_at=mark)
    answered = exchange.ask(claim(pump))
    assert isinstance(answered, e.Claimed)
    assert abs(clock.now() - there) < timedelta(minutes=1)
    assert "clock is" in caplog.text


def test_a_registry_row_that_is_gone_is_written_anew(exchange, pump):
    Pump.objects.all().delete()
    answered = exchange.ask(c.Heartbeat(leases=()))
    assert isinstance(answered, e.HeartbeatReturned)
    assert Pump.objects.get().id == pump.info.id


def test_dead_pumps_are_retired_once_their_leases_are_ended(exchange, pump):
    note.enqueue()
    until(lambda: has_claimed(exchange, pump))
    answered = exchange.ask(c.Dispose(pumps=(pump.info.id,)))
    assert isinstance(answered, e.Disposed)
    assert answered.answer.count == 1
    assert Pump.objects.get().problem == "its process is gone"


def test_a_report_is_merged_with_the_claim_right_after_it(pump):
    report, asked, beat = c.Report(outcomes=()), claim(pump), c.Heartbeat(leases=())
    turn = Turn(report=report, claim=asked)
    assert merged((report, asked, asked)) == [turn, asked]
    assert merged((report, beat, asked)) == [report, beat, asked]
    assert merged((asked, report)) == [asked, report]
