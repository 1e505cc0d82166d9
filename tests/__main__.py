"""``python -m tests``: the whole suite, on SQLite and on PostgreSQL.

Arguments are handed to pytest, except ``--database sqlite|postgresql``, which makes one run only.
PostgreSQL is a private server out of a wheel, unless ``DATABASE_URL`` names one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from testproject.devpostgres import PrivatePostgres

ROOT = Path(__file__).resolve().parent.parent
TITLES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
DATABASES = tuple(TITLES)
TIMEOUT_SECONDS = 180
WORKERS = 3

# What touches no database needs no second run.
DATABASE_FREE = (
    "tests/core",
    "tests/simulation",
    "tests/typing",
    "tests/test_tidy.py",
    "tests/test_public_api.py",
)


def main(arguments: Sequence[str]) -> int:
    """Run the tests on each database in turn and say how it went. Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--database", choices=DATABASES, action="append")
    options, rest = parser.parse_known_args(arguments)
    results: dict[str, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory(prefix="backwave-bytecode-") as bytecode:
        for database in options.database or DATABASES:
            started = time.perf_counter()
            _say(f"\n{TITLES[database]}\n{'=' * len(TITLES[database])}")
            with _url_of(database) as url:
                code = _pytest(rest, url=url, bytecode=bytecode, again=bool(results))
            results[database] = (code, time.perf_counter() - started)
    _say("")
    for database, (code, seconds) in results.items():
        _say(f"{TITLES[database]}: {_verdict(code)} in {seconds:.0f} s")
    return _worst([code for code, _ in results.values()])


def _verdict(code: int) -> str:
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        return "no test for it was chosen"
    return "passed" if code == 0 else f"FAILED (pytest ended with {code})"


def _worst(codes: Sequence[int]) -> int:
    """The exit code of it all. A choice of tests may leave one database without any, not both."""
    of_tests = [abs(code) for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED]
    return max(of_tests, default=int(pytest.ExitCode.NO_TESTS_COLLECTED))


@contextmanager
def _url_of(database: str) -> Iterator[str]:
    """The ``DATABASE_URL`` of a run; empty for the default, which is SQLite."""
    given = os.environ.get("DATABASE_URL", "")
    if database == "sqlite":
        yield ""
    elif given.startswith(("postgres://", "postgresql://")):
        yield given
    else:
        with PrivatePostgres(settings={"fsync": "off"}) as server:
            yield server.create_database("shop")


def _pytest(arguments: Sequence[str], *, url: str, bytecode: str, again: bool) -> int:
    unwanted = {"DATABASE_URL", "PYTHONDONTWRITEBYTECODE"}
    environ = {key: value for key, value in os.environ.items() if key not in unwanted}
    # Tests start hundreds of processes. None should compile what another one has compiled.
    environ["PYTHONPYCACHEPREFIX"] = bytecode
    if url:
        environ["DATABASE_URL"] = url
    # One more than there are cores, since many tests wait for something.
    defaults = [f"--timeout={TIMEOUT_SECONDS}", f"-n{WORKERS}", "-q"]
    ignored = [f"--ignore={path}" for path in DATABASE_FREE] if again else []
    command = [sys.executable, "-m", "pytest", *defaults, *ignored, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
