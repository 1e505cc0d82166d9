"""Where other threads tell a pump what happened."""

from __future__ import annotations

import sys
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backwave_django.core.events import Event

#: No inbox ever holds as many events.
_NEVER: Final = sys.maxsize


class Inbox:
    """Many threads put events, one pump takes them, in order.

    ``put`` and ``slip`` never block; ``put`` may be called from a signal handler. ``put`` wakes
    the pump, ``slip`` only once as many events are there as it waits for: a thread that is woken
    for each of many small events does little else.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._wanted = _NEVER

    def put(self, event: Event) -> None:
        """Add an event, and wake the pump."""
        self._events.append(event)
        self._bell.put(None)

    def slip(self, event: Event) -> None:
        """Add an event; wake the pump if it waits for no more than there are."""
        self._events.append(event)
        if len(self._events) >= self._wanted:
            self._wanted = _NEVER
            self._bell.put(None)

    def take(self) -> list[Event]:
        """Return all that is there, at once."""
        get = self._events.popleft
        return [get() for _ in range(len(self._events))]

    def wait(self, *, seconds: float, at_least: int = 1) -> list[Event]:
        """Wait for one event that was put, or ``at_least`` ones; return all that is there.

        That may be nothing, when the time is over.
        """
        # Looked at after it was said what is wanted: whoever adds later rings.
        self._wanted = at_least
        if len(self._events) < at_least:
            self._listen(seconds)
        self._wanted = _NEVER
        return self.take()

    def _listen(self, seconds: float) -> None:
        try:
            self._bell.get(timeout=seconds)
            while True:
                self._bell.get_nowait()
        except Empty:
            return
