"""``work_off``: run pumps as a child process until every job has ended, then tell what happened."""

import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from testproject.shop.tally import Tally, database_name, effects

MANAGE = Path(__file__).resolve().parents[3] / "manage.py"
LOOK_EVERY_SECONDS = 0.5
LINE_EVERY_SECONDS = 5.0
DRAIN_SECONDS = 45
LOG_LINES = 15


class Command(BaseCommand):
    """Start ``runpumps``, watch the jobs, stop it when there is nothing left to do."""

    help = (
        "Run pumps until every job is in a terminal state; print a summary by job type and state."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which pumps, and for how long."""
        parser.add_argument("--group", default="default", help="worker group (default: default)")
        parser.add_argument(
            "--processes", type=int, default=1, metavar="N", help="pump processes (default: 1)"
        )
        parser.add_argument(
            "--within", type=float, default=600, metavar="SECONDS", help="give up after (600)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run, watch, stop, tell."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        log = settings.VAR_DIR / "pumps.log"
        command = ["runpumps", "--group", options["group"]]
        if options["processes"] > 1:
            command += ["--processes", str(options["processes"])]
        began = perf_counter()
        with log.open("wb") as output:
            pumps = subprocess.Popen(  # noqa: S603 - this project's own command
                [sys.executable, str(MANAGE), *command], stdout=output, stderr=output
            )
            try:
                self._watch(pumps, began=began, within=options["within"])
            finally:
                seconds = perf_counter() - began
                code = _stop(pumps)
        left = self._tell(seconds=seconds, log=log)
        if code or left:
            last_lines = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
            raise CommandError(
                f"{left:,} jobs are not in a terminal state; runpumps ended with exit code {code},"
                f" the last of its log is\n{last_lines}"
            )

    def _watch(self, pumps: subprocess.Popen[bytes], *, began: float, within: float) -> None:
        """Return when all jobs have ended, the pumps have, or the time is up."""
        printed_at = -LINE_EVERY_SECONDS
        live = self.stdout.isatty()
        while True:
            tally = Tally.take()
            elapsed = perf_counter() - began
            idle = tally.ended == tally.total
            if live or idle or elapsed - printed_at >= LINE_EVERY_SECONDS:
                printed_at = elapsed
                self._progress(tally, elapsed, live=live)
            if idle or elapsed > within or _ends_within(pumps, LOOK_EVERY_SECONDS):
                break
        if live:
            self.stdout.write("")

    def _progress(self, tally: Tally, elapsed: float, *, live: bool) -> None:
        line = (
            f"{tally.ended:,} of {tally.total:,} jobs have ended"
            f" after {elapsed:.0f} s, {tally.runs:,} attempts began"
        )
        if live:
            self.stdout.write(f"\r{line:<78}", ending="")
        else:
            self.stdout.write(line)
        self.stdout.flush()

    def _tell(self, *, seconds: float, log: Path) -> int:
        """Print the summary; return how many jobs have not ended."""
        tally = Tally.take()
        self.stdout.write(f"\n{database_name()}")
        self.stdout.write(
            f"{tally.ended:,} jobs in {seconds:.1f} s, {tally.ended / seconds:.0f} jobs/s,"
            f" start-up and waits before retries included; {tally.runs:,} attempts\n\n"
        )
        for line in [*tally.table(), "", *effects(), f"log       {log}"]:
            self.stdout.write(line)
        return tally.total - tally.ended


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _stop(pumps: subprocess.Popen[bytes]) -> int:
    """Let the pumps drain and return their exit code; kill them if they do not end."""
    if pumps.poll() is None:
        pumps.terminate()
    if not _ends_within(pumps, DRAIN_SECONDS):
        pumps.kill()
    return pumps.wait()
