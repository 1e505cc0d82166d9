"""The rows that say how a job, or an attempt, ended: shared by all that ends one."""

from __future__ import annotations

from typing import Final

from backwave_django.store.names import Statement

APPEND: Final = Statement(
    """
INSERT INTO {outcome} (job_id, run, attempt, kind, state, cause, pump_id, started_at, finished_at,
  error_class, message, traceback, fingerprint, log, next_due_at)
VALUES (%(job)s, %(run)s, %(attempt)s, %(kind)s, %(state)s, %(cause)s, %(pump)s, %(started)s,
  %(finished)s, %(error_class)s, %(message)s, %(traceback)s, %(fingerprint)s, %(log)s,
  %(next_due)s)
"""
)
END: Final = Statement(
    """
UPDATE {job} SET state = %(state)s, cause = %(cause)s, terminal_at = %(finished)s,
  unique_live = NULL WHERE id = %(job)s
"""
)


def ending(
    *, job: object, spent: int, kind: str, state: str, cause: str | None, at: object
) -> dict[str, object]:
    """Return the parameters of ``APPEND`` and ``END`` for a job that ends without a lease."""
    nothing = dict.fromkeys(
        (
            "run",
            "pump",
            "started",
            "error_class",
            "message",
            "traceback",
            "fingerprint",
            "log",
            "next_due",
        )
    )
    return {
        **nothing,
        "job": job,
        "attempt": spent + 1,
        "kind": kind,
        "state": state,
        "cause": cause,
        "finished": at,
    }
