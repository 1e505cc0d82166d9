"""Some minutes of the soak, so that the command works when somebody needs it."""

import os
import subprocess
import sys

import pytest
from django.db import connection

from tests.e2e.processes import ROOT


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", [("soak", "--minutes", "5"), ("mixed",), ("hints",)])
def test_what_people_run_by_hand_runs(command):
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.field", *command, "--database", connection.vendor],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    assert done.returncode == 0, done.stdout + done.stderr
