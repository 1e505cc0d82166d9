"""Worker processes: started, watched and stopped."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testproject.bench.machine import cpu_seconds

ROOT = Path(__file__).resolve().parent.parent.parent


class TooSlow(RuntimeError):
    """What was waited for did not happen in time."""


def wait_until(
    fact: Callable[[], bool], *, seconds: float, what: str, every: float = 0.005
) -> float:
    """Wait until ``fact()`` holds; return the instant (CLOCK_MONOTONIC) at which it was seen."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            raise TooSlow(f"{what}: not within {seconds:g} s")
        time.sleep(every)
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class Workers:
    """A few worker processes of one contestant."""

    def __init__(self, command: Sequence[str], *, count: int, log: Path) -> None:
        self._log = log.open("ab")
        self._processes = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for _ in range(count)
        ]

    @property
    def pids(self) -> list[int]:
        """The process ids of those that were started here; their children are not in it."""
        return [process.pid for process in self._processes]

    def cpu(self) -> float:
        """CPU seconds so far, children included."""
        return sum(cpu_seconds(pid) for pid in self.pids)

    def check(self) -> None:
        """Raise when a worker ended by itself."""
        for process in self._processes:
            if process.poll() is not None:
                raise TooSlow(f"a worker ended with {process.returncode}; see {self._log.name}")

    def kill(self) -> None:
        """SIGKILL, the whole process group."""
        self._signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()

    def stop(self) -> None:
        """Ask to stop, then insist."""
        self._signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                process.wait()
        self._log.close()

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)


@contextmanager
def running(command: Sequence[str], *, count: int, log: Path) -> Iterator[Workers]:
    """Start workers; stop them at the end, whatever happened."""
    workers = Workers(command, count=count, log=log)
    try:
        yield workers
    finally:
        workers.stop()
