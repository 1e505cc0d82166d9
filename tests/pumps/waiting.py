"""Waiting on facts."""

import threading
from collections.abc import Callable
from typing import Literal, TypeVar

from backwave_django.pumps.clock import SystemClock

T = TypeVar("T")

PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.02


def until(
    fact: Callable[[], T | Literal[False]], *, seconds: float = PATIENCE_SECONDS, what: str = ""
) -> T:
    """Look until ``fact`` is true and return it; fail when it does not become so in time."""
    clock, pause = SystemClock(), threading.Event()
    deadline = clock.mark() + seconds
    while not (found := fact()):
        assert clock.mark() < deadline, f"not within {seconds:g} s: {what or fact}"
        pause.wait(_LOOK_SECONDS)
    return found
