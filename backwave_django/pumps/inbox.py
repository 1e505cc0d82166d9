"""Where other threads tell a pump what happened."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backwave_django.core.events import Event


class Inbox:
    """Many threads put events, one pump takes them, in order.

    ``put`` never blocks and may be called from a signal handler.
    """

    def __init__(self) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()
        # Bound once: thousands of events a second come through here.
        self.put = self._events.put

    def take(self) -> list[Event]:
        """Return all that is there, at once."""
        get = self._events.get_nowait
        return [get() for _ in range(self._events.qsize())]

    def wait(self, *, seconds: float) -> list[Event]:
        """Wait for an event; return all that is there, or nothing when the time is over."""
        try:
            first = self._events.get(timeout=seconds)
        except Empty:
            return []
        return [first, *self.take()]
