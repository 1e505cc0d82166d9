"""What the processes of a run have in common: a random stream of their own, and pauses."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from random import Random  # noqa: TID251 - seeded in ``stream``, and nowhere else
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from backwave_django.core.errors import StoreUnavailable
from backwave_django.pumps.clock import SystemClock

__all__ = ["EXPECTED", "Random", "Stop", "choose", "rounds", "stream", "tried"]

T = TypeVar("T")

#: What a client has to reckon with while a database restarts, is busy, or cuts its sessions.
EXPECTED = (StoreUnavailable, OperationalError, InterfaceError)


def stream(seed: int, name: str) -> Random:
    """Return the random stream of one member of a run: those of others do not move it."""
    return Random(f"{seed}/{name}")  # noqa: S311 - to be drawn again, not to be secret


class Stop:
    """Says when a process of a run should end: at a SIGTERM, or when its time is over."""

    def __init__(self, *, seconds: float = float("inf")) -> None:
        self._asked = threading.Event()
        self._clock = SystemClock()
        self._until = self._clock.mark() + seconds
        signal.signal(signal.SIGTERM, lambda *_: self._asked.set())

    def pause(self, seconds: float) -> bool:
        """Wait; return whether to go on."""
        left = max(0.0, min(seconds, self._until - self._clock.mark()))
        return not self._asked.wait(left) and self._clock.mark() < self._until


def rounds(stop: Stop, rng: Random, *, longest: float) -> Iterator[int]:
    """Count rounds with pauses of random length between them, until told to stop."""
    number = 0
    while stop.pause(rng.uniform(0, longest)):
        number += 1
        yield number


def choose(rng: Random, weights: Mapping[T, float]) -> T:
    """Pick one by weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def tried(act: Callable[[], T]) -> T | None:
    """Do it; nothing when the database is away, after which the next try begins anew."""
    try:
        return act()
    except EXPECTED:
        connection.close()
        return None
