"""A short torture of this run's kind of database, and what its command says.

``TORTURE_SECONDS`` (12) says for how long processes are tormented; then they come to rest.
"""

import os
import subprocess
import sys

import pytest
from django.db import connection

from backwave_django.pumps.clock import SystemClock
from tests.torture.releases import ROOT, last_tag, unpacked

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
    tag = last_tag()
    assert (f"half of the pumps are of {tag}" if tag else "one release only") in done.stdout


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository's history")
def test_another_release_is_unpacked_beside_this_one(tmp_path):
    release = unpacked("HEAD", directory=tmp_path)
    code = "import backwave_django, tests.torture.jobs as j; print(backwave_django.__file__)"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(release), str(ROOT)))}
    environ |= {"DJANGO_SETTINGS_MODULE": "tests.torture.settings"}
    environ |= {"SHOP_VAR_DIR": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=release,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    )
    assert said.stdout.strip() == str(release / "backwave_django" / "__init__.py")
