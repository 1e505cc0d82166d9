"""``manage.py bench``: real workers, a real database, the wall clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from testproject.bench.contestants.catalogue import PEERS
from testproject.bench.one import FLAT, WORKLOADS
from testproject.bench.report import HEADLINE, medians, ratio, table
from testproject.devpostgres import PrivatePostgres

if TYPE_CHECKING:
    from argparse import ArgumentParser

ROOT = Path(__file__).resolve().parents[4]
_GROUPS = {"all": WORKLOADS, "flat": FLAT}
SERVER_SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "shared_buffers": "512MB",
    "fsync": "on",
    "synchronous_commit": "on",
}


class Command(BaseCommand):
    """Measures; asserts nothing."""

    help = (
        "Measure the job system end to end, alone or beside a peer that is installed "
        "(pip install 'backwave-django[bench]'). One JSON line per repeat, then a table of medians."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--postgres",
            action="store_true",
            help="use a private PostgreSQL with durable settings instead of SQLite",
        )
        parser.add_argument(
            "--workload",
            action="append",
            choices=[*WORKLOADS, "all", *FLAT, "flat"],
            help="what to measure; may be given several times (default: noop); flat is all large "
            "states of the tables, all is all the others",
        )
        parser.add_argument(
            "--rows",
            type=int,
            default=1_000_000,
            help="rows of a large state; four times as many finished ones (default: 1000000)",
        )
        parser.add_argument(
            "--explain",
            metavar="FILE",
            help="write the plans of the hot statements in the large states to this file",
        )
        parser.add_argument(
            "--peer", action="append", choices=PEERS, default=[], help="run it in turn with ours"
        )
        parser.add_argument("--json", action="store_true", help="print the JSON lines only")
        parser.add_argument("--repeat", type=int, default=3, help="repeats (default: 3)")
        parser.add_argument(
            "--jobs", type=int, default=10_000, help="jobs a drain (default: 10000)"
        )
        parser.add_argument("--slots", type=int, default=20, help="POOL_SIZE (default: 20)")
        parser.add_argument("--pumps", type=int, default=1, help="PUMPS of ours (default: 1)")
        parser.add_argument(
            "--processes", type=int, default=1, help="worker processes (default: 1)"
        )
        parser.add_argument(
            "--connections",
            choices=["fresh", "reuse", "pool"],
            default="fresh",
            help="CONNECTIONS of ours; pool is fresh over Django's psycopg pool (default: fresh)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure each workload with each contestant in turn, A B A B."""
        chosen = options["workload"] or ["noop"]
        workloads = [name for one in chosen for name in _GROUPS.get(one, (one,))]
        contestants = ["backwave", *options["peer"]]
        rows: list[dict[str, Any]] = []
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench")))
            environments = _environments(stack, contestants, directory, options)
            for workload in workloads:
                lines: dict[str, list[dict[str, Any]]] = {name: [] for name in contestants}
                for repeat in range(options["repeat"]):
                    for name in contestants:
                        line = self._one(name, workload, environments[name], options)
                        lines[name].append(line)
                        if name != "backwave":
                            line["ratio"] = ratio(workload, lines["backwave"][-1], line)
                        self._say({**line, "repeat": repeat})
                rows += [medians(found) for found in lines.values()]
        if not options["json"]:
            self.stdout.write(
                "\nMedians; ratio is ours over the peer's, by " + _headlines(workloads)
            )
            self.stdout.write(table(rows))

    def _one(
        self, name: str, workload: str, environ: dict[str, str], options: dict[str, Any]
    ) -> dict[str, Any]:
        command = [sys.executable, "-m", "testproject.bench.one", workload]
        for option in ("jobs", "slots", "processes", "rows"):
            command += [f"--{option}", str(options[option])]
        if options["explain"]:
            command.append("--explain")
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)  # noqa: PLW1510 - the code is looked at
        if done.returncode:
            raise CommandError(f"{name}, {workload}: {done.stderr.strip() or done.stdout.strip()}")
        found = json.loads(done.stdout.splitlines()[-1])
        plans = found.pop("plans", None)
        if plans is not None:
            with Path(options["explain"]).open("a") as file:
                file.write(f"-- {workload}\n\n{plans}\n")
        return {"contestant": name, **found}

    def _say(self, line: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(line))
        self.stdout.flush()


def _environments(
    stack: ExitStack, contestants: list[str], directory: Path, options: dict[str, Any]
) -> dict[str, dict[str, str]]:
    """Give each contestant a database and a ledger of its own."""
    server = None
    if options["postgres"]:
        server = stack.enter_context(PrivatePostgres(settings=SERVER_SETTINGS))
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
    ledgers = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench", dir=memory))
    found: dict[str, dict[str, str]] = {}
    for name in contestants:
        slug = name.replace("-", "_")
        found[name] = {
            **os.environ,
            "BENCH_CONTESTANT": name,
            "BENCH_LEDGER": str(Path(ledgers) / f"{slug}.ledger"),
            "BENCH_SLOTS": str(options["slots"]),
            "BENCH_PUMPS": str(options["pumps"]),
            "BENCH_CONNECTIONS": "reuse" if options["connections"] == "reuse" else "fresh",
            "BENCH_DJANGO_POOL": "1" if options["connections"] == "pool" else "",
            "DATABASE_URL": f"sqlite:///{directory / f'{slug}.sqlite3'}",
            "DJANGO_SETTINGS_MODULE": "testproject.bench.settings",
            "PYTHONPATH": str(ROOT),
        }
        if server is not None:
            found[name]["DATABASE_URL"] = server.create_database(f"bench_{slug}")
            found[name]["BENCH_SERVER_PID"] = str(server.pid)
    return found


def _headlines(workloads: list[str]) -> str:
    return ", ".join(dict.fromkeys(HEADLINE[name] for name in workloads))
