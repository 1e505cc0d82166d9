"""Looks at the leases over and over, each look one statement, which sees one moment."""

from typing import Any

from django.db import connection

from backwave_django.models import Job, Lease
from tests.torture import jobs
from tests.torture.journal import Journal
from tests.torture.loops import Random, Stop, rounds, tried

_LOOK = """
SELECT l.id, l.job_id, l.run, l.queue, l.limit_key, {instant}, j.id, j.run, j.queue
FROM {lease} l
FULL JOIN (SELECT id, run, queue FROM {job} WHERE state = 'leased') j ON j.id = l.job_id
"""
_INSTANT = {
    "postgresql": "extract(epoch FROM l.acquired_at)::float8",
    "sqlite": "(julianday(l.acquired_at) - 2440587.5) * 86400.0",
}


class Watcher:
    """Writes down what must never be seen, and each lease once."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._journal = Journal.current()
        self._seen: set[object] = set()

    def run(self, stop: Stop) -> None:
        """Look until told to stop."""
        for _ in rounds(stop, self._rng, longest=0.1):
            rows = tried(_leases)
            for problem in problems(rows or []):
                self._journal.write("watch.broke", id=problem[0], detail=problem[1])
            for row in rows or []:
                if row[0] is not None and row[0] not in self._seen:
                    self._seen.add(row[0])
                    self._journal.write("watch.lease", queue=row[3], acquired=row[5])


def _leases() -> list[tuple[Any, ...]]:
    tables = {"lease": Lease._meta.db_table, "job": Job._meta.db_table}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK.format(instant=_INSTANT[connection.vendor], **tables))
        return list(cursor.fetchall())


def problems(rows: list[tuple[Any, ...]]) -> list[tuple[str, str]]:
    """What is wrong with one look: pairs of an invariant and a sentence."""
    found = []
    for lease_id, job_id, run, queue, _key, _at, leased_id, job_run, job_queue in rows:
        if lease_id is None or leased_id is None:
            found.append(("lease-iff-leased", f"lease {lease_id} of job {job_id or leased_id}"))
        elif (run, queue) != (job_run, job_queue):
            found.append(("lease-iff-leased", f"lease {lease_id} is not of run {job_run}"))
    holders = [row[1] for row in rows if row[0] is not None]
    if len(holders) != len(set(holders)):
        found.append(("no-double-lease", f"{len(holders) - len(set(holders))} jobs"))
    capped = sum(row[3] == "capped" for row in rows)
    if capped > jobs.CAPPED_LIMIT:
        found.append(("limit-never-exceeded", f"{capped} leases of the queue"))
    keyed = sum(row[4] == jobs.GATEWAY for row in rows)
    if keyed > jobs.GATEWAY_LIMIT:
        found.append(("key-limit-never-exceeded", f"{keyed} leases of the key"))
    return found
