"""Operator actions: each is a compare-and-set, and each leaves a row in the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.contract import ActionAnswer, ActionResult
from backwave_django.core.dependencies import birth, is_dead, is_over, parents_first
from backwave_django.core.limits import UNLIMITED, checked_number, source_of
from backwave_django.core.memory.endings import settle
from backwave_django.core.memory.rows import ActionRow, LimitRow
from backwave_django.core.rates import rate_view
from backwave_django.core.states import CANCELLABLE, REQUEUEABLE, Cause, JobState
from backwave_django.core.windows import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.contract import Actor
    from backwave_django.core.limits import Cap
    from backwave_django.core.memory.rows import JobRow, QueueRow
    from backwave_django.core.memory.tables import Tables
    from backwave_django.core.rates import Rate


class Desk:
    """The operator's side of the store, for one actor at one instant."""

    def __init__(self, tables: Tables, *, actor: Actor, now: datetime) -> None:
        self._tables = tables
        self._actor = actor
        self._now = now

    def cancel(self, job_ids: Sequence[UUID]) -> tuple[ActionAnswer, ...]:
        """Cancel what waits, ask what runs; dependents settle after all of them."""
        answers = self._each("cancel", job_ids, self._cancel)
        done = [a.job_id for a in answers.values() if a.result is ActionResult.DONE]
        settle(self._tables, done, now=self._now)
        return tuple(answers[job_id] for job_id in job_ids)

    def requeue(self, job_ids: Sequence[UUID]) -> tuple[ActionAnswer, ...]:
        """Bring jobs back, parents before their children."""
        parents = {job_id: tuple(self._tables.parents.get(job_id, ())) for job_id in job_ids}
        answers = self._each("requeue", parents_first(job_ids, parents=parents), self._requeue)
        return tuple(answers[job_id] for job_id in job_ids)

    def run_now(self, job_ids: Sequence[UUID]) -> tuple[ActionAnswer, ...]:
        """Make scheduled jobs due."""
        answers = self._each("run_now", job_ids, self._run_now)
        return tuple(answers[job_id] for job_id in job_ids)

    def pause(self, queue: str, *, until: datetime | None) -> None:
        """Stop claims from a queue."""
        row = self._tables.queue(queue)
        before = _pause_view(row)
        row.paused, row.paused_at, row.paused_until = True, self._now, until
        row.paused_by, row.pause_reason = self._actor.name, self._actor.reason
        self._audit("pause", ("queue", queue), before, _pause_view(row))

    def resume(self, queue: str) -> None:
        """Let a queue be claimed again."""
        row = self._tables.queue(queue)
        before = _pause_view(row)
        row.paused, row.paused_at, row.paused_until = False, None, None
        row.paused_by, row.pause_reason = None, None
        self._audit("resume", ("queue", queue), before, _pause_view(row))

    def set_queue_limit(self, queue: str, limit: int | None) -> None:
        """Cap a queue."""
        checked_number(limit)
        row = self._tables.queue(queue)
        before, row.limit = row.limit, limit
        self._audit("set_limit", ("queue", queue), {"limit": before}, {"limit": limit})

    def set_queue_rate(self, queue: str, rate: Rate | None) -> None:
        """Let a queue start so many jobs in a period."""
        row = self._tables.queue(queue)
        before, row.rate = row.rate, rate
        self._audit("set_rate", ("queue", queue), rate_view(before), rate_view(rate))

    def set_window(self, queue: str, window: str | None) -> None:
        """Serve a queue at some times only."""
        after = None if window is None else str(Window.parse(window))
        row = self._tables.queue(queue)
        before, row.window = row.window, after
        self._audit("set_window", ("queue", queue), {"window": before}, {"window": after})

    def set_limit(self, key: str, limit: int | None) -> None:
        """Cap a limit key."""
        checked_number(limit)
        before = self._choose(key, lambda cap: cap._replace(number=limit))
        view = {"limit": before.number}, {"limit": limit}
        self._audit("set_limit", ("limit_key", key), *view)

    def set_rate(self, key: str, rate: Rate | None) -> None:
        """Let so many jobs under a limit key start in a period."""
        before = self._choose(key, lambda cap: cap._replace(rate=rate))
        view = rate_view(before.rate), rate_view(rate)
        self._audit("set_rate", ("limit_key", key), *view)

    def _choose(self, key: str, change: Callable[[Cap], Cap]) -> Cap:
        """Make the numbers of a key an operator's; one that has none left is forgotten."""
        limits = self._tables.limits
        row = limits.get(key, LimitRow(None, source_of(key)))
        cap = change(row.cap)
        if cap == UNLIMITED:
            limits.pop(key, None)
        else:
            limits[key] = LimitRow(cap.number, source_of(key), cap.rate, row.rate_full_at)
        return row.cap

    def request_drain(self, pump_id: UUID) -> bool:
        """Ask a live pump to drain."""
        pump = self._tables.pumps.get(pump_id)
        target = ("pump", str(pump_id))
        if pump is None or not pump.is_live(now=self._now):
            self._audit("drain", target, {}, {}, ActionResult.GONE)
            return False
        before = {"drain_requested": pump.drain_requested}
        pump.drain_requested = True
        self._audit("drain", target, before, {"drain_requested": True})
        return True

    def _each(
        self,
        action: str,
        job_ids: Iterable[UUID],
        act: Callable[[JobRow], tuple[ActionResult, str]],
    ) -> dict[UUID, ActionAnswer]:
        """Do one thing to each job, once, and audit it whatever came of it."""
        answers: dict[UUID, ActionAnswer] = {}
        for job_id in dict.fromkeys(job_ids):
            job = self._tables.jobs.get(job_id)
            before = _job_view(action, job)
            result, detail = (ActionResult.GONE, "") if job is None else act(job)
            state = self._tables.state_of(job_id)
            answers[job_id] = ActionAnswer(job_id=job_id, result=result, state=state, detail=detail)
            target = ("job", str(job_id))
            self._audit(action, target, before, _job_view(action, job), result)
        return answers

    def _cancel(self, job: JobRow) -> tuple[ActionResult, str]:
        if job.state in CANCELLABLE:
            tables, now = self._tables, self._now
            tables.end_waiting(job, JobState.CANCELLED, cause=Cause.OPERATOR, at=now)
            return ActionResult.DONE, ""
        lease = self._tables.lease_of.get(job.id)
        if lease is None:
            return _refused(job, "cancelled")
        lease.cancel_requested = True
        return ActionResult.REQUESTED, "it runs; its body was asked to stop"

    def _requeue(self, job: JobRow) -> tuple[ActionResult, str]:
        if job.state not in REQUEUEABLE:
            return _refused(job, "requeued")
        edges = list(self._tables.parents.get(job.id, {}).values())
        states = {edge.parent: self._tables.state_of(edge.parent) for edge in edges}
        failed = [str(e.parent) for e in edges if is_dead(e.mode, states[e.parent])]
        if failed:
            return ActionResult.REFUSED, f"requeue its parent first: {', '.join(sorted(failed))}"
        key = job.new.unique_key
        holder = None if key is None else self._tables.live_keys.get(key)
        if holder is not None:
            return ActionResult.CONFLICT, f"job {holder} holds its unique key"
        for edge in edges:
            edge.settled = is_over(states[edge.parent])
        born = birth((edge.mode, states[edge.parent]) for edge in edges)
        self._tables.move(job, born.state, at=self._now)
        job.pending_parents = born.pending
        job.spent, job.due_at, job.deadline, job.unroutable_since = 0, self._now, None, None
        return ActionResult.DONE, ""

    def _run_now(self, job: JobRow) -> tuple[ActionResult, str]:
        if job.state is not JobState.SCHEDULED:
            return _refused(job, "made due")
        job.due_at = min(job.due_at, self._now)
        return ActionResult.DONE, ""

    def _audit(
        self,
        action: str,
        target: tuple[str, str],
        before: Mapping[str, object],
        after: Mapping[str, object],
        result: ActionResult = ActionResult.DONE,
    ) -> None:
        actor = self._actor
        self._tables.actions.append(
            ActionRow(
                self._now,
                actor.name,
                actor.source,
                actor.user_id,
                action,
                *target,
                actor.reason,
                before,
                after,
                result.value,
            )
        )


def _refused(job: JobRow, what: str) -> tuple[ActionResult, str]:
    return ActionResult.REFUSED, f"a job that is {job.state} cannot be {what}"


def _job_view(action: str, job: JobRow | None) -> dict[str, object]:
    if job is None:
        return {}
    view: dict[str, object] = {"state": str(job.state)}
    if action == "run_now":
        view["due_at"] = job.due_at.isoformat()
    return view


def _pause_view(row: QueueRow) -> dict[str, object]:
    until = None if row.paused_until is None else row.paused_until.isoformat()
    return {"paused": row.paused, "until": until}
