"""Ids of jobs, leases and pumps: UUID version 7, so that rows arrive in index order.

The one place beside the pumps' clock that reads the wall clock, and the one that draws entropy.
"""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNTER_BITS: Final = 74
# Ids of one millisecond count up in steps that nobody can guess; 42 bits remain for the count.
_STEP_BYTES: Final = 4
_POOL_BYTES: Final = 4096


class IdSource:
    """Makes ids that strictly increase within the process, whatever the wall clock does.

    Safe to call from any thread; ``reseed`` makes it safe after a fork.
    """

    def __init__(
        self, *, clock_ns: Callable[[], int] = time.time_ns, entropy: Callable[[int], bytes]
    ) -> None:
        self._clock_ns = clock_ns
        self._entropy = entropy
        self._last_ms = -1
        self.reseed()

    def reseed(self) -> None:
        """Forget what a parent process also knows: the lock's state and unused entropy."""
        self._lock = threading.Lock()
        self._pool = b""
        self._used = 0
        self._counter = -1

    def new(self) -> UUID:
        """Return an id greater than every id returned before in this process."""
        with self._lock:
            now_ms = self._clock_ns() // 1_000_000
            if now_ms > self._last_ms or self._counter < 0:
                # Half the range is left free above the start, so that the count cannot run over.
                self._last_ms = max(now_ms, self._last_ms + (self._counter < 0 <= self._last_ms))
                self._counter = self._draw(10) >> (80 - _COUNTER_BITS + 1)
            else:
                self._counter += 1 + self._draw(_STEP_BYTES)
            return _assemble(self._last_ms, self._counter)

    def _draw(self, size: int) -> int:
        start = self._used
        if start + size > len(self._pool):
            self._pool = self._entropy(_POOL_BYTES)
            start = 0
        self._used = start + size
        return int.from_bytes(self._pool[start : self._used], "big")


def _assemble(milliseconds: int, counter: int) -> UUID:
    high, low = counter >> 62, counter & 0x3FFF_FFFF_FFFF_FFFF
    return UUID(int=milliseconds << 80 | 0x7 << 76 | high << 64 | 0x2 << 62 | low)


def instant_of(made: UUID) -> datetime:
    """Return when an id of this module was made, to the millisecond."""
    return datetime.fromtimestamp((made.int >> 80) / 1000, tz=UTC)


_source: Final = IdSource(entropy=os.urandom)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_source.reseed)

new_id: Final = _source.new
