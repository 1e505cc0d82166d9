"""``python -m tests.field``: what takes long and is read by people.

``soak --minutes N``: pumps under load, with others that come, go and are killed; a report of what
grows. ``mixed``: what a long body costs the short ones beside it. ``hints``: what wake-up hints
cost those who enqueue. Each takes ``--database postgresql|sqlite``.
"""

import argparse
import sys
from collections.abc import Sequence

from tests.field.stage import stage


def main(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.field", description=__doc__)
    parser.add_argument("command", choices=["soak", "mixed", "hints"])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--database", choices=["postgresql", "sqlite"], default="postgresql")
    options = parser.parse_args(arguments)
    with stage(options.database, settings={"track_commit_timestamp": "on"}) as directory:
        # Only now: they import models, and Django was just set up.
        from tests.field import measures, soak  # noqa: PLC0415 - see above

        if options.command == "soak":
            return soak.run(directory, seconds=options.minutes * 60)
        if options.command == "mixed":
            return measures.mixed(directory)
        return measures.hints()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
