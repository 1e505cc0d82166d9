import os
import subprocess

from backwave_django.pumps.identity import is_gone, memory_bytes, this_process
from backwave_django.pumps.processes import MOST_DEATHS, Place


def test_a_dead_child_starts_again_at_once_and_then_ever_later():
    place = Place(1)
    waits = []
    for _ in range(MOST_DEATHS - 1):
        assert not place.died(at=100.0)
        waits.append(place.start_at)
    assert waits == [100, 101, 102, 104]
    assert place.died(at=101.0)


def test_deaths_of_more_than_a_minute_ago_are_forgotten():
    place = Place(1)
    assert not any(place.died(at=at) for at in range(0, 1_000, 20))


def test_a_process_is_gone_once_it_has_ended_even_before_it_is_reaped():
    assert not is_gone(os.getppid())
    child = subprocess.Popen(["true"])  # noqa: S607 - found on PATH
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(child.pid)
    child.wait()
    assert is_gone(child.pid)


def test_our_own_pid_was_somebody_elses_before():
    assert is_gone(os.getpid())


def test_this_process_knows_who_it_is():
    identity = this_process()
    assert identity.pid == os.getpid()
    assert identity.node.endswith(f":{os.getpid()}")
    assert memory_bytes() > 1_000_000
