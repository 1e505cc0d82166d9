"""What clients and bodies saw, written down at once, by processes that may die in the next moment.

One file takes the lines of all of them. A line is written in one piece, and belongs to the system
as soon as it is: nothing but the end of the machine undoes it.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backwave_django.pumps.clock import SystemClock

VARIABLE = "TORTURE_JOURNAL"
_clock = SystemClock()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what happened, when by this machine's clock, in which process, and its details."""

    what: str
    at: float = 0.0
    pid: int = 0
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Journal:
    """The file of one run."""

    path: Path

    @classmethod
    def current(cls) -> "Journal":
        """The journal that the environment names."""
        return cls(Path(os.environ[VARIABLE]))

    def write(self, what: str, **data: object) -> None:
        """Append one line."""
        line = json.dumps([what, _clock.now().timestamp(), os.getpid(), data], default=str) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def read(self) -> list[Entry]:
        """All lines, in the order in which they were written."""
        if not self.path.exists():
            return []
        with self.path.open() as lines:
            return [Entry(*json.loads(line)) for line in lines]
