"""What became of one reported outcome, with what settling needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from backwave_django.core.contract import History

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from backwave_django.core.outcomes import Outcome, Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What an outcome needs of its lease, beside that it exists, and what it leaves alone.

    ``lapsed_by`` lets it end only if it has lapsed by then; ``keeps_clock`` leaves the clock of
    hand-backs running; ``waits`` waits for a locked row instead of passing it over.
    """

    lapsed_by: datetime | None = None
    keeps_clock: bool = False
    waits: bool = False


ANY_LEASE: Final = Fence()


class Applied(NamedTuple):
    """One answer; ``gates`` says that the job ended and has dependents that wait for it.

    ``queued`` is the row of the settle queue that was made for them, if one was.
    """

    job_id: UUID
    reported: Reported
    gates: bool = False
    queued: int | None = None


Detail = tuple[str | None, str | None, str | None, str | None, str | None]


def detail(outcome: Outcome, history: History) -> Detail:
    """Return class, message, traceback, fingerprint and log, as far as they are kept."""
    whole = history is History.DETAIL
    log = outcome.log if whole else None
    failure = outcome.failure
    if failure is None:
        return None, None, None, None, log
    traceback = failure.traceback if whole else None
    return failure.error_class, failure.message, traceback, failure.fingerprint, log
