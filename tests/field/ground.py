"""A field with the settings and jobs of these cases, and what is known of its processes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it ships no types

from backwave_django.models import Pump
from tests.e2e.processes import Field, Process
from tests.pumps.waiting import until

#: Short enough to wait for, long enough for a machine that has other things to do.
QUICK = {
    "LEASE_DURATION": 3,
    "HEARTBEAT_INTERVAL": 0.6,
    "MAINTENANCE_INTERVAL": 0.5,
    "POLL_INTERVAL": 0.2,
}


class Ground(Field):
    """Where one case takes place."""

    def pump(
        self,
        *options: str,
        database: Mapping[str, Any] | None = None,
        top: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        **dials: Any,
    ) -> Process:
        """Start ``runpumps`` with the quick dials, where ``dials`` says nothing else.

        ``database`` holds settings of the database, ``top`` top-level settings of ``BACKWAVE``.
        """
        more = {
            "GROUND_DATABASE": json.dumps(database or {}),
            "FIELD_BACKWAVE": json.dumps(top or {}),
            **(environ or {}),
        }
        return self.runpumps(*options, environ=more, prefix=prefix, **{**QUICK, **dials})

    def ready(self, *options: str, pumps: int = 1, **more: Any) -> Process:
        """Start ``runpumps`` and wait until its pumps are registered."""
        before = set(Pump.objects.values_list("id", flat=True))
        process = self.pump(*options, **more)
        until(
            lambda: Pump.objects.exclude(id__in=before).count() >= pumps or self._is_over(process),
            what="the pumps are registered",
        )
        assert not self._is_over(process), process.log
        return process

    @property
    def environ(self) -> Mapping[str, str]:
        """What every process of this ground is started with."""
        return self._environ

    def living(self) -> list[Process]:
        """The processes that have not ended."""
        return [process for process in self._processes if not self._is_over(process)]

    def stop(self, *processes: Process) -> list[int]:
        """Tell processes to drain; return their exit codes."""
        for process in processes:
            process.terminate()
        return [process.wait() for process in processes]

    @staticmethod
    def _is_over(process: Process) -> bool:
        try:
            return bool(psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True


def cpu_seconds(process: Process) -> float:
    """How much of a core a process has used up so far."""
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def lines_of(path: Path) -> int:
    """How many lines a log has."""
    return len(path.read_text().splitlines())
