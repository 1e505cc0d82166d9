"""Schedules: reading them, minting their ticks, and what code and people do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core import schedule_rows as rows
from backwave_django.core.contract import ActionResult, ScheduleAnswer
from backwave_django.core.memory.intake import enqueue
from backwave_django.core.memory.rows import ActionRow
from backwave_django.core.memory.tables import LIVE
from backwave_django.core.schedule_answers import (
    MintAnswer,
    MintResult,
    MintRow,
    SchedulesAnswer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import Actor
    from backwave_django.core.memory.tables import Tables
    from backwave_django.core.schedule_answers import DeclareMode, DeclareRow
    from backwave_django.core.schedule_rows import ScheduleRow
    from backwave_django.core.schedules import Decision, ScheduleSpec

_GONE = (ActionResult.GONE, "")


def load_schedules(tables: Tables, *, after: str, limit: int) -> SchedulesAnswer:
    """Return the next schedules that may mint; see the contract."""
    names = sorted(name for name, row in tables.schedules.items() if row.mints and name > after)
    return SchedulesAnswer(
        schedules=tuple(tables.schedules[name].loaded() for name in names[:limit]),
        full=len(names[:limit]) == limit,
        clock=tables.clock(),
    )


def mint(tables: Tables, decisions: Sequence[Decision], *, now: datetime) -> MintAnswer:
    """Apply decisions; see the contract."""
    answers = tuple(_mint(tables, decision, now=now) for decision in decisions)
    return MintAnswer(rows=answers, clock=tables.clock())


def declare_schedules(
    tables: Tables,
    specs: Sequence[ScheduleSpec],
    *,
    owner: str,
    release: int | None,
    mode: DeclareMode,
    now: datetime,
) -> tuple[DeclareRow, ...]:
    """Bring schedules in line with their declarations; see the contract."""
    changed, answers = rows.declare(
        tables.schedules, specs, owner=owner, release=release, mode=mode, now=now
    )
    tables.schedules.update(changed)
    return tuple(answers)


class ScheduleDesk:
    """The operator's side of schedules, for one actor at one instant."""

    def __init__(self, tables: Tables, *, actor: Actor, now: datetime) -> None:
        self._tables = tables
        self._actor = actor
        self._now = now

    def save(self, spec: ScheduleSpec) -> ScheduleAnswer:
        """Make or change a schedule that belongs to the database."""
        row = self._tables.schedules.get(spec.name)
        moved, result, detail = rows.saved(row, spec, now=self._now)
        if moved is not None:
            self._tables.schedules[spec.name] = moved
        action = "create" if row is None else "change"
        after = rows.view(moved or row)
        return self._told(action, spec.name, rows.view(row), after, (result, detail))

    def delete(self, name: str) -> ScheduleAnswer:
        """Delete a schedule."""
        row = self._tables.schedules.get(name)
        if row is None:
            return self._told("delete", name, {}, {}, _GONE)
        result, detail = rows.deletable(row)
        if result is ActionResult.DONE:
            del self._tables.schedules[name]
        after = rows.view(self._tables.schedules.get(name))
        return self._told("delete", name, rows.view(row), after, (result, detail))

    def trigger(self, name: str) -> ScheduleAnswer:
        """Make one job by hand."""
        row = self._tables.schedules.get(name)
        if row is None:
            return self._told("trigger", name, {}, {}, _GONE)
        result, detail = rows.triggerable(row, overlaps=_overlaps(self._tables, name))
        if result is not ActionResult.DONE:
            return self._told("trigger", name, {}, {}, (result, detail))
        job_id = _add_job(self._tables, row, tick=None, now=self._now)
        self._told("trigger", name, {}, {"job": str(job_id)}, (result, detail))
        return ScheduleAnswer(name=name, result=result, job_id=job_id)

    def pause(self, name: str) -> ScheduleAnswer:
        """Let a schedule mint nothing."""
        return self._switch("pause", name)

    def resume(self, name: str) -> ScheduleAnswer:
        """Let a schedule begin anew."""
        return self._switch("resume", name)

    def _switch(self, action: str, name: str) -> ScheduleAnswer:
        row = self._tables.schedules.get(name)
        if row is None:
            return self._told(action, name, {}, {}, _GONE)
        change = rows.paused(row) if action == "pause" else rows.resumed(row, now=self._now)
        moved, result, detail = change
        if moved is not None:
            self._tables.schedules[name] = moved
        enabled = self._tables.schedules[name].enabled
        views = {"enabled": row.enabled}, {"enabled": enabled}
        return self._told(action, name, *views, (result, detail))

    def _told(
        self,
        action: str,
        name: str,
        before: Mapping[str, object],
        after: Mapping[str, object],
        outcome: tuple[ActionResult, str],
    ) -> ScheduleAnswer:
        (result, detail), actor = outcome, self._actor
        row = ActionRow(
            self._now,
            actor.name,
            actor.source,
            actor.user_id,
            action,
            "schedule",
            name,
            actor.reason,
            before,
            after,
            result.value,
        )
        self._tables.actions.append(row)
        return ScheduleAnswer(name=name, result=result, detail=detail)


def _mint(tables: Tables, decision: Decision, *, now: datetime) -> MintRow:
    name = decision.name
    row = None if name in tables.held_schedules else tables.schedules.get(name)
    moved, result = rows.minted(
        row,
        decision,
        overlaps=_overlaps(tables, name),
        taken=_has_tick(tables, name, decision.tick),
    )
    if moved is None:
        return MintRow(name, result)
    tables.schedules[name] = moved
    if result is not MintResult.MINTED:
        return MintRow(name, result)
    return MintRow(name, result, _add_job(tables, moved, tick=decision.tick, now=now))


def _add_job(tables: Tables, row: ScheduleRow, *, tick: datetime | None, now: datetime) -> UUID:
    job_id = tables.ids()
    enqueue(tables, [row.job(job_id, tick=tick, now=now)])
    return job_id


def _overlaps(tables: Tables, name: str) -> bool:
    return any(
        job.new.schedule == name for state in LIVE for job in tables.by_state[state].values()
    )


def _has_tick(tables: Tables, name: str, tick: datetime | None) -> bool:
    return tick is not None and any(
        (job.new.schedule, job.new.scheduled_for) == (name, tick) for job in tables.jobs.values()
    )
