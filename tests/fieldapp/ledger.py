"""A plain file to which bodies append what happened, and what tests read out of it."""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import backwave_django as backwave

VARIABLE = "FIELD_LEDGER"


class Entry(NamedTuple):
    job_id: UUID
    attempt: int
    event: str
    thread: str
    pid: int
    at: float


def now() -> float:
    """The time that all processes of this machine agree on, in seconds."""
    return time.monotonic()  # noqa: TID251 - a ledger says when things really happened


def write(ctx: backwave.JobContext, event: str) -> None:
    """Append one line, in one piece."""
    entry = (ctx.job_id, ctx.attempt, event, threading.current_thread().name, os.getpid(), now())
    line = "\t".join(map(str, entry)) + "\n"
    handle = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What bodies have written so far."""

    path: Path

    def entries(self) -> list[Entry]:
        if not self.path.exists():
            return []
        rows = (line.split("\t") for line in self.path.read_text().splitlines())
        return [
            Entry(UUID(job_id), int(attempt), event, thread, int(pid), float(at))
            for job_id, attempt, event, thread, pid, at in rows
        ]

    def of(self, event: str) -> list[Entry]:
        return [entry for entry in self.entries() if entry.event == event]
