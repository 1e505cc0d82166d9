"""Real ``runpumps`` processes on the test's database."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import UUID

from backwave_django.core.jobs import NewJob
from backwave_django.store import default_store
from tests.pumps.waiting import until

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent.parent


class Process:
    """One started command, its output in a file."""

    def __init__(self, arguments: list[str], *, environ: Mapping[str, str], log: Path) -> None:
        self.log_path = log
        self.was_told = False
        with log.open("wb") as sink:
            self._popen = subprocess.Popen(
                arguments, env=dict(environ), stdout=sink, stderr=sink, cwd=ROOT
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    @property
    def failed(self) -> bool:
        """Whether it ended badly, and not because a test wanted it to."""
        return not self.was_told and self._popen.poll() not in {None, 0}

    def signal(self, signum: int) -> None:
        self.was_told = True
        self._popen.send_signal(signum)

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it hard, and reap it, so that its pid is free."""
        self.was_told = True
        self._popen.kill()
        self._popen.wait(10)

    def wait(self, *, seconds: float = 30.0) -> int:
        """Return the exit code."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds:g} s:\n{self.log}") from None

    def close(self) -> None:
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGCONT)
            self.kill()


class Field:
    """Where one field case takes place: its ledger, its gate and its processes."""

    def __init__(self, *, environ: Mapping[str, str], directory: Path) -> None:
        self._directory = directory
        self._environ = environ
        self._processes: list[Process] = []
        self.gate = directory / "gate"

    def open_gate(self) -> None:
        """Let the bodies that wait for it end."""
        self.gate.touch()

    def runpumps(
        self,
        *options: str,
        group: str | None = "field",
        environ: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        **dials: Any,
    ) -> Process:
        """Start ``runpumps`` on the group ``field`` with these dials."""
        chosen = [] if group is None else ["--group", group]
        more = {"FIELD_DIALS": json.dumps(dials), **(environ or {})}
        return self.manage("runpumps", *chosen, *options, environ=more, prefix=prefix)

    def manage(
        self,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> Process:
        """Start any management command, by way of another program where ``prefix`` names one."""
        process = Process(
            [*prefix, sys.executable, "-m", "django", *arguments],
            environ={**self._environ, **(environ or {})},
            log=self._directory / f"process-{len(self._processes) + 1}.log",
        )
        self._processes.append(process)
        return process

    def until(self, fact: Callable[[], T], *, what: str = "") -> T:
        """Wait for a fact; fail at once when a process ends badly meanwhile."""

        def found() -> T | Literal[False]:
            answer = fact()
            assert answer or not any(process.failed for process in self._processes), self.logs()
            return answer or False

        return until(found, what=what or repr(fact))

    def close(self) -> None:
        for process in self._processes:
            process.close()

    def logs(self) -> str:
        return "\n".join(f"--- {p.log_path.name}\n{p.log}" for p in self._processes)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] != "Z"


def children_of(pid: int) -> list[int]:
    """The pids of a process's children that run ``runpumps``."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def enqueue_unknown(wire_name: str, *, job_id: UUID) -> None:
    """Enqueue a job that this process does not know, without arguments."""
    payload = '{"args": [], "kwargs": {}}'
    job = NewJob(id=job_id, wire_name=wire_name, queue="default", payload=payload)
    default_store().enqueue([job])


def await_death(pid: int) -> None:
    until(lambda: not is_alive(pid), what=f"process {pid} ends")
