"""How SQLite keeps what PostgreSQL knows by itself."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from backwave_django.core.states import JobState
from backwave_django.models import Job
from backwave_django.store import PumpStore
from backwave_django.store.dialects.sqlite import SqliteValues
from backwave_django.store.dialects.values import Values
from tests.builders import T0, claim_request, new_job, uid

BERN = ZoneInfo("Europe/Zurich")
SUMMER = datetime(2030, 7, 1, 12, 30, 15, 250, tzinfo=UTC)


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("UTC"), BERN, timezone(timedelta(hours=-3))])
def test_instants_come_back_as_they_were(zone: tzinfo) -> None:
    values = SqliteValues(zone)
    for instant in (SUMMER, T0, SUMMER.replace(microsecond=0)):
        assert values.instant(values.write(instant)) == instant


def test_instants_are_kept_as_django_keeps_them() -> None:
    assert SqliteValues().write(SUMMER.astimezone(BERN)) == "2030-07-01 12:30:15.000250"
    assert SqliteValues(BERN).write(SUMMER) == "2030-07-01 14:30:15.000250"


def test_values_of_djangos_cursors_are_read_too() -> None:
    assert SqliteValues().instant(SUMMER.replace(tzinfo=None)) == SUMMER
    assert Values().instant(SUMMER.replace(tzinfo=None)) == SUMMER


def test_lists_become_json() -> None:
    bound = SqliteValues().bound({"ids": [uid(1), None], "state": JobState.LEASED})
    assert bound == {"ids": f'["{uid(1).hex}", null]', "state": "leased"}
    assert type(bound["state"]) is str


def test_row_reads_alike_through_django_and_through_a_claim(store: PumpStore) -> None:
    job = new_job(
        1,
        priority=7,
        deadline=SUMMER + timedelta(days=9_999),
        workflow=uid(5),
        tags='{"b": 1, "a": [2]}',
        trace="00-1-2-01",
    )
    store.enqueue([job])
    row = Job.objects.get()
    (leased,) = store.claim(claim_request(), now=T0).jobs
    assert (leased.job_id, leased.due_at, leased.deadline, leased.workflow, leased.trace) == (
        row.id,
        row.due_at,
        row.deadline,
        row.workflow,
        row.trace,
    )
    assert (row.priority, row.payload, row.tags) == (-7, job.payload, {"b": 1, "a": [2]})
