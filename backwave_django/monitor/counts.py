"""How many jobs there are, counted no further than anybody wants to know.

Each count walks one index and stops at ``CAP``, so that it costs the same on any table.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from django.utils.dateparse import parse_datetime

from backwave_django.core.states import JobState
from backwave_django.monitor.clock import connection
from backwave_django.store.names import Statement, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CAP: Final = 10_000


class Capped(NamedTuple):
    """A count that stopped at ``CAP``: ``str`` says "10,000+" then."""

    number: int
    more: bool

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.more else f"{self.number:,}"

    def __bool__(self) -> bool:
        return self.number > 0


class LaneCounts(NamedTuple):
    """The live jobs of one queue. ``oldest_due`` is looked for among the jobs counted."""

    due: Capped
    later: Capped
    running: Capped
    oldest_due: datetime | None


NOTHING: Final = LaneCounts(
    Capped(0, more=False), Capped(0, more=False), Capped(0, more=False), None
)

# A partial index serves a condition only if the statement repeats the index's own: hence the two
# halves, with and without a limit key. Jobs that await are found by their open edges, which are
# as few as they are: nothing indexes their state.
_HALF = "SELECT 1 AS one FROM {job} WHERE state = 'scheduled' AND limit_key IS {null} LIMIT {most}"
_LEASED = "SELECT 1 AS one FROM {job} WHERE state = 'leased' LIMIT {most}"
_AWAITING = "SELECT DISTINCT e.child_id AS one FROM {{edge}} e WHERE {{open:e}} LIMIT {most}"
_ENDED = (
    "SELECT 1 AS one FROM {job} WHERE state = '{state}' "
    "AND state IN ('succeeded', 'dead_lettered', 'quarantined', 'expired', 'cancelled') "
    "LIMIT {most}"
)
_COUNT = "(SELECT count(*) FROM ({rows}) AS counted)"

_LANE_PART = (
    "(SELECT {what} FROM (SELECT due_at FROM {job} WHERE state = 'scheduled' "
    "AND limit_key IS {null} AND queue = lane.name AND due_at {than} %(now)s LIMIT {most}) AS part)"
)
_LANE_RUNNING = (
    "(SELECT count(*) FROM (SELECT 1 AS one FROM {lease} WHERE queue = lane.name LIMIT {most})"
    " AS part)"
)


def job_counts() -> dict[JobState, Capped]:
    """Return how many jobs are in each state, in one statement."""
    here = connection()
    words = {"job": table("job"), "most": CAP + 1}
    halves = [_HALF.format(null=null, **words) for null in ("NULL", "NOT NULL")]
    columns = [" + ".join(_COUNT.format(rows=half) for half in halves)]
    awaiting = Statement(_AWAITING.format(**words)).on(here.vendor)
    columns += [_COUNT.format(rows=rows) for rows in (awaiting, _LEASED.format(**words))]
    ended = list(JobState)[3:]
    columns += [_COUNT.format(rows=_ENDED.format(state=state, **words)) for state in ended]
    with here.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(columns))
        row = cursor.fetchone()
    return dict(zip(JobState, map(_capped, row), strict=True))


def lane_counts(queues: Sequence[str], *, now: datetime) -> Mapping[str, LaneCounts]:
    """Return the live jobs of each of ``queues``, in one statement."""
    if not queues:
        return {}
    words = {"job": table("job"), "lease": table("lease"), "most": CAP + 1}
    columns = [
        _both_halves("count(*)", "<=", words),
        _both_halves("count(*)", ">", words),
        _LANE_RUNNING.format(**words),
        *(
            _LANE_PART.format(what="min(due_at)", than="<=", null=null, **words)
            for null in ("NULL", "NOT NULL")
        ),
    ]
    lanes = " UNION ALL ".join(f"SELECT %(queue_{n})s AS name" for n in range(len(queues)))
    here = connection()
    parameters: dict[str, str | None] = {f"queue_{n}": name for n, name in enumerate(queues)}
    parameters["now"] = here.ops.adapt_datetimefield_value(now)
    with here.cursor() as cursor:
        cursor.execute(
            f"SELECT lane.name, {', '.join(columns)} FROM ({lanes}) AS lane",  # noqa: S608 - no values in it
            parameters,
        )
        rows = cursor.fetchall()
    return {
        name: LaneCounts(_capped(due), _capped(later), _capped(running), _earliest(*oldest))
        for name, due, later, running, *oldest in rows
    }


def _both_halves(what: str, than: str, words: Mapping[str, object]) -> str:
    return " + ".join(
        _LANE_PART.format(what=what, than=than, null=null, **words) for null in ("NULL", "NOT NULL")
    )


def _capped(found: int) -> Capped:
    return Capped(min(found, CAP), more=found > CAP)


def _earliest(*instants: datetime | str | None) -> datetime | None:
    return min((_instant(each) for each in instants if each is not None), default=None)


def _instant(value: datetime | str) -> datetime:
    """Return an instant that came without Django's converters: SQLite gives text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    parsed = parse_datetime(value)
    assert parsed is not None, "the database gave an instant that is none"
    return parsed.replace(tzinfo=UTC)
