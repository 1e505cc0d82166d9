"""Reports: outcomes apply under the fence of their lease, each at most once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from backwave_django.core.contract import ReportAnswer
from backwave_django.core.outcomes import Failure, Outcome, OutcomeKind, Reported, Verdict
from backwave_django.core.states import Cause, JobState
from backwave_django.store.applied import ANY_LEASE, Fence
from backwave_django.store.applying_postgresql import apply_in_one_statement
from backwave_django.store.applying_sqlite import apply_one_by_one
from backwave_django.store.faults import DATABASE_ERRORS, is_refused_data
from backwave_django.store.observing import is_watched, observe_applied
from backwave_django.store.settling import leave_queue, settle_dependents
from backwave_django.store.texts import cleaned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.store.applied import Applied
    from backwave_django.store.room import Room

logger = logging.getLogger("backwave.store")

_REFUSED: Final = "backwave_django.RefusedByDatabase"


def report(room: Room, outcomes: Sequence[Outcome], *, now: datetime) -> ReportAnswer:
    """Apply each outcome whose lease still exists; see ``Store.report``."""
    rows, clock = apply(room, outcomes, fence=ANY_LEASE, now=now)
    return ReportAnswer(rows=tuple(rows), clock=clock)


def apply(
    room: Room, outcomes: Sequence[Outcome], *, fence: Fence, now: datetime
) -> tuple[list[Reported], datetime]:
    """Apply outcomes in one transaction; rows refused as data are isolated in further ones."""
    first = {outcome.lease_id: outcome for outcome in reversed(outcomes)}
    if len(first) == len(outcomes):
        return _apply_or_split(room, outcomes, fence=fence, now=now)
    # A lease that is reported twice ends once: what comes second is stale.
    kept = [outcome for outcome in outcomes if first[outcome.lease_id] is outcome]
    rows, clock = _apply_or_split(room, kept, fence=fence, now=now)
    answers = iter(rows)
    return [
        next(answers)
        if first[outcome.lease_id] is outcome
        else Reported(outcome.lease_id, Verdict.STALE)
        for outcome in outcomes
    ], clock


def _apply_or_split(
    room: Room, outcomes: Sequence[Outcome], *, fence: Fence, now: datetime
) -> tuple[list[Reported], datetime]:
    if not outcomes:
        return [], room.clock()
    try:
        return apply_and_settle(room, outcomes, fence=fence, now=now)
    except Exception as error:
        if not is_refused_data(error):
            raise
        problem = " ".join(str(error).split())
    if len(outcomes) == 1:
        return _apply_refused(room, outcomes[0], problem, fence=fence, now=now)
    middle = len(outcomes) // 2
    left, _ = _apply_or_split(room, outcomes[:middle], fence=fence, now=now)
    right, clock = _apply_or_split(room, outcomes[middle:], fence=fence, now=now)
    return [*left, *right], clock


def apply_and_settle(
    room: Room, outcomes: Sequence[Outcome], *, fence: Fence, now: datetime
) -> tuple[list[Reported], datetime]:
    """Apply outcomes with all that follows from them; one that is refused as data fails all."""
    if room.executor.vendor == "sqlite":
        with room.executor.transaction():
            answers, clock = apply_one_by_one(room, outcomes, fence=fence, now=now)
            observe_applied(room, outcomes, answers, now=now)
            settle_dependents(room, [each.job_id for each in answers if each.gates], now=now)
    else:
        answers, clock = _apply_and_observe(room, outcomes, fence=fence, now=now)
        settle_applied(room, answers, now=now)
    return [answer.reported for answer in answers], clock


def _apply_and_observe(
    room: Room, outcomes: Sequence[Outcome], *, fence: Fence, now: datetime
) -> tuple[list[Applied], datetime]:
    """Apply outcomes; the jobs of their observers come at the same commit, or neither does."""
    if not is_watched(room, outcomes):
        return apply_in_one_statement(room, outcomes, fence=fence, now=now)
    with room.executor.transaction():
        answers, clock = apply_in_one_statement(room, outcomes, fence=fence, now=now)
        observe_applied(room, outcomes, answers, now=now)
    return answers, clock


def settle_applied(room: Room, answers: Sequence[Applied], *, now: datetime) -> None:
    """Settle what waits for jobs that ended, in a transaction that follows their own.

    What fails here is left to the sweep: the parents are in the settle queue.
    """
    gates = [answer for answer in answers if answer.gates]
    if not gates:
        return
    rows = [answer.queued for answer in gates if answer.queued is not None]
    try:
        with room.executor.transaction():
            leave_queue(room, rows)
            settle_dependents(room, [answer.job_id for answer in gates], now=now)
    except DATABASE_ERRORS as error:
        logger.warning("dependents of %d jobs are left to the sweep: %s", len(gates), error)


def _apply_refused(
    room: Room, outcome: Outcome, problem: str, *, fence: Fence, now: datetime
) -> tuple[list[Reported], datetime]:
    """Apply what is left of an outcome when the database refuses a value in it."""
    if outcome.state is JobState.SUCCEEDED:
        milder = outcome._replace(
            kind=OutcomeKind.OUTPUT_REFUSED,
            state=JobState.DEAD_LETTERED,
            cause=Cause.OUTPUT,
            output=None,
            failure=Failure(_REFUSED, cleaned(problem)),
        )
    else:
        milder = outcome
    bare = milder._replace(tags=None, log=None, failure=_clean_failure(milder.failure))
    return apply_and_settle(room, [bare], fence=fence, now=now)


def _clean_failure(failure: Failure | None) -> Failure | None:
    return None if failure is None else Failure(*map(cleaned, failure))
