"""Report: outcomes applied under their fences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backwave_django.core.contract import ReportAnswer
from backwave_django.core.errors import StoreUnavailable
from backwave_django.core.memory.endings import Ending, Record, end_lease, note_body, settle
from backwave_django.core.outcomes import OutcomeKind, Reported, Unroutable, Verdict
from backwave_django.core.states import TERMINAL, Cause, JobState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from backwave_django.core.memory.rows import JobRow
    from backwave_django.core.memory.tables import Tables
    from backwave_django.core.outcomes import Outcome


def report(tables: Tables, outcomes: Sequence[Outcome], *, now: datetime) -> ReportAnswer:
    """Apply ``outcomes``, then settle what waited for them; see the contract."""
    ended: list[UUID] = []
    rows = tuple(_apply(tables, outcome, ended, now=now) for outcome in outcomes)
    settle(tables, ended, now=now)
    return ReportAnswer(rows=rows, clock=tables.clock())


def report_inside(
    tables: Tables, outcome: Outcome, *, patience: timedelta | None, now: datetime
) -> Reported:
    """Apply the success of an atomic body; a row that is held is as good as waited for."""
    (row,) = report(tables, [outcome], now=now).rows
    if row.verdict is Verdict.BUSY:
        raise StoreUnavailable(f"job {outcome.job_id} is held, for longer than {patience}")
    return row


def is_recorded(tables: Tables, *, job_id: UUID, run: int) -> bool:
    """Tell whether a run of a job has succeeded, by its history or by the job itself."""
    history = tables.outcomes.get(job_id, ())
    if any(row.run == run and row.kind is OutcomeKind.SUCCEEDED for row in history):
        return True
    job = tables.jobs.get(job_id)
    return job is not None and job.run == run and job.state is JobState.SUCCEEDED


def _apply(tables: Tables, outcome: Outcome, ended: list[UUID], *, now: datetime) -> Reported:
    """Apply one outcome if its lease is there, and note in ``ended`` a job that rests now."""
    lease = tables.leases.get(outcome.lease_id)
    if lease is None:
        return Reported(outcome.lease_id, Verdict.STALE)
    if tables.is_held(lease.id, lease.job_id):
        return Reported(outcome.lease_id, Verdict.BUSY)
    job = tables.jobs[lease.job_id]
    ending = Ending(outcome.state, outcome.due_at, outcome.cause)
    if outcome.kind is OutcomeKind.UNROUTABLE:
        ending = _hand_back(tables, job, outcome, now=now)
    record = Record(
        outcome.kind, outcome.started_at, outcome.finished_at, outcome.failure, outcome.log
    )
    state = end_lease(tables, lease, ending, record, now=now)
    note_body(job, outcome.kind)
    if state in TERMINAL:
        ended.append(job.id)
    if state is JobState.SUCCEEDED:
        job.output = outcome.output
    if outcome.tags is not None:
        job.tags = json.dumps({**json.loads(job.tags), **json.loads(outcome.tags)})
    return Reported(outcome.lease_id, Verdict.APPLIED, state)


def _hand_back(tables: Tables, job: JobRow, outcome: Outcome, *, now: datetime) -> Ending:
    """Let the job rest for another pump to find, until there is no hope of one."""
    job.unroutable_since = job.unroutable_since or now
    grace_is_over = now - job.unroutable_since >= tables.settings.unroutable_grace
    hopeless = outcome.unroutable is Unroutable.ARGUMENTS or not _is_known(tables, job, now=now)
    if grace_is_over and hopeless:
        return Ending(JobState.QUARANTINED, cause=Cause.UNROUTABLE)
    return Ending(outcome.state, outcome.due_at, outcome.cause)


def _is_known(tables: Tables, job: JobRow, *, now: datetime) -> bool:
    """Whether a live pump that serves the job's queue can run its type at its version."""
    return any(
        pump.is_live(now=now)
        and job.new.queue in pump.info.queues
        and (name, True) == (job.new.wire_name, version >= job.new.payload_version)
        for pump in tables.pumps.values()
        for name, version in pump.info.wire_names
    )
