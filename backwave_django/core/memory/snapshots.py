"""The whole visible state of the reference store as one value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backwave_django.core.dependencies import is_over
from backwave_django.core.limits import CODE
from backwave_django.core.memory.rows import LimitRow, Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backwave_django.core.memory.rows import JobRow, LeaseRow, OutcomeRow, PumpRow, QueueRow
    from backwave_django.core.memory.tables import Tables


def snapshot(tables: Tables) -> Snapshot:
    """Return what anybody could see now; later changes leave the value alone."""
    edges = [edge for by_child in tables.children.values() for edge in by_child.values()]
    return Snapshot(
        jobs={job.id: _job(job) for job in tables.jobs.values()},
        leases={lease.job_id: _lease(lease) for lease in tables.leases.values()},
        outcomes={
            job_id: tuple(map(_outcome, rows)) for job_id, rows in tables.outcomes.items() if rows
        },
        edges={(edge.parent, edge.child): (edge.mode, edge.settled) for edge in edges},
        unsettled={
            parent
            for parent in tables.settle_queue
            if is_over(tables.state_of(parent)) and tables.open_edges(parent)
        },
        queues={name: _queue(row) for name, row in tables.queues.items()},
        limits={key: row for key, row in tables.limits.items() if row != LimitRow(None, CODE)},
        pumps={pump_id: _pump(row) for pump_id, row in tables.pumps.items()},
        actions=tuple(tables.actions),
        schedules=dict(tables.schedules),
        workflows=dict(tables.workflows),
    )


def _job(job: JobRow) -> Mapping[str, object]:
    new = job.new
    return {
        "wire_name": new.wire_name,
        "queue": new.queue,
        "priority": new.priority,
        "payload": new.payload,
        "payload_version": new.payload_version,
        "limit_key": new.limit_key,
        "unique_key": new.unique_key,
        "workflow": new.workflow,
        "schedule": new.schedule,
        "scheduled_for": new.scheduled_for,
        "trace": new.trace,
        "created_at": job.created_at,
        "due_at": job.due_at,
        "deadline": job.deadline,
        "tags": json.loads(job.tags),
        "state": job.state,
        "run": job.run,
        "spent": job.spent,
        "max_attempts": job.max_attempts,
        "output": job.output,
        "unroutable_since": job.unroutable_since,
        "cause": job.cause,
        "pending_parents": job.pending_parents,
        "terminal_at": job.terminal_at,
    }


def _lease(lease: LeaseRow) -> Mapping[str, object]:
    return {
        "queue": lease.queue,
        "limit_key": lease.limit_key,
        "pump_id": lease.pump_id,
        "run": lease.run,
        "acquired_at": lease.acquired_at,
        "expires_at": lease.expires_at,
        "retry": lease.retry,
        "cancel_requested": lease.cancel_requested,
        "progress": lease.progress,
    }


def _outcome(row: OutcomeRow) -> Mapping[str, object]:
    return {
        "run": row.run,
        "attempt": row.attempt,
        "kind": row.kind,
        "state": row.state,
        "cause": row.cause,
        "pump_id": row.pump_id,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "failure": row.failure,
        "log": row.log,
        "next_due_at": row.next_due_at,
    }


def _queue(row: QueueRow) -> Mapping[str, object]:
    return {
        "paused": row.paused,
        "paused_at": row.paused_at,
        "paused_until": row.paused_until,
        "paused_by": row.paused_by,
        "pause_reason": row.pause_reason,
        "limit": row.limit,
        "rate": None if row.rate is None else str(row.rate),
        "rate_full_at": row.rate_full_at,
        "window": row.window,
        "limit_default": row.limit_default,
        "rate_default": None if row.rate_default is None else str(row.rate_default),
        "window_default": row.window_default,
    }


def _pump(row: PumpRow) -> Mapping[str, object]:
    return {
        "info": row.info,
        "health": row.health,
        "problem": row.problem,
        "executing": row.status.executing,
        "abandoned": row.status.abandoned,
        "succeeded": row.status.succeeded,
        "failed": row.status.failed,
        "memory_bytes": row.status.memory_bytes,
        "drain_requested": row.drain_requested,
        "seen_at": row.seen_at,
        "stopped_at": row.stopped_at,
    }
