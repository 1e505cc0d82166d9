"""How a process is told to end: SIGTERM and SIGINT drain, a second one ends it now."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

DRAINED: Final = 0
WRONG_USAGE: Final = 1
HALTED: Final = 3
ABANDONED: Final = 4


def code_of(signum: int) -> int:
    """Return the exit code of a process that a signal ended: 143 for SIGTERM, 130 for SIGINT."""
    return 128 + signum


class StopSignals:
    """Catches the signals that end a process, as long as it is entered.

    ``first`` and ``again`` get the signal's number. They run on the main thread between any two
    steps of whatever it does: they may put something into a queue, and no more. Outside of the
    main thread nothing is caught.

    Afterwards the signals mean what they meant before; with ``ends_process``, nothing at all: the
    interpreter takes a while to end, and a signal would change the exit code that was decided.
    """

    def __init__(
        self,
        *,
        first: Callable[[int], object],
        again: Callable[[int], object] | None = None,
        ends_process: bool = False,
    ) -> None:
        self._first = first
        self._again = again or end_now
        self._ends_process = ends_process
        self._told = False
        self._before: dict[int, signal.Handlers | Callable[..., object] | int | None] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for signum in SIGNALS:
                self._before[signum] = signal.signal(signum, self._caught)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ends_process and kind is None:
            self.ignore()
            return
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def ignore(self) -> None:
        """Hear nothing any more: all is over that a signal could end."""
        for signum in self._before:
            # Not a function of ours: the interpreter takes those away before it is gone.
            signal.signal(signum, signal.SIG_IGN)

    def _caught(self, signum: int, _frame: FrameType | None) -> None:
        if self._told:
            self._again(signum)
        else:
            self._told = True
            self._first(signum)


def end_now(signum: int) -> None:
    """End this process at once, whatever still runs; its leases lapse."""
    os.write(2, b"backwave: second signal, ending now; running jobs will be recovered\n")
    os._exit(code_of(signum))
