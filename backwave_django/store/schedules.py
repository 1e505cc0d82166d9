"""What code declares of schedules, and what people do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core import schedule_rows
from backwave_django.core.contract import ActionResult, ScheduleAnswer
from backwave_django.store.audit import Audit
from backwave_django.store.minting import add_jobs, overlapping_schedules
from backwave_django.store.scheduling import (
    insert_schedule,
    lock_schedules,
    remove_schedule,
    update_schedules,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backwave_django.core.contract import Actor
    from backwave_django.core.schedule_answers import DeclareMode, DeclareRow
    from backwave_django.core.schedule_rows import ScheduleRow
    from backwave_django.core.schedules import ScheduleSpec
    from backwave_django.store.room import Room

_GONE = (ActionResult.GONE, "")


def declare_schedules(
    room: Room,
    specs: Sequence[ScheduleSpec],
    *,
    owner: str,
    release: int | None,
    mode: DeclareMode,
    now: datetime,
) -> tuple[DeclareRow, ...]:
    """Bring schedules in line with their declarations; see ``Store.declare_schedules``."""
    with room.executor.transaction():
        rows = lock_schedules(room, [spec.name for spec in specs], owner=owner)
        changed, answers = schedule_rows.declare(
            rows, specs, owner=owner, release=release, mode=mode, now=now
        )
        update_schedules(room, [row for name, row in sorted(changed.items()) if name in rows])
        for name, row in sorted(changed.items()):
            if name not in rows:
                # Pumps that start together make the same rows: the first of them wins.
                insert_schedule(room, row)
    return tuple(answers)


class ScheduleDesk:
    """The operator's side of schedules, for one actor at one instant. Waits for row locks."""

    def __init__(self, room: Room, *, actor: Actor, now: datetime) -> None:
        self._room = room
        self._actor = actor
        self._now = now

    def save(self, spec: ScheduleSpec) -> ScheduleAnswer:
        """Make or change a schedule; see ``Store.save_schedule``."""
        with self._room.executor.transaction():
            row = self._locked(spec.name)
            moved, result, detail = schedule_rows.saved(row, spec, now=self._now)
            if moved is not None and row is not None:
                update_schedules(self._room, [moved])
            elif moved is not None and not insert_schedule(self._room, moved):
                moved, result, detail = None, ActionResult.CONFLICT, "the name was just taken"
            after = schedule_rows.view(moved or row)
            action = "create" if row is None else "change"
            before = schedule_rows.view(row)
            return self._told(action, spec.name, before, after, (result, detail))

    def delete(self, name: str) -> ScheduleAnswer:
        """Delete a schedule; see ``Store.delete_schedule``."""
        with self._room.executor.transaction():
            row = self._locked(name)
            if row is None:
                return self._told("delete", name, {}, {}, _GONE)
            result, detail = schedule_rows.deletable(row)
            before = after = schedule_rows.view(row)
            if result is ActionResult.DONE:
                remove_schedule(self._room, name)
                after = {}
            return self._told("delete", name, before, after, (result, detail))

    def trigger(self, name: str) -> ScheduleAnswer:
        """Make one job by hand; see ``Store.trigger_schedule``."""
        with self._room.executor.transaction():
            row = self._locked(name)
            if row is None:
                return self._told("trigger", name, {}, {}, _GONE)
            overlaps = bool(overlapping_schedules(self._room, [name]))
            outcome = schedule_rows.triggerable(row, overlaps=overlaps)
            if outcome[0] is not ActionResult.DONE:
                return self._told("trigger", name, {}, {}, outcome)
            job = row.job(self._room.new_id(), tick=None, now=self._now)
            add_jobs(self._room, [job])
            self._told("trigger", name, {}, {"job": str(job.id)}, outcome)
            return ScheduleAnswer(name=name, result=outcome[0], job_id=job.id)

    def pause(self, name: str) -> ScheduleAnswer:
        """Let a schedule mint nothing; see ``Store.pause_schedule``."""
        return self._switch("pause", name)

    def resume(self, name: str) -> ScheduleAnswer:
        """Let a schedule begin anew; see ``Store.resume_schedule``."""
        return self._switch("resume", name)

    def _switch(self, action: str, name: str) -> ScheduleAnswer:
        with self._room.executor.transaction():
            row = self._locked(name)
            if row is None:
                return self._told(action, name, {}, {}, _GONE)
            change = (
                schedule_rows.paused(row)
                if action == "pause"
                else schedule_rows.resumed(row, now=self._now)
            )
            moved, result, detail = change
            if moved is not None:
                update_schedules(self._room, [moved])
            views = {"enabled": row.enabled}, {"enabled": (moved or row).enabled}
            return self._told(action, name, *views, (result, detail))

    def _locked(self, name: str) -> ScheduleRow | None:
        return lock_schedules(self._room, [name]).get(name)

    def _told(
        self,
        action: str,
        name: str,
        before: Mapping[str, object],
        after: Mapping[str, object],
        outcome: tuple[ActionResult, str],
    ) -> ScheduleAnswer:
        """Write the audit row, and return the answer."""
        result, detail = outcome
        audit = Audit(self._room, self._actor, self._now)
        audit.note(action, ("schedule", name), before, after, result)
        audit.write()
        return ScheduleAnswer(name=name, result=result, detail=detail)
