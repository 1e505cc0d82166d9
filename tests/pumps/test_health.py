from datetime import timedelta

import pytest

from backwave_django.core import commands as c
from backwave_django.core.contract import ClaimRequest
from backwave_django.core.leases import PumpHealth
from backwave_django.jobs.ids import new_id
from backwave_django.pumps.clock import SystemClock
from backwave_django.pumps.health import HealthFile, Vitals

CLAIM = c.Claim(
    request=ClaimRequest(
        pump_id=new_id(), queues=("default",), limit=1, lease_duration=timedelta(minutes=1)
    )
)
BEAT = c.Heartbeat(leases=())
PURGE = c.Purge(limit=1)


class Hands(SystemClock):
    """A clock whose line is moved by hand."""

    at = 0.0

    def mark(self):
        return self.at


@pytest.fixture
def clock():
    return Hands()


@pytest.fixture
def vitals(clock):
    return Vitals(name="pump", clock=clock, heartbeat_interval=timedelta(seconds=10))


def said(caplog):
    return [record.levelname for record in caplog.records]


def test_a_pump_is_well_while_the_store_answers_in_time(vitals, clock):
    assert not vitals.is_well()
    vitals.answered(BEAT)
    clock.at = 20
    assert vitals.is_well()
    clock.at = 22
    assert not vitals.is_well()
    vitals.answered(CLAIM)
    assert vitals.is_well()
    vitals.over = True
    assert not vitals.is_well()


def test_a_bad_time_is_logged_once_each_way(vitals, caplog):
    caplog.set_level("INFO", logger="backwave.pump")
    for _ in range(3):
        vitals.faulted((CLAIM,), "connection refused")
        vitals.answered(BEAT)
    status = vitals.status(executing=1, abandoned=0)
    assert (status.health, status.problem) == (PumpHealth.DEGRADED, "connection refused")
    vitals.answered(CLAIM)
    assert said(caplog) == ["WARNING", "INFO"]
    assert vitals.status(executing=1, abandoned=0).health is PumpHealth.HEALTHY


def test_a_fault_of_what_is_not_asked_again_is_over_after_a_clean_interval(vitals):
    vitals.faulted((PURGE,), "lock time-out")
    vitals.answered(BEAT)
    assert vitals.degraded
    vitals.answered(BEAT)
    assert not vitals.degraded


def test_a_draining_pump_says_so(vitals):
    vitals.draining = True
    assert vitals.status(executing=0, abandoned=0).health is PumpHealth.DRAINING


def test_the_health_file_is_touched_only_while_all_are_well(vitals, clock, tmp_path):
    path = tmp_path / "health"
    health = HealthFile(path)
    health.update([vitals])
    assert not path.exists()
    vitals.answered(BEAT)
    health.update([vitals])
    assert path.exists()
    path.unlink()
    other = Vitals(name="other", clock=clock, heartbeat_interval=timedelta(seconds=10))
    health.update([vitals, other])
    assert not path.exists()


def test_a_health_file_that_cannot_be_written_is_said_once(vitals, tmp_path, caplog):
    vitals.answered(BEAT)
    health = HealthFile(tmp_path / "no" / "such" / "place")
    health.update([vitals])
    health.update([vitals])
    assert said(caplog) == ["ERROR"]
