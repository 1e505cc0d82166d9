"""Everything about one job that a page or a command shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from backwave_django.conf import get_config
from backwave_django.models import Dependency, Job, Lease, OperatorAction, Outcome, Pump
from backwave_django.monitor.pumps import PumpView, view
from backwave_django.monitor.why import why

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.jobs.ports import Reason

#: A job that was requeued for months still opens.
MOST_OUTCOMES = 100
MOST_ACTIONS = 50
MOST_EDGES = 50
#: Columns that may hold what only some people may see.
SENSITIVE_OUTCOME = ("message", "traceback", "log")
SENSITIVE_JOB = ("payload", "output")


class Attempt(NamedTuple):
    """One outcome with the pump that produced it, if that is still registered."""

    outcome: Outcome
    pump: Pump | None

    @property
    def ran_for(self) -> timedelta | None:
        """How long the body ran."""
        if self.outcome.started_at is None:
            return None
        return self.outcome.finished_at - self.outcome.started_at


class Relative(NamedTuple):
    """A parent or a child. ``job`` is ``None`` when it was purged."""

    id: UUID
    job: Job | None
    mode: str
    settled: bool


class JobDetail(NamedTuple):
    """One job. ``attempts`` and ``actions`` are newest first and may be cut."""

    job: Job
    reasons: tuple[Reason, ...]
    lease: Lease | None
    pump: PumpView | None
    attempts: tuple[Attempt, ...]
    actions: tuple[OperatorAction, ...]
    parents: tuple[Relative, ...]
    children: tuple[Relative, ...]

    @property
    def headline(self) -> str:
        """The one reason to read first."""
        blocking = [reason.text for reason in self.reasons if reason.blocks]
        return blocking[0] if blocking else self.reasons[0].text


def read_job(
    job_id: UUID, *, clock: datetime, values: bool = False, failures: bool = False
) -> JobDetail | None:
    """Return the job, or ``None``. ``clock`` is the database's time.

    Payload and output are read if ``values``, messages and tracebacks if ``failures``: what is
    not to be shown stays in the database.
    """
    alias = get_config().database
    jobs = Job.objects.using(alias)
    job = (jobs if values else jobs.defer(*SENSITIVE_JOB)).filter(pk=job_id).first()
    if job is None:
        return None
    lease = Lease.objects.using(alias).filter(job_id=job_id).first()
    attempts = _attempts(job_id, failures=failures)
    pumps = _pumps([lease.pump_id if lease else None, *(each.pump_id for each in attempts)])
    holder = pumps.get(lease.pump_id) if lease is not None else None
    actions = OperatorAction.objects.using(alias).filter(target_kind="job", target=str(job_id))
    return JobDetail(
        job=job,
        reasons=why(job, clock=clock),
        lease=lease,
        pump=view(holder, clock=clock) if holder is not None else None,
        attempts=tuple(Attempt(each, pumps.get(each.pump_id)) for each in attempts),
        actions=tuple(actions.order_by("-id")[:MOST_ACTIONS]),
        parents=_relatives(job_id, here="child_id", there="parent_id"),
        children=_relatives(job_id, here="parent_id", there="child_id"),
    )


def _attempts(job_id: UUID, *, failures: bool) -> list[Outcome]:
    outcomes = Outcome.objects.using(get_config().database).filter(job_id=job_id)
    if not failures:
        outcomes = outcomes.defer(*SENSITIVE_OUTCOME)
    return list(outcomes.order_by("-id")[:MOST_OUTCOMES])


def _pumps(ids: Iterable[UUID | None]) -> dict[UUID | None, Pump]:
    wanted = {pump_id for pump_id in ids if pump_id is not None}
    found = Pump.objects.using(get_config().database).filter(pk__in=wanted).defer("wire_names")
    return {pump.pk: pump for pump in found}


def _relatives(job_id: UUID, *, here: str, there: str) -> tuple[Relative, ...]:
    alias = get_config().database
    edges = Dependency.objects.using(alias).filter(**{here: job_id}).order_by("id")[:MOST_EDGES]
    ids = [getattr(edge, there) for edge in edges]
    jobs = Job.objects.using(alias).filter(pk__in=ids).defer(*SENSITIVE_JOB)
    found = {job.pk: job for job in jobs} if ids else {}
    return tuple(
        Relative(other, found.get(other), edge.mode, edge.settled)
        for other, edge in zip(ids, edges, strict=True)
    )
