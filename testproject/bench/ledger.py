"""The proof of what ran and when: fixed-size records, each appended by one write.

Fixed size, so that counting them while a worker runs is a look at the size of the file. The clock
is CLOCK_MONOTONIC, which all processes of a machine share.
"""

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RECORD = struct.Struct("<B3xId")
START, END = 1, 2


class Entry(NamedTuple):
    """One record: a body of job number ``job`` began (``START``) or returned (``END``)."""

    kind: int
    job: int
    at: float


class Ledger:
    """The file that ``BENCH_LEDGER`` names. Opened at first use, in each process on its own."""

    def __init__(self, path: str | None = None) -> None:
        self.path = Path(path or os.environ["BENCH_LEDGER"])
        self._fd: int | None = None

    def write(self, kind: int, job: int) -> None:
        """Append one record."""
        if self._fd is None:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(self._fd, RECORD.pack(kind, job, time.clock_gettime(time.CLOCK_MONOTONIC)))

    def clear(self) -> None:
        """Empty the file."""
        self.path.write_bytes(b"")

    def count(self) -> int:
        """Return how many records were written."""
        return self.path.stat().st_size // RECORD.size

    def entries(self) -> Iterator[Entry]:
        """Iterate over all records in the order they were written."""
        return map(Entry._make, RECORD.iter_unpack(self.path.read_bytes()))
