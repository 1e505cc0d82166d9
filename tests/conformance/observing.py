"""The visible state of a database's store, in the shape of the reference's snapshot."""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from backwave_django import models
from backwave_django.core.jobs import EdgeMode
from backwave_django.core.leases import PumpInfo
from backwave_django.core.memory import Snapshot
from backwave_django.core.memory.rows import ActionRow, LimitRow, WorkflowRow
from backwave_django.core.outcomes import Failure
from backwave_django.core.rates import rate_or_none
from backwave_django.core.schedule_rows import ScheduleRow
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.core.states import TERMINAL

Row = Mapping[str, Any]

_JOB = (
    *("wire_name", "queue", "payload", "payload_version", "limit_key", "unique_key"),
    *("workflow", "schedule", "scheduled_for", "trace", "created_at", "due_at", "deadline"),
    *("tags", "state", "run", "spent", "max_attempts", "output", "unroutable_since", "cause"),
    *("pending_parents", "terminal_at"),
)
_LEASE = (
    *("queue", "limit_key", "pump_id", "run", "acquired_at", "expires_at", "retry"),
    "cancel_requested",
)
_OUTCOME = (
    *("run", "attempt", "kind", "state", "cause", "pump_id", "started_at", "finished_at"),
    *("log", "next_due_at"),
)
_QUEUE = (
    *("paused", "paused_at", "paused_until", "paused_by", "pause_reason", "limit"),
    *("rate", "rate_full_at", "window", "limit_default", "rate_default", "window_default"),
)
_PUMP = (
    *("health", "problem", "executing", "abandoned", "succeeded", "failed", "memory_bytes"),
    *("drain_requested", "seen_at", "stopped_at"),
)
_SCHEDULE_SPEC = (
    *("name", "wire_name", "queue", "priority", "payload", "payload_version", "limit_key"),
    *("catch_up", "no_overlap"),
)
_SCHEDULE = (
    *("owner", "release", "enabled", "retired_at", "cursor", "next_at", "skipped"),
    *("last_skipped_at", "last_skip_reason", "problem", "created_at"),
)
_PUMP_INFO = (
    *("id", "group", "node", "hostname", "pid", "boot_id", "pid_namespace", "version"),
    *("pool_size", "started_at"),
)


def observe_database(using: str = "default") -> Snapshot:
    """Read every table."""
    jobs = {row["id"]: row for row in models.Job.objects.using(using).values()}
    edges = list(models.Dependency.objects.using(using).values())
    waiting = set(models.SettleQueue.objects.using(using).values_list("parent_id", flat=True))
    _check_live_keys(jobs.values())
    return Snapshot(
        jobs={
            job_id: _columns(row, _JOB) | {"priority": -row["priority"]}
            for job_id, row in jobs.items()
        },
        leases={row["job_id"]: _lease(row) for row in models.Lease.objects.using(using).values()},
        outcomes=_outcomes(using),
        edges={
            (row["parent_id"], row["child_id"]): (EdgeMode(row["mode"]), row["settled"])
            for row in edges
        },
        unsettled={
            row["parent_id"]
            for row in edges
            if row["parent_id"] in waiting
            and not row["settled"]
            and (row["parent_id"] not in jobs or jobs[row["parent_id"]]["state"] in TERMINAL)
        },
        queues={
            row["name"]: _columns(row, _QUEUE) for row in models.Queue.objects.using(using).values()
        },
        limits={
            row["key"]: limit
            for row in models.Limit.objects.using(using).values()
            if (limit := _limit(row)) != LimitRow(None, "code")
        },
        pumps={row["id"]: _pump(row) for row in models.Pump.objects.using(using).values()},
        actions=tuple(
            _action(row)
            for row in models.OperatorAction.objects.using(using).order_by("id").values()
        ),
        schedules={
            row["name"]: _schedule(row) for row in models.Schedule.objects.using(using).values()
        },
        workflows={
            row["id"]: _workflow(row) for row in models.Workflow.objects.using(using).values()
        },
    )


def _columns(row: Row, names: Iterable[str]) -> dict[str, object]:
    return {name: row[name] for name in names}


def _check_live_keys(jobs: Iterable[Row]) -> None:
    """The nullable copy of a unique key is there exactly while its job is live."""
    for row in jobs:
        live = None if row["state"] in TERMINAL else row["unique_key"]
        assert row["unique_live"] == live, f"unique_live of {row['id']}: {row['unique_live']!r}"


def _lease(row: Row) -> dict[str, object]:
    progress = None
    if row["progress_done"] is not None:
        progress = (row["progress_done"], row["progress_total"], row["progress_message"] or "")
    return _columns(row, _LEASE) | {"progress": progress}


def _limit(row: Row) -> LimitRow:
    return LimitRow(row["limit"], row["source"], rate_or_none(row["rate"]), row["rate_full_at"])


def _outcomes(using: str) -> dict[UUID, tuple[dict[str, object], ...]]:
    rows = models.Outcome.objects.using(using).order_by("job_id", "id").values()
    return {
        job_id: tuple(_columns(row, _OUTCOME) | {"failure": _failure(row)} for row in group)
        for job_id, group in groupby(rows, key=lambda row: row["job_id"])
    }


def _failure(row: Row) -> Failure | None:
    if row["error_class"] is None:
        return None
    detail = (row[name] or "" for name in ("message", "traceback", "fingerprint"))
    return Failure(row["error_class"], *detail)


def _pump(row: Row) -> dict[str, object]:
    info = PumpInfo(
        **_columns(row, _PUMP_INFO),  # type: ignore[arg-type]  # columns of one row
        queues=tuple(row["queues"]),
        wire_names=tuple(sorted(row["wire_names"].items())),
        lease_duration=timedelta(seconds=row["lease_seconds"]),
    )
    return _columns(row, _PUMP) | {"info": info}


def _schedule(row: Row) -> ScheduleRow:
    rule = Rule(**{name: row[name] for name in ("cron", "every_seconds", "timezone")})
    kept = {name: row[name] for name in _SCHEDULE_SPEC}
    spec = ScheduleSpec(rule=rule, tags=json.dumps(row["tags"] or {}), **kept)
    return ScheduleRow(spec=spec, **{name: row[name] for name in _SCHEDULE})


def _workflow(row: Row) -> WorkflowRow:
    steps = {name: UUID(job_id) for name, job_id in row["steps"].items()}
    return WorkflowRow(
        name=row["name"], created_at=row["created_at"], size=row["size"], steps=steps
    )


def _action(row: Row) -> ActionRow:
    user_id = None if row["actor_id"] is None else str(row["actor_id"])
    names = ("action", "target_kind", "target", "reason", "before", "after", "result")
    return ActionRow(
        row["at"], row["actor_name"], row["source"], user_id, *(row[name] for name in names)
    )
