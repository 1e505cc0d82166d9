"""What the operating system knows about the processes that are measured."""

import contextlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

import django
import psutil
from django.db import connection


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its living descendants and its reaped children."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
                total += times.children_user + times.children_system
    return total


def memory_mib(pid: int) -> float:
    """Resident memory of a process and its descendants."""
    root = psutil.Process(pid)
    family = (root, *root.children(recursive=True))
    return sum(process.memory_info().rss for process in family) / 2**20


def server_pid() -> int | None:
    """The postmaster's process id, when it runs on this machine and says so."""
    given = os.environ.get("BENCH_SERVER_PID")
    return int(given) if given else None


def environment() -> dict[str, Any]:
    """Versions and settings that a figure depends on."""
    return {
        "python": platform.python_version(),
        "django": django.get_version(),
        "database": _database(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
    }


def _database() -> dict[str, str]:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT sqlite_version()")
            return {"name": "SQLite", "version": str(cursor.fetchone()[0])}
        found = {"name": "PostgreSQL"}
        for name in ("server_version", "fsync", "synchronous_commit", "shared_buffers"):
            cursor.execute(f"SHOW {name}")
            found[name] = str(cursor.fetchone()[0])
        return found


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
