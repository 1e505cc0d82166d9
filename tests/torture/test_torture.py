"""A short torture of this run's kind of database, and what its command says.

``TORTURE_SECONDS`` (12) says for how long processes are tormented; then they come to rest.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from backwave_django.pumps.clock import SystemClock
from tests.torture.releases import PACKAGE, ROOT, last_tag, unpacked

SECONDS = os.environ.get("TORTURE_SECONDS", "12")
#: The command makes a database of its own, and is told about it by nobody.
OWN = {"DATABASE_URL", "DJANGO_SETTINGS_MODULE", "SHOP_VAR_DIR"}


def torture(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in OWN}
    command = [sys.executable, "-m", "tests.torture", "--database", connection.vendor]
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=environ,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.timeout(float(SECONDS) + 150)
def test_no_invariant_breaks_under_torture():
    # Another seed in each run of the suite: it is printed, and a failure is not a matter of luck.
    seed = str(int(SystemClock().now().timestamp()))
    done = torture("--seconds", SECONDS, "--seed", seed)
    print(done.stdout)  # noqa: T201 - shown with a failure, and swallowed otherwise
    assert done.returncode == 0
    assert "no invariant broke" in done.stdout
    assert f"seed {seed}" in done.stdout
    dead, observers = _counted(done.stdout, "dead letters"), _counted(done.stdout, "observers")
    assert dead == observers > 0
    tag = last_tag()
    assert (f"half of the pumps are of {tag}" if tag else "one release only") in done.stdout


def _counted(printed: str, what: str) -> int:
    found = re.search(rf", {what} ([\d,]+)", printed)
    assert found is not None, printed
    return int(found[1].replace(",", ""))


@pytest.fixture
def repository(tmp_path: Path, need_program: Callable[[str], str]) -> Path:
    """A repository whose last tag has other code than its files."""
    root = tmp_path / "repository"
    code = root / PACKAGE / "__init__.py"
    code.parent.mkdir(parents=True)
    who = ("-c", "user.name=torture", "-c", "user.email=torture@example.com")

    def git(*arguments: str) -> None:
        command = [need_program("git"), "-C", str(root), *who, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    git("init")
    for text in ("released", "developed"):
        code.write_text(text)
        git("add", ".")
        git("commit", "--no-gpg-sign", "-m", text)
        if text == "released":
            git("tag", "v1")
    return root


def test_the_last_release_is_unpacked_beside_this_one(repository: Path, tmp_path: Path) -> None:
    tag = last_tag(repository)
    assert tag == "v1"
    release = unpacked(tag, directory=tmp_path, root=repository)
    assert (release / PACKAGE / "__init__.py").read_text() == "released"
    assert last_tag(tmp_path) is None


def test_processes_of_another_release_take_its_package_and_our_jobs(tmp_path: Path) -> None:
    package = tmp_path / PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit(42)")
    code = "import pathlib, sys; from tests.torture import releases as r; "
    code += "r.pumps_of(pathlib.Path(sys.argv[1]))('strict')"
    begun = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(begun, cwd=ROOT, check=False).returncode == 42
