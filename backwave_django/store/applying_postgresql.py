"""Applying a batch of outcomes in one statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from backwave_django.core.contract import History
from backwave_django.core.outcomes import Reported, Verdict
from backwave_django.core.states import JobState
from backwave_django.store.applied import Applied, Fence, detail
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from backwave_django.core.outcomes import Outcome
    from backwave_django.store.room import Room

# Three steps, so that nothing is applied in part: take the leases that can be had, take their
# jobs that can be had, and let go of the leases of which both were had. ``released`` re-reads
# the lease, so that a cancellation that was requested meanwhile is seen.
# The statement is planned once, and perhaps while the tables are empty. So each step is written
# to leave one way only: from the given rows, one by one, to the table's row by its key.
_FENCE: Final = """
WITH input AS MATERIALIZED (
  SELECT * FROM unnest(%(lease_ids)s::uuid[], %(job_ids)s::uuid[], %(kinds)s::text[],
    %(states)s::text[], %(causes)s::text[], %(due)s::timestamptz[], %(outputs)s::text[],
    %(tags)s::text[], %(started)s::timestamptz[], %(finished)s::timestamptz[],
    %(error_classes)s::text[], %(messages)s::text[], %(tracebacks)s::text[],
    %(fingerprints)s::text[], %(logs)s::text[], %(unroutables)s::text[]) WITH ORDINALITY
    AS i(lease_id, job_id, kind, state, cause, due_at, output, tags, started_at, finished_at,
      error_class, message, traceback, fingerprint, log, unroutable, ord)),
held AS MATERIALIZED (
  SELECT h.id, h.job_id FROM (SELECT i.lease_id FROM input i ORDER BY i.lease_id) o
  CROSS JOIN LATERAL (
    SELECT l.id, l.job_id FROM {lease} l WHERE l.id = o.lease_id
      AND (%(lapsed_by)s::timestamptz IS NULL OR l.expires_at <= %(lapsed_by)s::timestamptz)
    FOR UPDATE SKIP LOCKED) h),
free AS MATERIALIZED (
  SELECT f.*, o.lease_id FROM (SELECT h.job_id, h.id AS lease_id FROM held h ORDER BY h.job_id) o
  CROSS JOIN LATERAL (
    SELECT j.id, j.queue, j.wire_name, j.payload_version, j.unroutable_since, j.spent
    FROM {job} j WHERE j.id = o.job_id FOR UPDATE SKIP LOCKED) f),
released AS (
  DELETE FROM {lease} l WHERE l.id = ANY (ARRAY(SELECT f.lease_id FROM free f))
  RETURNING l.id, l.job_id, l.cancel_requested, l.pump_id, l.run),
"""
_VERDICT: Final = """
asked AS MATERIALIZED (
  SELECT i.*, r.cancel_requested, r.pump_id, r.run, f.spent,
    CASE WHEN i.unroutable IS NOT NULL THEN COALESCE(f.unroutable_since, %(now)s)
      WHEN %(keeps_clock)s OR i.kind IN ('undecodable', 'unroutable') THEN f.unroutable_since
    END AS unroutable_since,
    CASE WHEN i.state = 'succeeded' THEN 'succeeded'
      WHEN r.cancel_requested THEN 'cancelled'
      WHEN i.unroutable IS NULL OR i.state <> 'scheduled' THEN i.state
      WHEN COALESCE(f.unroutable_since, %(now)s) > %(grace_from)s THEN i.state
      WHEN i.unroutable = 'arguments' THEN 'quarantined'
      WHEN EXISTS (SELECT 1 FROM {pump} p WHERE p.stopped_at IS NULL
        AND p.seen_at + make_interval(secs => p.lease_seconds) > %(now)s
        AND p.queues @> to_jsonb(f.queue)
        AND (p.wire_names ->> f.wire_name)::int >= f.payload_version) THEN i.state
      ELSE 'quarantined' END AS final
  FROM released r JOIN input i ON i.lease_id = r.id JOIN free f ON f.id = r.job_id),
verdict AS MATERIALIZED (
  SELECT a.*, a.final <> 'scheduled' AS ended,
    CASE WHEN a.final = 'scheduled' THEN NULL
      WHEN a.final = 'cancelled' AND a.cancel_requested THEN 'operator'
      WHEN a.final <> a.state THEN 'unroutable'
      ELSE a.cause END AS reason
  FROM asked a),
applied AS (
  UPDATE {job} j SET state = v.final, cause = v.reason,
    spent = j.spent + (v.kind IN {spending})::int,
    due_at = CASE WHEN v.ended THEN j.due_at ELSE COALESCE(v.due_at, %(now)s) END,
    terminal_at = CASE WHEN v.ended THEN %(now)s ELSE NULL END,
    unique_live = CASE WHEN v.ended THEN NULL ELSE j.unique_live END,
    output = CASE WHEN v.final = 'succeeded' THEN v.output ELSE j.output END,
    tags = CASE WHEN v.tags IS NULL THEN j.tags ELSE j.tags || v.tags::jsonb END,
    unroutable_since = v.unroutable_since
  FROM verdict v WHERE j.id = v.job_id AND j.id = ANY (ARRAY(SELECT w.job_id FROM verdict w)))
