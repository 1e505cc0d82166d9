"""Applying outcomes row by row: SQLite has one writer at a time and no round trips."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.contract import History
from backwave_django.core.outcomes import BODILESS, Reported, Unroutable, Verdict
from backwave_django.core.states import TERMINAL, Cause, JobState
from backwave_django.store.applied import Applied, Fence, detail
from backwave_django.store.endings import APPEND
from backwave_django.store.names import Statement
from backwave_django.store.registry import knows_live

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.core.outcomes import Outcome
    from backwave_django.store.room import Room

_HELD: Final = Statement(
    """
SELECT l.id, l.job_id, l.cancel_requested, l.pump_id, l.run, j.queue, j.wire_name,
  j.payload_version, j.unroutable_since, j.spent, j.tags, l.expires_at,
  EXISTS (SELECT 1 FROM {edge} d WHERE d.parent_id = l.job_id AND {open:d})
FROM {lease} l JOIN {job} j ON j.id = l.job_id WHERE l.id {any:leases}
"""
)
_RELEASE: Final = Statement("DELETE FROM {lease} WHERE id {any:leases}")
_SUCCEED: Final = Statement(
    """
UPDATE {job} SET state = %(state)s, cause = %(cause)s, spent = spent + %(spends)s,
  due_at = COALESCE(%(due)s, due_at), terminal_at = %(terminal_at)s,
  unique_live = CASE WHEN %(terminal_at)s IS NULL THEN unique_live ELSE NULL END,
  output = CASE WHEN %(state)s = 'succeeded' THEN %(output)s ELSE output END,
  tags = %(tags)s, unroutable_since = %(unroutable_since)s
WHERE id = %(job)s
"""
)


def apply_one_by_one(
    room: Room, outcomes: Sequence[Outcome], *, fence: Fence, now: datetime
) -> tuple[list[Applied], datetime]:
    """Apply what the fences let through; answer every row in order, with the clock."""
    executor = room.executor
    values = executor.values
    found = executor.fetch(_HELD, {"leases": [outcome.lease_id for outcome in outcomes]})
    held = {
        values.uuid(row[0]): row
        for row in found
        if fence.lapsed_by is None or values.instant(row[11]) <= fence.lapsed_by
    }
    answers, updates, history = [], [], []
    for outcome in outcomes:
        row = held.get(outcome.lease_id)
        if row is None:
            answers.append(_refused(room, outcome, found))
            continue
        change, line = _changes(room, outcome, row, fence=fence, now=now)
        updates.append(change)
        history.append(line)
        final = JobState(str(change["state"]))
        reported = Reported(outcome.lease_id, Verdict.APPLIED, final)
        answers.append(Applied(outcome.job_id, reported, bool(final in TERMINAL and row[12])))
    executor.execute(_RELEASE, {"leases": list(held)})
    executor.execute_many(_SUCCEED, updates)
    if room.settings.history is not History.OFF:
        executor.execute_many(APPEND, history)
    return answers, room.clock()


def _refused(room: Room, outcome: Outcome, found: Sequence[tuple[Any, ...]]) -> Applied:
    """A lease that is gone is stale; one that no longer meets its fence is left alone."""
    exists = any(room.executor.values.uuid(row[0]) == outcome.lease_id for row in found)
    verdict = Verdict.BUSY if exists else Verdict.STALE
    return Applied(outcome.job_id, Reported(outcome.lease_id, verdict))


def _changes(
    room: Room, outcome: Outcome, row: tuple[Any, ...], *, fence: Fence, now: datetime
) -> tuple[dict[str, object], dict[str, object]]:
    """Return what to write to the job, and the line of its history."""
    since = _unroutable_since(room, outcome, row, fence=fence, now=now)
    state, cause = _verdict(room, outcome, row, since, now=now)
    over = state in TERMINAL
    due_at = None if over else outcome.due_at or now
    change = {
        "job": row[1],
        "state": state.value,
        "cause": cause and cause.value,
        "spends": int(outcome.spends),
        "due": due_at,
        "terminal_at": now if over else None,
        "output": outcome.output,
        "tags": _united(row[10], outcome.tags),
        "unroutable_since": since,
    }
    error_class, message, traceback, fingerprint, log = detail(outcome, room.settings.history)
    line = {
        "job": row[1],
        "run": row[4],
        "attempt": row[9] + 1,
        "kind": outcome.kind.value,
        "state": state.value,
        "cause": cause and cause.value,
        "pump": row[3],
        "started": outcome.started_at,
        "finished": outcome.finished_at,
        "error_class": error_class,
        "message": message,
        "traceback": traceback,
        "fingerprint": fingerprint,
        "log": log,
        "next_due": due_at,
    }
    return change, line


def _unroutable_since(
    room: Room, outcome: Outcome, row: tuple[Any, ...], *, fence: Fence, now: datetime
) -> datetime | None:
    known = room.executor.values.instant_or_none(row[8])
    if outcome.unroutable is not None:
        return known or now
    return known if fence.keeps_clock or outcome.kind in BODILESS else None


def _verdict(
    room: Room, outcome: Outcome, row: tuple[Any, ...], since: datetime | None, *, now: datetime
) -> tuple[JobState, Cause | None]:
    if outcome.state is JobState.SUCCEEDED:
        return outcome.state, outcome.cause
    if row[2]:
        return JobState.CANCELLED, Cause.OPERATOR
    if outcome.unroutable is None or outcome.state is not JobState.SCHEDULED:
        return outcome.state, outcome.cause
    assert since is not None
    if now - since < room.settings.unroutable_grace:
        return outcome.state, None
    known = outcome.unroutable is not Unroutable.ARGUMENTS and knows_live(
        room, queue=row[5], wire_name=row[6], version=row[7], now=now
    )
    return (outcome.state, None) if known else (JobState.QUARANTINED, Cause.UNROUTABLE)


def _united(tags: str | dict[str, Any], more: str | None) -> str:
    """Merge a JSON object into stored tags; what comes later wins."""
    if more is None:
        return tags if isinstance(tags, str) else json.dumps(tags)
    known = json.loads(tags) if isinstance(tags, str) else tags
    return json.dumps({**known, **json.loads(more)})
