import pytest

from backwave_django.core import commands as c
from backwave_django.core.flight import Flight
from tests.core.drivers import SETTLE, claim, heartbeat, report


def test_nothing_is_in_flight_at_first():
    assert not Flight()


def test_claims_in_flight_reserve_their_limits():
    flight = Flight()
    assert flight.issue((report(1), claim(3), claim(2))) == (report(1), claim(3), claim(2))
    assert flight
    assert flight.reserved == 5


def test_the_oldest_command_of_a_kind_is_answered_first():
    flight = Flight()
    flight.issue((claim(3), SETTLE, claim(2)))
    assert flight.answered(c.Settle) == SETTLE
    assert flight.answered(c.Claim) == claim(3)
    assert flight.reserved == 2
    assert flight.answered(c.Claim) == claim(2)
    assert not flight


def test_reports_and_releases_share_an_answer():
    flight = Flight()
    flight.issue((c.Release(outcomes=()),))
    assert flight.answered(c.Report, c.Release) == c.Release(outcomes=())


def test_a_faulted_command_is_no_longer_in_flight():
    flight = Flight()
    flight.issue((heartbeat(), claim(3)))
    flight.faulted(claim(3))
    assert (bool(flight), flight.reserved) == (True, 0)
    flight.faulted(heartbeat())
    assert not flight


def test_an_answer_to_nothing_is_a_bug():
    with pytest.raises(AssertionError, match="none of which is in flight"):
        Flight().answered(c.Claim)


def test_a_fault_of_nothing_is_a_bug():
    flight = Flight()
    flight.issue((claim(3),))
    with pytest.raises(AssertionError, match="not in flight"):
        flight.faulted(SETTLE)
