"""How work gets from one thread to many, with no more threads woken than are of use.

A thread that is woken costs more than a small body does, and under the interpreter's lock twenty of
them only queue up behind each other. So one idle thread is woken at a time, and it wakes the next
one if there is work left when its turn comes: bodies that wait for something let the others in at
once. (Go's scheduler keeps one thread looking for work in the same way.)

Brisk items can be given to be taken in a row: whoever takes one wakes nobody, until the giver says
that it has seen enough of that. A body gives up the lock each time it writes or waits; if others
are awake by then, every write is a change of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

_FOR_EVER: Final = -1.0


class Handover(Generic[T]):
    """A queue that one thread fills and many empty. ``give`` never blocks."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        #: Of threads that wait, the last one first: what it keeps is still warm.
        self._idle: deque[threading.Lock] = deque()
        # True from the moment when a thread is woken until it runs. It looks for work then, so
        # nobody else needs to be woken meanwhile.
        self._waking = False
        self._in_a_row = False

    def give(self, items: Iterable[T], *, in_a_row: bool = False) -> None:
        """Add items, and see that somebody takes them.

        With ``in_a_row`` one thread is enough for them. Whoever says so calls ``spread`` soon, and
        before it waits for anything: one of them may take its time after all.
        """
        self._in_a_row = in_a_row
        self._items.extend(items)
        self._wake()

    def spread(self) -> None:
        """Let all idle threads take what is left."""
        if self._in_a_row:
            self._in_a_row = False
            if self._items:
                self._wake()

    def taker(self, *, rest_seconds: float, rested: Callable[[], object]) -> Callable[[], T]:
        """Return the function by which the calling thread takes items, waiting if there is none.

        ``rested`` is called once it has waited for ``rest_seconds``.
        """
        bell = threading.Lock()
        bell.acquire()

        def take() -> T:
            while True:
                try:
                    item = self._items.popleft()
                except IndexError:
                    self._park(bell, rest_seconds=rest_seconds, rested=rested)
                    continue
                if self._items and not self._in_a_row:
                    self._wake()
                return item

        return take

    def _wake(self) -> None:
        if self._waking:
            return
        try:
            bell = self._idle.pop()
        except IndexError:
            return  # all are at work, and look here when they are done
        self._waking = True
        bell.release()

    def _park(
        self, bell: threading.Lock, *, rest_seconds: float, rested: Callable[[], object]
    ) -> None:
        """Wait until something may be there."""
        self._idle.append(bell)
        if self._items and self._left(bell):
            return  # it came while nobody could know that this thread is idle
        if bell.acquire(timeout=rest_seconds):
            self._waking = False
        elif self._left(bell):
            rested()
            self._park(bell, rest_seconds=_FOR_EVER, rested=rested)
        else:
            bell.acquire()
            self._waking = False

    def _left(self, bell: threading.Lock) -> bool:
        """Step out of the line, unless somebody has already rung."""
        try:
            self._idle.remove(bell)
        except ValueError:
            return False
        return True
