"""What must be true after every case, whatever was done to the system."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, F, Q

from backwave_django.core.states import TERMINAL
from backwave_django.models import Job, Lease, Outcome
from backwave_django.monitor.clock import database_clock
from backwave_django.monitor.doctor import examine
from tests.field.ground import QUICK, Ground
from tests.fieldapp.jobs import noop
from tests.fieldapp.ledger import Ledger
from tests.pumps.waiting import until

#: What a machine that does other things adds to any bound.
SLACK_SECONDS = 10.0
#: Findings of the doctor that no moment excuses.
INCONSISTENT = {"orphan_lease", "dead_edge"}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds that follow from the dials of a case, in seconds."""

    lease: float = QUICK["LEASE_DURATION"]
    sweep: float = QUICK["MAINTENANCE_INTERVAL"]
    poll: float = QUICK["POLL_INTERVAL"]


def assert_closed(field: Ground, ledger: Ledger, bounds: Bounds | None = None) -> None:
    """Check the closing conditions. Whoever runs goes on; if nobody does, somebody is started."""
    bounds = bounds or Bounds()
    ended = _ended()
    _still_runs_jobs(field, ledger, bounds)
    until(
        lambda: not _leased_without_a_live_lease(),
        seconds=2 * bounds.lease + bounds.sweep + SLACK_SECONDS,
        what="every leased job has a live lease",
    )
    _one_outcome_per_attempt()
    now = _ended()
    assert {job_id: now.get(job_id) for job_id in ended} == ended, "a terminal state changed"
    until(lambda: not idle_in_transaction(), what="nobody idles in a transaction")
    found = {alert.code for alert in examine(node_clock=database_clock())}
    assert not found & INCONSISTENT


def _ended() -> dict[UUID, tuple[Any, ...]]:
    rows = Job.objects.filter(state__in=TERMINAL).values_list(
        "id", "state", "cause", "run", "spent", "output", "terminal_at"
    )
    return {row[0]: tuple(row[1:]) for row in rows}


def _still_runs_jobs(field: Ground, ledger: Ledger, bounds: Bounds) -> None:
    # Ahead of whatever waits: it is the pump that is asked after, not the backlog.
    fresh = noop.options(priority=100).enqueue()
    if not field.living():
        assert field.pump("--max-jobs", "1").wait() == 0
    until(
        lambda: any(entry.job_id == fresh.id for entry in ledger.of("start")),
        seconds=bounds.poll + 1 + SLACK_SECONDS,
        what="a fresh job starts",
    )
    until(lambda: fresh.refresh().state == "succeeded", what="a fresh job succeeds")


def _leased_without_a_live_lease() -> bool:
    clock = database_clock()
    live = Lease.objects.filter(expires_at__gt=clock).values("job_id")
    return Job.objects.filter(state="leased").exclude(id__in=live).exists()


def _one_outcome_per_attempt() -> None:
    ended = Q(outcomes__state__in=TERMINAL)
    jobs = Job.objects.annotate(
        recorded=Count("outcomes", filter=Q(outcomes__run__isnull=False)),
        ends=Count("outcomes", filter=ended),
    )
    assert not jobs.filter(recorded__gt=F("run")).exists(), "more outcomes than runs"
    assert not jobs.filter(ends__gt=1).exists(), "a job has ended twice"
    assert not jobs.filter(state__in=TERMINAL, ends=0).exists(), "a job has ended without a trace"
    doubled = Outcome.objects.filter(run__isnull=False).values("job", "run").annotate(n=Count("id"))
    assert not doubled.filter(n__gt=1).exists(), "an attempt has two outcomes"


def idle_in_transaction(*, longer_than: float = 1.0) -> list[str]:
    """The sessions that do nothing and hold a transaction open, by name."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() "
            "AND state LIKE 'idle in transaction%%' "
            "AND extract(epoch FROM clock_timestamp() - state_change) > %s",
            [longer_than],
        )
        return [name for (name,) in cursor.fetchall()]