"""
_HISTORY: Final = """,
history AS (
  INSERT INTO {outcome} (job_id, run, attempt, kind, state, cause, pump_id, started_at,
    finished_at, error_class, message, traceback, fingerprint, log, next_due_at)
  SELECT v.job_id, v.run, v.spent + 1, v.kind, v.final, v.reason, v.pump_id, v.started_at,
    v.finished_at, v.error_class, v.message, v.traceback, v.fingerprint, v.log,
    CASE WHEN v.ended THEN NULL ELSE COALESCE(v.due_at, %(now)s) END
  FROM verdict v ORDER BY v.ord)
"""
# Whatever waits for an ended job is settled in a transaction that follows at once; if it does not
# come to that, the sweep finds the parent here.
_GATES: Final = """,
gates AS MATERIALIZED (
  SELECT v.job_id FROM verdict v CROSS JOIN LATERAL (
    SELECT 1 FROM {edge} d WHERE d.parent_id = v.job_id AND {open:d} LIMIT 1) d
  WHERE v.ended),
queued AS (
  INSERT INTO {settle} (parent_id) SELECT g.job_id FROM gates g RETURNING id, parent_id)
"""
_ROWS: Final = """
SELECT v.final, v.final IS NULL AND (SELECT true FROM {lease} l WHERE l.id = i.lease_id),
  q.id, clock_timestamp()
FROM input i LEFT JOIN verdict v ON v.lease_id = i.lease_id
LEFT JOIN queued q ON q.parent_id = v.job_id ORDER BY i.ord
"""
#: Everything that applies a batch, by whether history is kept: a list of common table expressions
#: that other ones may follow. ``input``, ``verdict`` and ``queued`` hold what became of it.
APPLYING: Final = {
    True: _FENCE + _VERDICT + _HISTORY + _GATES,
    False: _FENCE + _VERDICT + _GATES,
}
_STATEMENTS: Final = {kept: Statement(text + _ROWS) for kept, text in APPLYING.items()}
#: The same for who cannot come again: it waits for locked rows, while ``lock_timeout`` lets it.
_WAITING: Final = {
    kept: Statement((text + _ROWS).replace("FOR UPDATE SKIP LOCKED", "FOR UPDATE"))
    for kept, text in APPLYING.items()
}
_STATES: Final = {state.value: state for state in JobState}


def apply_in_one_statement(
    room: Room, outcomes: Sequence[Outcome], *, fence: Fence, now: datetime
) -> tuple[list[Applied], datetime]:
    """Apply what the fences let through; answer every row in order, with the clock."""
    kept = room.settings.history is not History.OFF
    parameters = report_parameters(room, outcomes, fence=fence, now=now)
    statements = _WAITING if fence.waits else _STATEMENTS
    rows = room.fetch_alone(statements[kept], parameters)
    return [
        applied(outcome, row[0], exists=row[1], queued=row[2])
        for outcome, row in zip(outcomes, rows, strict=True)
    ], room.told(rows[-1][3])


def report_parameters(
    room: Room, outcomes: Sequence[Outcome], *, fence: Fence, now: datetime
) -> dict[str, Any]:
    """Return the columns of a batch, one array each."""
    history = room.settings.history
    details = [detail(outcome, history) for outcome in outcomes]
    classes, messages, tracebacks, fingerprints, logs = zip(*details, strict=True)
    return {
        "lease_ids": [outcome.lease_id for outcome in outcomes],
        "job_ids": [outcome.job_id for outcome in outcomes],
        "kinds": [outcome.kind.value for outcome in outcomes],
        "states": [outcome.state.value for outcome in outcomes],
        "causes": _column(outcome.cause and outcome.cause.value for outcome in outcomes),
        "due": _column(outcome.due_at for outcome in outcomes),
        "outputs": _column(outcome.output for outcome in outcomes),
        "tags": _column(outcome.tags for outcome in outcomes),
        "started": [outcome.started_at for outcome in outcomes],
        "finished": [outcome.finished_at for outcome in outcomes],
        "error_classes": _column(classes),
        "messages": _column(messages),
        "tracebacks": _column(tracebacks),
        "fingerprints": _column(fingerprints),
        "logs": _column(logs),
        "unroutables": _column(o.unroutable and o.unroutable.value for o in outcomes),
        "lapsed_by": fence.lapsed_by,
        "keeps_clock": fence.keeps_clock,
        "grace_from": now - room.settings.unroutable_grace,
        "now": now,
    }


def _column(values: Iterable[object]) -> list[object] | None:
    """Return a column; nothing for one of NULLs, which ``unnest`` fills up by itself."""
    column = list(values)
    return None if column.count(None) == len(column) else column


def applied(outcome: Outcome, final: str | None, *, exists: bool, queued: int | None) -> Applied:
    """Return the answer for one row of the statement."""
    lease_id = outcome.lease_id
    if final is not None:
        reported = Reported(lease_id, Verdict.APPLIED, _STATES[final])
    else:
        reported = Reported(lease_id, Verdict.BUSY if exists else Verdict.STALE)
    return Applied(outcome.job_id, reported, queued is not None, queued)
