"""Measure one contestant once, in a process of its own: ``python -m testproject.bench.one``.

Prints one JSON line. The runner starts it with the settings of the contestant in the environment.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection

WORKLOADS = (
    "noop",
    "sleep",
    "orm",
    "enqueue-single",
    "enqueue-atomic",
    "enqueue-many",
    "latency",
    "idle",
    "recovery",
)
#: Large states of our own tables: not among ``all``, since each takes minutes.
FLAT = ("flat-backlog", "flat-future", "flat-finished", "flat-snapshot", "flat-stale")


def main() -> None:
    """Prepare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS + FLAT)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--explain", action="store_true")
    options = parser.parse_args()
    django.setup()
    figures = _measure(options)
    sys.stdout.write(json.dumps({"workload": options.workload, **figures}) + "\n")


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    from testproject.bench import workloads
    from testproject.bench.bodies import ROWS, ledger
    from testproject.bench.contestants.catalogue import load
    from testproject.bench.machine import environment
    from testproject.bench.models import Row

    contestant = load(os.environ["BENCH_CONTESTANT"])
    if connection.vendor not in contestant.vendors:
        raise SystemExit(f"it does not run on {connection.vendor}")
    call_command("migrate", verbosity=0)
    _statements_extension()
    if not Row.objects.exists():
        Row.objects.bulk_create([Row() for _ in range(ROWS)])
    contestant.prepare()
    bench = workloads.Bench(
        contestant=contestant,
        ledger=ledger(),
        slots=options.slots,
        processes=options.processes,
        jobs=options.jobs,
        log=Path(os.environ["BENCH_LEDGER"]).with_suffix(".log"),
    )
    try:
        figures = _run(workloads, bench, options)
    except workloads.TooSlow as error:
        tail = bench.log.read_text(errors="replace")[-4000:]
        raise SystemExit(f"{error}\n{tail}") from error
    return {**figures, "environment": {**environment(), "debug": settings.DEBUG}}


def _run(workloads: Any, bench: Any, options: argparse.Namespace) -> dict[str, Any]:
    workload = options.workload
    if workload in FLAT:
        return _flat(bench, options)
    if workload.startswith("enqueue-"):
        found: dict[str, Any] = workloads.enqueue(bench, workload.removeprefix("enqueue-"))
    elif workload in {"noop", "sleep", "orm"}:
        found = workloads.drain(bench, workload)
    else:
        found = getattr(workloads, workload)(bench)
    return found


def _flat(bench: Any, options: argparse.Namespace) -> dict[str, Any]:
    from testproject.bench.states import flat

    if os.environ["BENCH_CONTESTANT"] != "backwave":
        raise SystemExit("the large states are those of backwave's own tables")
    state = options.workload.removeprefix("flat-")
    return flat(bench, state, rows=options.rows, explain=options.explain)


def _statements_extension() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")


if __name__ == "__main__":
    main()
