"""Rates, patterns and windows over virtual time."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import override_settings

import backwave_django as backwave
from backwave_django.core.contract import Actor
from backwave_django.core.rates import Rate
from backwave_django.models import Limit, Outcome
from backwave_django.store import default_store
from backwave_django.testing import Harness

T0 = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
OPERATOR = Actor(name="ops", reason="vendor asks")


@backwave.job("testing.report", queue="harness-reports")
def report() -> None: ...


@backwave.job("testing.call", limit=backwave.Limit("testing-gateway", rate="10/second"))
def call() -> None: ...


def per_tenant(tenant: str, **_options: bool) -> str:
    return f"testing:{tenant}"


@backwave.job(
    "testing.import",
    limit=backwave.Limit(per_tenant, 50, rate="100/minute"),
    retry=backwave.Retry(max_attempts=2, initial=timedelta(0), jitter=0.0),
)
def import_rows(tenant: str, fails: bool = False) -> None:  # noqa: FBT001, FBT002 - a body's arguments
    if fails:
        raise RuntimeError


@pytest.fixture
def harness(db):
    with Harness(now=T0) as opened:
        yield opened


def starts():
    """When attempts began, in order, in seconds since T0."""
    instants = Outcome.objects.order_by("started_at").values_list("started_at", flat=True)
    return [(at - T0).total_seconds() for at in instants if at is not None]


def test_declared_rate_of_ten_per_second_holds(harness):
    call.enqueue_many([()] * 150)
    harness.advance(seconds=10)
    found = starts()
    assert len(found) == 10 + 10 * 10
    assert found[:12] == [*[0.0] * 10, 0.1, 0.2]
    for first in range(len(found)):
        within = [at for at in found[first:] if at <= found[first] + 1]
        assert len(within) <= 10 + 10
    harness.advance(minutes=1)
    assert len(starts()) == 150


def test_operators_rate_goes_before_that_of_the_code(harness):
    default_store().set_rate("testing-gateway", Rate.parse("1/hour"), actor=OPERATOR, now=T0)
    call.enqueue_many([()] * 5)
    harness.advance(hours=3)
    assert starts() == [0.0, 3600.0, 7200.0, 10800.0]


def test_pattern_applies_to_a_key_that_appears_later_and_retries_are_starts(harness):
    default_store().set_rate("testing:*", Rate.parse("1/minute"), actor=OPERATOR, now=T0)
    harness.advance(minutes=10)
    import_rows.enqueue("late", fails=True)
    import_rows.enqueue("late")
    import_rows.enqueue("other")
    harness.advance(minutes=10)
    assert starts() == [600.0, 600.0, 660.0, 720.0]
    row = Limit.objects.get(pk="testing:late")
    assert (row.limit, row.rate, row.source) == (50, "100/minute", "code")


def test_window_opens_and_closes_over_virtual_time(harness):
    store, window = default_store(), "20:00-06:00 Europe/Zurich"
    store.set_window("harness-reports", window, actor=OPERATOR, now=T0)
    first = report.enqueue()
    harness.advance(hours=8)
    assert first.refresh().state == "scheduled"
    assert [reason.code for reason in first.explain()][:1] == ["window"]
    harness.advance(hours=14)
    # Opened at 20:00 in Zurich, ten hours after T0; closed again at 06:00.
    assert starts() == [36_000.0]
    second = report.options(delay=timedelta(hours=1)).enqueue()
    harness.advance(hours=11)
    assert second.refresh().state == "scheduled"
    harness.advance(days=1)
    assert starts() == [36_000.0, 36_000.0 + 86_400.0]


@override_settings(BACKWAVE={"WINDOWS": {"harness-reports": "Sat,Sun 00:00-24:00 UTC"}})
def test_window_of_the_settings_holds_in_the_harness(db):
    with Harness(now=T0) as harness:
        report.enqueue()
        harness.advance(days=10)
        # T0 is a Monday.
        assert starts() == [timedelta(days=4, hours=15).total_seconds()]


@override_settings(BACKWAVE={"LIMITS": {"harness-reports": {"LIMIT": 9, "RATE": "2/hour"}}})
def test_limit_of_the_settings_holds_in_the_harness(db):
    with Harness(now=T0) as harness:
        handles = report.enqueue_many([()] * 4)
        harness.run_until_idle()
        reason = handles[-1].explain()[0]
        assert reason.code == "rate"
        assert reason.text.endswith("The settings say so.")
        harness.advance(hours=1)
        assert starts() == [0.0, 0.0, 1800.0, 3600.0]
