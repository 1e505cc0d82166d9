"""The measurements. Each returns one dictionary of figures for one contestant and one repeat."""

import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from testproject.bench.contestants.protocol import Contestant
from testproject.bench.ledger import END, START, Ledger
from testproject.bench.machine import cpu_seconds, memory_mib, server_pid
from testproject.bench.workers import TooSlow, Workers, running, wait_until

__all__ = ["Bench", "TooSlow", "drain", "enqueue", "idle", "latency", "recovery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One contestant ready to be measured."""

    contestant: Contestant
    ledger: Ledger
    slots: int
    processes: int
    jobs: int
    log: Path
    seconds: float = float(os.environ.get("BENCH_SECONDS", "120"))

    def workers(self, count: int) -> Any:
        """Start ``count`` worker processes."""
        return running(self.contestant.worker(slots=self.slots), count=count, log=self.log)

    def fill(self, body: str, count: int) -> None:
        """Enqueue jobs number 0 to ``count``, in bulk where there is a way."""
        for first in range(0, count, 10_000):
            numbers = range(first, min(first + 10_000, count))
            if not self.contestant.enqueue_many(body, numbers):
                with transaction.atomic():
                    for number in numbers:
                        self.contestant.enqueue(body, number)

    def drained(self, count: int) -> Callable[[], bool]:
        """A fact: ``count`` bodies returned. Looks at the size of the ledger only."""
        return lambda: self.ledger.count() >= 2 * count


def drain(bench: Bench, body: str) -> dict[str, Any]:
    """Jobs per second from the first start to the last end, and to the last committed end."""
    bench.contestant.clear()
    bench.ledger.clear()
    bench.fill(body, bench.jobs)
    _analyse()
    postgres = server_pid()
    with bench.workers(bench.processes) as workers:
        began = wait_until(lambda: bench.ledger.count() > 0, seconds=60, what="first start")
        before = workers.cpu(), cpu_seconds(postgres) if postgres else 0.0
        wait_until(bench.drained(bench.jobs), seconds=bench.seconds, what="last end")
        committed = wait_until(
            lambda: bench.contestant.unfinished() == 0, seconds=60, what="last commit"
        )
        after = workers.cpu(), cpu_seconds(postgres) if postgres else 0.0
    entries = list(bench.ledger.entries())
    starts = sorted(entry.at for entry in entries if entry.kind == START)
    ends = [entry.at for entry in entries if entry.kind == END]
    # With several processes the clock starts when most of them are there.
    del began
    first = starts[0]
    per_thousand = 1000 / bench.jobs
    return {
        "jobs": bench.jobs,
        "rate_to_body": bench.jobs / (max(ends) - first),
        "rate_to_commit": bench.jobs / (committed - first),
        "worker_cpu_s_per_1000": (after[0] - before[0]) * per_thousand,
        "server_cpu_s_per_1000": (after[1] - before[1]) * per_thousand if postgres else None,
        "ran_once": _ran_once(bench),
    }


def enqueue(bench: Bench, shape: str) -> dict[str, Any]:
    """Jobs per second of one producer: ``single``, ``atomic`` (1,000 a transaction) or ``many``."""
    bench.contestant.clear()
    count = min(bench.jobs, {"single": 2_000, "atomic": 4_000, "many": 10_000}[shape])
    for number in range(50):
        bench.contestant.enqueue("noop", number)  # connections and statements are warm
    began, cpu = time.perf_counter(), time.process_time()
    if shape == "many":
        if not bench.contestant.enqueue_many("noop", range(count)):
            return {"shape": shape, "rate": None}
    else:
        _enqueue_singly(bench, count, size=1 if shape == "single" else 1_000)
    took = time.perf_counter() - began
    cpu = time.process_time() - cpu
    return {"jobs": count, "rate": count / took, "client_cpu_s_per_1000": cpu * 1000 / count}


def _enqueue_singly(bench: Bench, count: int, *, size: int) -> None:
    for first in range(0, count, size):
        if size == 1:
            bench.contestant.enqueue("noop", first)
            continue
        with transaction.atomic():
            for number in range(first, min(first + size, count)):
                bench.contestant.enqueue("noop", number)


def latency(bench: Bench) -> dict[str, Any]:
    """Milliseconds from the return of ``enqueue`` to the start of the body, on an idle worker."""
    bench.contestant.clear()
    bench.ledger.clear()
    sent: dict[int, float] = {}
    spread = random.Random(7)  # noqa: S311 - not for secrets
    samples = min(bench.jobs, 200)
    with bench.workers(1) as workers:
        _warm(bench, workers)
        for number in range(1_000_000, 1_000_000 + samples):
            bench.contestant.enqueue("noop", number)
            sent[number] = time.clock_gettime(time.CLOCK_MONOTONIC)
            time.sleep(0.08 + 0.04 * spread.random())
        wait_until(
            lambda: bench.contestant.unfinished() == 0, seconds=bench.seconds, what="last commit"
        )
    starts = {entry.job: entry.at for entry in bench.ledger.entries() if entry.kind == START}
    waits = sorted(1000 * (starts[number] - at) for number, at in sent.items())
    cuts = statistics.quantiles(waits, n=100)
    return {"samples": samples, "p50_ms": cuts[49], "p95_ms": cuts[94], "p99_ms": cuts[98]}


def idle(bench: Bench) -> dict[str, Any]:
    """What a worker without work costs: statements and transactions a minute, CPU, memory."""
    bench.contestant.clear()
    bench.ledger.clear()
    window = float(os.environ.get("BENCH_IDLE_SECONDS", "60"))
    with bench.workers(1) as workers:
        _warm(bench, workers)
        time.sleep(12)
        before, cpu = _statements(), workers.cpu()
        time.sleep(window)
        after = _statements()
        return {
            "statements_per_minute": _rate(before, after, 0, window),
            "transactions_per_minute": _rate(before, after, 1, window),
            "connections": _sessions(),
            "worker_cpu_s_per_minute": (workers.cpu() - cpu) * 60 / window,
            "memory_mib": sum(memory_mib(pid) for pid in workers.pids),
        }


def recovery(bench: Bench) -> dict[str, Any]:
    """Seconds from SIGKILL and an immediate restart until all killed jobs were run again."""
    bench.contestant.clear()
    bench.ledger.clear()
    quick = bench.ledger.path.with_suffix(".quick")
    quick.unlink(missing_ok=True)
    count = min(20, bench.slots)
    bench.fill("nap", count)
    with bench.workers(1) as workers:
        wait_until(lambda: bench.ledger.count() >= 1, seconds=60, what="first start")
        time.sleep(1)
        running_then = bench.ledger.count()
        workers.kill()
    quick.touch()
    killed = time.clock_gettime(time.CLOCK_MONOTONIC)
    with bench.workers(1):
        again = wait_until(
            lambda: sum(entry.kind == END for entry in bench.ledger.entries()) >= count,
            seconds=400,
            what="all run again",
            every=0.05,
        )
    quick.unlink()
    return {"killed": running_then, "recovered_s": again - killed}


def _warm(bench: Bench, workers: Workers) -> None:
    for number in range(20):
        bench.contestant.enqueue("noop", number)
    wait_until(bench.drained(20), seconds=60, what="warm-up")
    wait_until(lambda: bench.contestant.unfinished() == 0, seconds=60, what="warm-up commit")
    workers.check()
    time.sleep(1)


def _ran_once(bench: Bench) -> bool:
    ends = [entry.job for entry in bench.ledger.entries() if entry.kind == END]
    return len(ends) == bench.jobs == len(set(ends))


def _analyse() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def _statements() -> tuple[int, int] | None:
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE dbid ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        calls = int(cursor.fetchone()[0])
        cursor.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database"
            " WHERE datname = current_database()"
        )
        return calls, int(cursor.fetchone()[0])


def _rate(
    before: tuple[int, int] | None, after: tuple[int, int] | None, index: int, window: float
) -> float | None:
    if before is None or after is None:
        return None
    # The two looks at the counters are statements themselves.
    return max(0, after[index] - before[index] - 2) * 60 / window


def _sessions() -> int | None:
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])
