"""Atomic bodies: how an attempt ends, by what came of the transaction that its body ran in.

Who runs the transaction asks here after each answer what follows from it. Whether an outcome
counts is decided by the fence alone: where it is not known what became of a commit, saying
"released" is always safe, because a release is refused once the lease is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core import events as e
from backwave_django.core.outcomes import Outcome, Verdict
from backwave_django.core.verdicts import judge

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.jobs import LeasedJob
    from backwave_django.core.outcomes import Reported


def after_body(
    ended: e.AttemptReported, *, job: LeasedJob, counts: bool, now: datetime
) -> Outcome | e.AttemptReported:
    """Return the outcome to apply in the transaction, or what to say once that is rolled back.

    ``counts`` is false when the outcome was decided without the body, or others have its job.
    """
    if not isinstance(ended, e.AttemptSucceeded):
        return ended
    if not counts:
        return e.AttemptReleased(lease_id=ended.lease_id, started_at=ended.started_at)
    return judge(ended, job=job, signalled=None, now=now)


def after_fence(outcome: Outcome, row: Reported) -> e.AttemptReleased | None:
    """Return ``None`` to commit, or what to say once the transaction is rolled back.

    Who gives back a lease that is gone hears so, and says so.
    """
    return None if row.verdict is Verdict.APPLIED else after_fault(outcome)


def after_fault(outcome: Outcome) -> e.AttemptReleased:
    """Return what to say when the outcome was not applied, for a reason that time heals."""
    return e.AttemptReleased(lease_id=outcome.lease_id, started_at=outcome.started_at)


def after_silence(
    lease_id: UUID, *, started_at: datetime, recorded: bool
) -> e.AttemptCommitted | e.AttemptReleased:
    """Return what to say of a commit without an answer; ``recorded`` says who looked afterwards."""
    if recorded:
        return e.AttemptCommitted(lease_id=lease_id)
    return e.AttemptReleased(lease_id=lease_id, started_at=started_at)
