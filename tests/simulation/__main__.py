"""``python -m tests.simulation``: search for runs that break an invariant, and look into them.

``swarm --minutes N`` runs seed after seed; ``coverage --seeds N`` says what they reached;
``replay PLAN`` runs a plan file again; ``shrink PLAN`` makes it smaller, in place.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from tests.simulation import plans
from tests.simulation.scenarios import draw
from tests.simulation.shrinking import shrink
from tests.simulation.swarm import keep, search
from tests.simulation.world import Report, run

FOUND = Path("var/simulation")


def main(arguments: Sequence[str]) -> int:
    """Do what was asked; the exit code is 1 when an invariant broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, act in (("swarm", _swarm), ("coverage", _coverage)):
        command = commands.add_parser(name)
        command.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
        command.add_argument("--minutes", type=float, default=1.0, help="(default: 1)")
        command.add_argument("--seeds", type=int, help="stop after so many seeds instead")
        command.add_argument("--found", type=Path, default=FOUND, help="where plans of failures go")
        command.set_defaults(act=act)
    for name, look in (("replay", _replay), ("shrink", _shrink)):
        command = commands.add_parser(name)
        command.add_argument("plan", type=Path, help="a plan file, or a seed")
        command.set_defaults(act=look)
    options = parser.parse_args(arguments)
    chosen: Callable[[argparse.Namespace], int] = options.act
    return chosen(options)


def _swarm(options: argparse.Namespace) -> int:
    return _searched(options, report=False)


def _coverage(options: argparse.Namespace) -> int:
    return _searched(options, report=True)


def _searched(options: argparse.Namespace, *, report: bool) -> int:
    started = time.perf_counter()
    last = options.seeds and options.first + options.seeds
    seeds = range(options.first, last) if last else count(options.first)

    def enough() -> bool:
        minutes = (time.perf_counter() - started) / 60
        return not last and minutes >= options.minutes

    def failed(one: Report) -> None:
        path = keep(one, folder=options.found)
        _say(f"seed {one.plan.seed}: {one.broke} {one.detail}\n  {path}")

    tally = search(seeds, failed=failed, enough=enough)
    minutes = (time.perf_counter() - started) / 60
    if report:
        for line in tally.lines():
            _say(line)
    broken = sum(map(len, tally.broke.values()))
    _say(f"{tally.seeds} seeds in {minutes:.1f} min, {broken} of them broke an invariant")
    return 1 if broken else 0


def _replay(options: argparse.Namespace) -> int:
    report = run(_plan(options.plan))
    _say(f"{report.broke}: {report.detail}" if report.broke else "every invariant held")
    return 1 if report.broke else 0


def _shrink(options: argparse.Namespace) -> int:
    plan = shrink(_plan(options.plan))
    if not plan.broke:
        _say("every invariant held; there is nothing to make smaller")
        return 0
    path = options.plan if options.plan.exists() else FOUND / f"{plan.broke}-{plan.seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plan.dump())
    _say(f"{plan.broke} with {len(plan.faults)} faults: {path}")
    return 1


def _plan(path: Path) -> plans.Plan:
    return plans.read(path) if path.exists() else draw(int(str(path)))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
