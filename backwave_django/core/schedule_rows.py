"""What may become of the row of a schedule. Stores lock a row, ask here, and write what it says."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from backwave_django.core.bounds import MAX_PRIORITY, MIN_PRIORITY
from backwave_django.core.contract import ActionResult
from backwave_django.core.jobs import NewJob
from backwave_django.core.schedule_answers import (
    DeclareMode,
    DeclareResult,
    DeclareRow,
    MintResult,
)
from backwave_django.core.schedules import LoadedSchedule, ScheduleSpec, SkipReason, first_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.schedules import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """One schedule as it is kept. ``owner`` of ``None``: made by a person, not by code."""

    spec: ScheduleSpec
    created_at: datetime
    owner: str | None = None
    release: int | None = None
    enabled: bool = True
    retired_at: datetime | None = None
    cursor: datetime | None = None
    next_at: datetime | None = None
    skipped: int = 0
    last_skipped_at: datetime | None = None
    last_skip_reason: str | None = None
    problem: str = ""

    @property
    def mints(self) -> bool:
        """Whether its ticks make jobs at all."""
        return self.enabled and self.retired_at is None

    def loaded(self) -> LoadedSchedule:
        """Return what a pump has to know of it."""
        return LoadedSchedule(
            name=self.spec.name,
            rule=self.spec.rule,
            wire_name=self.spec.wire_name,
            payload_version=self.spec.payload_version,
            catch_up=self.spec.catch_up,
            cursor=self.cursor,
            next_at=self.next_at,
            created_at=self.created_at,
            problem=self.problem,
        )

    def job(self, job_id: UUID, *, tick: datetime | None, now: datetime) -> NewJob:
        """Return the job of a tick, or one that was asked for by hand."""
        spec = self.spec
        return NewJob(
            id=job_id,
            wire_name=spec.wire_name,
            queue=spec.queue,
            payload=spec.payload,
            payload_version=spec.payload_version,
            # Anything may have been written into the row; the job's column holds less.
            priority=max(MIN_PRIORITY, min(spec.priority, MAX_PRIORITY)),
            due_at=now,
            tags=spec.tags,
            limit_key=spec.limit_key,
            schedule=spec.name,
            scheduled_for=tick,
        )


def minted(
    row: ScheduleRow | None, decision: Decision, *, overlaps: bool, taken: bool
) -> tuple[ScheduleRow | None, MintResult]:
    """Apply a decision to a locked row: the row anew, or ``None`` to leave it alone.

    ``overlaps``: a job of the schedule is not over. ``taken``: the tick has its job already.
    """
    if row is None or not row.mints or not _as_seen(row, decision.seen):
        return None, MintResult.STALE
    moved = replace(
        row,
        cursor=decision.cursor,
        next_at=decision.next_at,
        problem=decision.problem,
        skipped=row.skipped + decision.skipped,
    )
    if decision.skipped_at is not None:
        moved = _skipped(moved, decision.skipped_at, SkipReason.MISSED)
    if decision.tick is None or taken:
        return moved, MintResult.NOTED
    if row.spec.no_overlap and overlaps:
        moved = replace(moved, skipped=moved.skipped + 1)
        return _skipped(moved, decision.tick, SkipReason.OVERLAP), MintResult.OVERLAPPED
    return moved, MintResult.MINTED


def declared(
    row: ScheduleRow | None,
    spec: ScheduleSpec,
    *,
    owner: str,
    release: int | None,
    mode: DeclareMode,
    now: datetime,
) -> tuple[ScheduleRow | None, DeclareRow]:
    """Bring a row in line with its declaration: the row anew, or ``None`` to leave it alone."""
    if row is None:
        made = ScheduleRow(spec=spec, owner=owner, release=release, created_at=now)
        return begun(made, now=now), DeclareRow(spec.name, DeclareResult.CREATED)
    if row.owner != owner:
        whose = "a person made it" if row.owner is None else f"it belongs to {row.owner!r}"
        return None, DeclareRow(spec.name, DeclareResult.REFUSED, whose)
    differs = differences(row, spec)
    if mode is DeclareMode.CREATE:
        result = DeclareResult.DRIFTED if differs else DeclareResult.UNCHANGED
        return None, DeclareRow(spec.name, result, ", ".join(differs))
    result = DeclareResult.UPDATED if differs else DeclareResult.UNCHANGED
    moved = replace(row, spec=spec, release=release, retired_at=None)
    if row.spec.rule != spec.rule or row.retired_at is not None:
        moved = begun(moved, now=now)
    return moved, DeclareRow(spec.name, result, ", ".join(differs))


def declare(
    rows: Mapping[str, ScheduleRow],
    specs: Iterable[ScheduleSpec],
    *,
    owner: str,
    release: int | None,
    mode: DeclareMode,
    now: datetime,
) -> tuple[dict[str, ScheduleRow], list[DeclareRow]]:
    """Bring all of an owner's schedules in line: the rows to write, and an answer for each.

    ``rows`` are those that the specs name and those of the owner.
    """
    newest = max((row.release or 0 for row in rows.values() if row.owner == owner), default=0)
    outdated = release is not None and newest > release and mode is not DeclareMode.CREATE
    changed: dict[str, ScheduleRow] = {}
    answers: list[DeclareRow] = []
    for spec in specs:
        row = rows.get(spec.name)
        if row is not None and outdated:
            detail = f"release {newest} has written it"
            answers.append(DeclareRow(spec.name, DeclareResult.REFUSED, detail))
            continue
        moved, answer = declared(row, spec, owner=owner, release=release, mode=mode, now=now)
        answers.append(answer)
        if moved is not None:
            changed[spec.name] = moved
    if mode is DeclareMode.SYNC and not outdated:
        kept = {answer.name for answer in answers}
        for name, row in sorted(rows.items()):
            if row.owner == owner and row.retired_at is None and name not in kept:
                changed[name] = replace(row, release=release, retired_at=now)
                answers.append(DeclareRow(name, DeclareResult.RETIRED))
    return changed, answers


def differences(row: ScheduleRow, spec: ScheduleSpec) -> list[str]:
    """Return the names of what a row and its declaration disagree about."""
    found = [
        name
        for name in (each.name for each in fields(ScheduleSpec))
        if _comparable(row.spec, name) != _comparable(spec, name)
    ]
    return [*found, "retired"] if row.retired_at is not None else found


def saved(
    row: ScheduleRow | None, spec: ScheduleSpec, *, now: datetime
) -> tuple[ScheduleRow | None, ActionResult, str]:
    """Make or change a schedule for a person: the row anew, or ``None`` to leave it alone."""
    if row is None:
        made = ScheduleRow(spec=spec, created_at=now)
        return begun(made, now=now), ActionResult.DONE, ""
    if row.owner is not None:
        return None, ActionResult.REFUSED, "it is declared in code: change it there"
    moved = replace(row, spec=spec)
    return (
        begun(moved, now=now) if row.spec.rule != spec.rule else moved,
        ActionResult.DONE,
        "",
    )


def paused(row: ScheduleRow) -> tuple[ScheduleRow | None, ActionResult, str]:
    """Let a schedule mint nothing."""
    if row.retired_at is not None:
        return None, ActionResult.REFUSED, "it is retired"
    if not row.enabled:
        return None, ActionResult.REFUSED, "it is paused already"
    return replace(row, enabled=False), ActionResult.DONE, ""


def resumed(row: ScheduleRow, *, now: datetime) -> tuple[ScheduleRow | None, ActionResult, str]:
    """Let a schedule begin anew from now."""
    if row.retired_at is not None:
        return None, ActionResult.REFUSED, "it is retired"
    if row.enabled:
        return None, ActionResult.REFUSED, "it is not paused"
    return begun(replace(row, enabled=True), now=now), ActionResult.DONE, ""


def triggerable(row: ScheduleRow, *, overlaps: bool) -> tuple[ActionResult, str]:
    """Tell whether a job may be made by hand."""
    if row.retired_at is not None:
        return ActionResult.REFUSED, "it is retired"
    if row.spec.no_overlap and overlaps:
        return ActionResult.CONFLICT, "a job of it is not over yet, and its jobs never overlap"
    return ActionResult.DONE, ""


def deletable(row: ScheduleRow) -> tuple[ActionResult, str]:
    """Tell whether a schedule may be deleted: a starting pump would only make it again."""
    if row.owner is not None and row.retired_at is None:
        return ActionResult.REFUSED, "it is declared in code: remove it there"
    return ActionResult.DONE, ""


def begun(row: ScheduleRow, *, now: datetime) -> ScheduleRow:
    """Begin anew from now: nothing before it was missed. A rule that cannot work is a problem."""
    try:
        next_at = first_plan(row.spec.rule, created_at=row.created_at, now=now)
    except ValueError as error:
        return replace(row, cursor=now, next_at=None, problem=str(error))
    return replace(row, cursor=now, next_at=next_at, problem="")


def view(row: ScheduleRow | None) -> Mapping[str, object]:
    """Return what the audit keeps of a schedule that a person makes, changes or deletes."""
    if row is None:
        return {}
    spec = row.spec
    return {
        "cron": spec.rule.cron,
        "every_seconds": spec.rule.every_seconds,
        "timezone": spec.rule.timezone,
        "wire_name": spec.wire_name,
        "queue": spec.queue,
        "priority": spec.priority,
        "catch_up": str(spec.catch_up),
        "no_overlap": spec.no_overlap,
        "enabled": row.enabled,
    }


def _as_seen(row: ScheduleRow, seen: LoadedSchedule) -> bool:
    return (row.cursor, row.next_at, row.spec.rule) == (seen.cursor, seen.next_at, seen.rule)


def _skipped(row: ScheduleRow, tick: datetime, reason: SkipReason) -> ScheduleRow:
    return replace(row, last_skipped_at=tick, last_skip_reason=reason.value)


def _comparable(spec: ScheduleSpec, name: str) -> object:
    value: object = getattr(spec, name)
    return json.loads(spec.tags) if name == "tags" else value
