"""A pump's turn: what was done is reported, and what is next is claimed, at one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backwave_django.core.contract import History, ReportAnswer
from backwave_django.core.errors import TurnFailed
from backwave_django.store.applied import ANY_LEASE
from backwave_django.store.applying_postgresql import APPLYING, applied, report_parameters
from backwave_django.store.claims import claim, complete, remembered, sized
from backwave_django.store.faults import DATABASE_ERRORS, is_refused_data, translated
from backwave_django.store.names import Statement
from backwave_django.store.observing import is_watched
from backwave_django.store.outcomes import report, settle_applied
from backwave_django.store.taking import (
    LEASED_COLUMNS,
    TAKING_PLAIN,
    plain_parameters,
    taken,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.core.contract import ClaimAnswer, ClaimRequest
    from backwave_django.core.outcomes import Outcome
    from backwave_django.store.lanes import Lane
    from backwave_django.store.room import Room

# Rows of both kinds in one answer: first what was reported, in order, then what was claimed.
_PARTS: Final = """, 1 AS part, ord, NULL AS final, NULL AS held, NULL AS queued
FROM claimed
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, clock_timestamp(), 0, i.ord, v.final,
  v.final IS NULL AND (SELECT true FROM {lease} l WHERE l.id = i.lease_id), q.id
FROM input i LEFT JOIN verdict v ON v.lease_id = i.lease_id
LEFT JOIN queued q ON q.parent_id = v.job_id
ORDER BY part, ord, due_at, id
"""
_BOTH: Final = LEASED_COLUMNS + _PARTS
_FINAL: Final = 23


_STATEMENTS: Final = {
    (kept, one): Statement(text + "," + taking + _BOTH)
    for kept, text in APPLYING.items()
    for one, taking in TAKING_PLAIN.items()
}


def turn(
    room: Room, outcomes: Sequence[Outcome], request: ClaimRequest, *, now: datetime
) -> tuple[ReportAnswer, ClaimAnswer]:
    """Report, then claim; see ``Store.turn``."""
    if room.executor.vendor == "sqlite":
        with room.executor.transaction():
            return report(room, outcomes, now=now), claim(room, request, now=now)
    lanes = remembered(room, request, now=now)
    if lanes and _may_be_merged(room, outcomes):
        try:
            return _merged(room, outcomes, request, lanes, now=now)
        except Exception as error:
            if not is_refused_data(error):
                raise
    # Nothing to merge, or a row that has to be isolated first.
    reported = report(room, outcomes, now=now)
    try:
        return reported, claim(room, request, now=now)
    except DATABASE_ERRORS as error:
        raise TurnFailed(reported, translated(error)) from error


def _may_be_merged(room: Room, outcomes: Sequence[Outcome]) -> bool:
    """Whether there is something to report, each lease once, and nothing that needs more."""
    once = len({outcome.lease_id for outcome in outcomes}) == len(outcomes)
    return bool(outcomes) and once and not is_watched(room, outcomes)


def _merged(
    room: Room,
    outcomes: Sequence[Outcome],
    request: ClaimRequest,
    lanes: Sequence[Lane],
    *,
    now: datetime,
) -> tuple[ReportAnswer, ClaimAnswer]:
    """Do both in one statement.

    It claims from what was there before it, so what its outcomes set free comes with the next.
    """
    kept = room.settings.history is not History.OFF
    parameters = report_parameters(room, outcomes, fence=ANY_LEASE, now=now)
    parameters |= plain_parameters(room, request, lanes, sized(request), now=now)
    rows = room.fetch_alone(_STATEMENTS[kept, len(lanes) == 1], parameters)
    told, claimed = rows[: len(outcomes)], rows[len(outcomes) :]
    answers = [
        applied(outcome, row[_FINAL], exists=row[_FINAL + 1], queued=row[_FINAL + 2])
        for outcome, row in zip(outcomes, told, strict=True)
    ]
    reported = ReportAnswer(
        rows=tuple(answer.reported for answer in answers), clock=room.told(told[-1][20])
    )
    settle_applied(room, answers, now=now)
    jobs = taken(room, claimed, sized(request))
    try:
        return reported, complete(room, request, jobs, now=now)
    except DATABASE_ERRORS as error:
        raise TurnFailed(reported, translated(error)) from error
