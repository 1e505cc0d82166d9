"""Raising ``JobTimedOut`` inside of a body, and nowhere else: ``timeout_mode="raise"``.

CPython raises an exception in another thread by noting it there; the thread comes across it some
instructions later, wherever it is by then. So there are three ways to miss: the body ends before
the note is written, or before it is read, or it never began. What is missed would hit the scope's
clean-up, the worker, or the next attempt on that thread.

There is one token per attempt, and taking it out of a list is one step for the interpreter. The
body's thread puts it down when the body begins, and takes it back when it ends. Who wants to
interrupt takes it first:

- the pump gets it: it writes the note, once, and rings. The body's thread, when it finds the token
  gone at the end, waits for the ring, and then runs over a few instructions at which the
  interpreter looks for notes. So a note that is still unread is read there, inside of ``run``;
- the body's thread gets it: no note will ever be written;
- the pump finds none, because the body has not begun: ``timed_out`` was set before the pump
  looked, and is looked at after the token was put down, so one of the two sees the other.

No lock is held by a body's thread meanwhile: an exception may come at any instruction, also at the
one after a lock was taken. Since a note is written once at most, ``run`` may be left at any
instruction by that exception, and then nothing is to come any more.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from backwave_django.core.errors import JobTimedOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from backwave_django.jobs.context import Signals

T = TypeVar("T")

#: Notes are looked for at each backward jump. One would do.
_JUMPS: Final = 20


class Interruption:
    """The guard around one body. It may be struck once, by the pump's thread."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._token: list[Callable[[], None]] = []
        self._task: asyncio.Task[object] | None = None
        signals.interrupt = self._strike

    def run(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns. Raises ``JobTimedOut`` in it when its time is over."""
        bell = threading.Lock()
        bell.acquire()
        self._token.append(partial(_raise_in, threading.get_ident(), bell))
        try:
            self._refuse_late()
            return call()
        finally:
            if not self._taken_back():
                bell.acquire()
                for _ in range(_JUMPS):
                    continue

    async def arun(self, call: Callable[[], Awaitable[T]]) -> T:
        """``run`` for async bodies: their task is cancelled, at the point where they wait.

        The loop's own thread does that, so the task stands still meanwhile: it is in the body as
        long as ``_task`` is there.
        """
        task = self._task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        loop = asyncio.get_running_loop()
        self._token.append(partial(_call_in, loop, self._cancel))
        try:
            self._refuse_late()
            return await call()
        except asyncio.CancelledError as error:
            if self._task is None:
                raise JobTimedOut from error
            raise
        finally:
            self._taken_back()
            if self._task is None:
                task.uncancel()
            self._task = None

    def _strike(self) -> None:
        """Called by the pump's thread when the time is over."""
        with suppress(IndexError):
            self._token.pop()()

    def _taken_back(self) -> bool:
        try:
            self._token.pop()
        except IndexError:
            return False
        return True

    def _refuse_late(self) -> None:
        if self._signals.timed_out:
            raise JobTimedOut

    def _cancel(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()


def _raise_in(thread: int, bell: threading.Lock) -> None:
    try:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(JobTimedOut)
        )
    finally:
        bell.release()


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: its body has ended
        loop.call_soon_threadsafe(callback)
