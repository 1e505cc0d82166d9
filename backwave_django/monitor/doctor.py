"""A thorough look: what should never be, and what nobody has done yet. For a person who waits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.core.checks import run_checks
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from backwave_django.conf import get_config
from backwave_django.core.states import JobState
from backwave_django.models import Dependency, Job, Lease
from backwave_django.models.choices import TERMINAL_STATES
from backwave_django.monitor.alerts import Alert, alerts
from backwave_django.monitor.clock import connection, database_clock, span
from backwave_django.monitor.migrations import unapplied
from backwave_django.monitor.terminal import HAS_ENDED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.db.models import Model, QuerySet

#: Clocks of nodes may differ by this much before anybody should care.
CLOCK_TOLERANCE = timedelta(seconds=2)
#: Purges run every minute; later than this they do not keep up, or do not run.
PURGE_TOLERANCE = timedelta(hours=1)
#: An inconsistency is as bad when there are more of it.
MOST = 100


def examine(*, node_clock: datetime) -> tuple[Alert, ...]:
    """Return all that is wrong. ``node_clock`` is what this process takes for the time."""
    unmigrated = tuple(_migrations())
    if unmigrated:
        return unmigrated  # nothing else can be asked before that
    clock = database_clock()
    return (
        *_settings(),
        *_clocks(clock, node_clock),
        *alerts(clock=clock),
        *_inconsistencies(),
        *_retention(clock),
    )


def _migrations() -> Iterator[Alert]:
    for name in unapplied(connection()):
        text = _("Migration %(name)s is not applied.") % {"name": name}
        remedy = f"python manage.py migrate backwave --database {connection().alias}"
        yield Alert("migration", text, remedy)


def _settings() -> Iterator[Alert]:
    for message in run_checks(tags=["backwave"]):
        severe = message.is_serious()
        yield Alert(str(message.id), str(message.msg), str(message.hint or ""), severe)


def _clocks(clock: datetime, node_clock: datetime) -> Iterator[Alert]:
    offset = node_clock - clock
    if abs(offset) > CLOCK_TOLERANCE:
        text = _("The clock of this node is %(span)s off from the database's.")
        remedy = _("Run a time daemon on both. Leases live by the database's clock.")
        yield Alert("clock", text % {"span": span(abs(offset))}, remedy, severe=False)


def _inconsistencies() -> Iterator[Alert]:
    alias = get_config().database
    job_of_lease = Job.objects.filter(pk=OuterRef("job_id"), state=JobState.LEASED.value)
    lease_of_job = Lease.objects.filter(job_id=OuterRef("pk"))
    live_parent = Job.objects.filter(pk=OuterRef("parent_id")).exclude(state__in=TERMINAL_STATES)
    yield from _found(
        "leaseless",
        Job.objects.using(alias).filter(~Exists(lease_of_job), state=JobState.LEASED.value),
        _("%(count)s jobs are leased and have no lease."),
        _("A live pump makes them due again at its next sweep."),
    )
    yield from _found(
        "orphan_lease",
        Lease.objects.using(alias).filter(~Exists(job_of_lease)),
        _("%(count)s leases belong to no leased job."),
        _("Report this with the rows: no statement of Backwave leaves one."),
    )
    yield from _found(
        "dead_edge",
        Dependency.objects.using(alias).filter(~Exists(live_parent), Q(settled=False)),
        _("%(count)s dependencies are open although their parent has ended or is gone."),
        _("A live pump settles them at its next sweeps; a minute later there should be none."),
    )


def _found(code: str, rows: QuerySet[Model], text: str, remedy: str) -> Iterator[Alert]:
    count = len(rows.values_list("pk")[: MOST + 1])
    if count:
        shown = f"{MOST}+" if count > MOST else str(count)
        yield Alert(code, text % {"count": shown}, remedy, severe=False)


def _retention(clock: datetime) -> Iterator[Alert]:
    late = clock - PURGE_TOLERANCE
    for state, horizon in get_config().retention.horizons(now=late):
        jobs = Job.objects.using(get_config().database)
        ended = jobs.filter(HAS_ENDED, state=state.value, terminal_at__lt=horizon)
        if ended.order_by("terminal_at", "id").values_list("pk")[:1]:
            text = _("Jobs that are %(state)s are kept for longer than RETENTION says.")
            remedy = _("Let a pump with PURGE run, or: %(command)s")
            words = {"state": state.value, "command": "python manage.py backwave_purge"}
            yield Alert("purge", text % words, remedy % words, severe=False)
