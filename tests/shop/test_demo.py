import os
import subprocess
import sys
from pathlib import Path

import pytest

MANAGE = Path(__file__).resolve().parents[2] / "testproject" / "manage.py"
SECONDS = 150


def demo(tmp_path, *arguments):
    environ = {**os.environ, "SHOP_VAR_DIR": str(tmp_path)}
    return subprocess.run(
        [sys.executable, str(MANAGE), "demo", *arguments],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.vendor("sqlite")
def test_demo_works_off_its_orders_on_sqlite_and_goes_on_with_what_was_left(tmp_path):
    done = demo(tmp_path, "--orders", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SQLite" in done.stdout
    assert "60 of 60 jobs have ended" in done.stdout
    assert "succeeded" in done.stdout
    assert "dead_lettered" in done.stdout
    assert "runserver" in done.stdout
    more = demo(tmp_path, "--orders", "21", "--keep")
    assert more.returncode == 0, more.stdout + more.stderr
    assert "Imported 1 orders with 3 jobs" in more.stdout
    assert "63 of 63 jobs have ended" in more.stdout


@pytest.mark.vendor("postgresql")
def test_demo_works_off_its_orders_on_postgresql(tmp_path):
    done = demo(tmp_path, "--postgres", "--orders", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PostgreSQL 18" in done.stdout
    assert "60 of 60 jobs have ended" in done.stdout
    assert "succeeded" in done.stdout
    assert "dead_lettered" in done.stdout


def test_demo_refuses_to_keep_a_private_server(tmp_path):
    done = demo(tmp_path, "--postgres", "--keep")
    assert done.returncode == 1
    assert "--keep goes with SQLite" in done.stderr
