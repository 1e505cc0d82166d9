"""Who this process is, and which processes of this host are gone."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_PAGE_FIELD = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the registry knows of a process.

    ``boot_id`` and ``pid_namespace`` are empty where the system has none: then nobody is told
    dead by its process id.
    """

    hostname: str
    pid: int
    boot_id: str
    pid_namespace: str
    version: str

    @property
    def node(self) -> str:
        """The name of this process among all."""
        return f"{self.hostname}:{self.pid}"


def this_process() -> Identity:
    """Return who this process is."""
    return Identity(
        hostname=socket.gethostname(),
        pid=os.getpid(),
        boot_id=_boot_id(),
        pid_namespace=_pid_namespace(),
        version=metadata.version("backwave-django"),
    )


def is_gone(pid: int) -> bool:
    """Tell whether no process ``pid`` runs here: it never was, ended, or waits to be reaped.

    A pid that was given to another process counts as running. Our own pid counts as gone: it
    must have been somebody else's before, as this process has just started.
    """
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it runs, and belongs to another user
    return _is_zombie(pid)


def memory_bytes() -> int:
    """Return the resident memory of this process, or 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[_PAGE_FIELD]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _is_zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # The command's name stands in brackets and may hold anything.
    return stat.rpartition(")")[2].split()[:1] == ["Z"]


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str(_PID_NAMESPACE.stat().st_ino)
    except OSError:
        return ""
