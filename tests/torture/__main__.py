"""``python -m tests.torture``: torture a database's store for a while, and audit what is left.

One run of a minute on SQLite, unless the options say otherwise; longer times are cut into runs of
a few minutes each, with the seeds that follow. The exit code is 1 when an invariant broke; the
tables and the journal of such a run are kept, and its seed is printed: it repeats what was asked
for and what was done to whom, not the moment at which it hit.
"""

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django

from tests.torture.children import die_with

LONGEST_RUN_SECONDS = 120.0


def main(arguments: Sequence[str]) -> int:
    """Run; say how it went."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--minutes", type=float, default=1.0, help="(default: 1)")
    parser.add_argument("--seconds", type=float, help="instead of minutes")
    parser.add_argument("--seed", type=int, help="of the first run (default: by the clock)")
    parser.add_argument("--pumps", type=int, default=4, help="processes (default: 4)")
    parser.add_argument("--enqueuers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--operators", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--no-faults", action="store_true", help="let everybody live")
    parser.add_argument(
        "--other-release",
        metavar="REVISION",
        help="half of the pumps are of this revision (default: the last tag, if there is one)",
    )
    options = parser.parse_args(arguments)
    left = options.seconds or 60 * options.minutes
    seed = int(time.time()) if options.seed is None else options.seed  # noqa: TID251 - any number
    broken = 0
    while left > 0:
        seconds = min(left, LONGEST_RUN_SECONDS)
        broken += _run(options, seed=seed, seconds=seconds)
        left, seed = left - seconds, seed + 1
    return 1 if broken else 0


def _run(options: argparse.Namespace, *, seed: int, seconds: float) -> int:
    """Make one run in a process of its own, so that each begins like the first."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            die_with(parent)
            code = _one(options, seed=seed, seconds=seconds)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _one(options: argparse.Namespace, *, seed: int, seconds: float) -> int:
    # Settings are read at import, and say which database there is: nothing of the run can be
    # imported before that is known.
    databases = importlib.import_module("tests.torture.databases")
    files = importlib.import_module("tests.torture.keeping")
    directory = files.directory_for(options.database)
    with databases.opened(options.database, directory=directory) as database:
        _set_up(database.url, directory)
        runs = importlib.import_module("tests.torture.runs")
        plan = runs.Plan(
            seed=seed,
            seconds=seconds,
            pumps=options.pumps,
            enqueuers=options.enqueuers,
            operators=options.operators,
            torment=not options.no_faults,
            other_pumps=_other_pumps(options.other_release, directory),
        )
        report = runs.Run(plan, database, directory=directory).go()
        if report.violations:
            files.keep(database, directory)
    _tell(report, options.database, directory)
    if not report.violations:
        files.remove(directory)
    return 1 if report.violations else 0


def _set_up(url: str, directory: Path) -> None:
    os.environ.update(
        DATABASE_URL=url,
        DJANGO_SETTINGS_MODULE="tests.torture.settings",
        DEBUG="0",
        TORTURE_JOURNAL=str(directory / "journal"),
        SHOP_VAR_DIR=str(directory),
    )
    django.setup()


def _other_pumps(revision: str | None, directory: Path) -> Any:
    releases = importlib.import_module("tests.torture.releases")
    revision = revision or releases.last_tag()
    if revision is None:
        _say("one release only: there is no tag whose pumps could run beside those of this tree")
        return None
    _say(f"half of the pumps are of {revision}")
    return releases.pumps_of(releases.unpacked(revision, directory=directory))


def _tell(report: Any, vendor: str, directory: Path) -> None:
    audit = importlib.import_module("tests.torture.audit")
    plan = report.plan
    _say(f"{vendor}, seed {plan.seed}, {plan.seconds:g} s:")
    for title in ("figures", "states", "kinds", "faults"):
        counts = getattr(report, title)
        _say(f"  {title}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    if not report.violations:
        _say("  no invariant broke")
        return
    for line in audit.summary(report.violations):
        _say(f"  {line}")
    _say(f"  {len(report.violations)} violations; again with --seed {plan.seed}; see {directory}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
