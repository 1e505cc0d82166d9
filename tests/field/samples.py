"""What grows when something leaks, sampled and judged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

import psutil  # type: ignore[import-untyped]  # it ships no types
from django.db import connection

from tests.e2e.processes import Process
from tests.field.servers import fetch, sessions

MEBIBYTE = 2**20
#: The parts of a run that are compared: after the warm-up, and at the end.
EARLY = (0.4, 0.6)
LATE = (0.8, 1.0)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look: of the processes that live through it all, and of the database."""

    at: float
    memory_mib: float
    threads: int
    files: int
    sessions: int
    tables_mib: float
    indexes_mib: float
    jobs: int


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """How a number was early on and at the end, and how much more it may be."""

    name: str
    early: float
    late: float
    allowed: float

    @property
    def flat(self) -> bool:
        return self.late <= self.early + self.allowed

    def __str__(self) -> str:
        verdict = "flat" if self.flat else "GROWS"
        return (
            f"{self.name:12} {self.early:10.1f} {self.late:10.1f} "
            f"{self.late - self.early:+9.1f} (at most {self.allowed:+.1f})  {verdict}"
        )


def look(processes: Iterable[Process], *, at: float) -> Sample:
    """Take a sample."""
    found = [psutil.Process(process.pid) for process in processes]
    (jobs,) = fetch("SELECT count(*) FROM backwave_job")
    tables, indexes = _sizes()
    return Sample(
        at=at,
        memory_mib=sum(process.memory_info().rss for process in found) / MEBIBYTE,
        threads=sum(process.num_threads() for process in found),
        files=sum(process.num_fds() for process in found),
        sessions=sum(sessions().values()) if connection.vendor == "postgresql" else 0,
        tables_mib=tables / MEBIBYTE,
        indexes_mib=indexes / MEBIBYTE,
        jobs=jobs[0],
    )


def _sizes() -> tuple[float, float]:
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        return float(path.stat().st_size), 0.0
    ((tables, indexes),) = fetch(
        "SELECT sum(pg_table_size(oid)), sum(pg_indexes_size(oid)) FROM pg_class "
        "WHERE relkind = 'r' AND relname LIKE 'backwave_%%'"
    )
    return float(tables), float(indexes)


def judge(samples: Sequence[Sample]) -> list[Judgement]:
    """Compare the middle of a run with its end."""

    def part(name: str, span: tuple[float, float]) -> float:
        first, last = (int(len(samples) * share) for share in span)
        return float(median(getattr(sample, name) for sample in samples[first:last]))

    judgements = []
    for name in (field.name for field in fields(Sample) if field.name != "at"):
        early, late = part(name, EARLY), part(name, LATE)
        allowed = {
            "memory_mib": 3.0 + 0.02 * early,
            "threads": 1.0,
            "files": 4.0,
            "sessions": 4.0,
            "jobs": early,  # they go by the minute, as purges come round
        }.get(name, 1.0 + 0.2 * early)
        judgements.append(Judgement(name=name, early=early, late=late, allowed=allowed))
    return judgements


def table(samples: Sequence[Sample], *, rows: int = 20) -> Iterable[str]:
    """Show some of the samples, evenly spread."""
    names = [field.name for field in fields(Sample)]
    yield " ".join(f"{name:>11}" for name in names)
    step = max(1, len(samples) // rows)
    for sample in (*samples[::step], samples[-1]):
        yield " ".join(f"{getattr(sample, name):11.1f}" for name in names)
