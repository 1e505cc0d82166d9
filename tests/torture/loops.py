"""What the processes of a run have in common: a random stream of their own, and pauses."""

import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError, connection

from backwave_django.core.errors import StoreUnavailable
from backwave_django.pumps.clock import SystemClock

T = TypeVar("T")

#: What a client has to reckon with while a database restarts, is busy, or cuts its sessions.
EXPECTED = (StoreUnavailable, OperationalError, InterfaceError)
assert not issubclass(ImproperlyConfigured, EXPECTED)


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


def rounds(stop: Stop, rng: random.Random, *, longest: float) -> Iterator[int]:
    """Count rounds with pauses of random length between them, until told to stop."""
    number = 0
    while stop.pause(rng.uniform(0, longest)):
        number += 1
        yield number


def choose(rng: random.Random, weights: Mapping[T, float]) -> T:
    """Pick one by weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def tried(act: Callable[[], T]) -> T | None:
    """Do it; nothing when the database is away, after which the next try begins anew."""
    try:
        return act()
    except EXPECTED:
        connection.close()
        return None
