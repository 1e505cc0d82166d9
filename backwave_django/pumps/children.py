"""Child processes that run the same command as this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from django.utils.autoreload import get_child_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

#: The hidden option that tells a child which of its files ends when its parent does.
CHILD_OPTION: Final = "--child-of"
_KILL_SECONDS: Final = 1.0


class Child:
    """One child process. ``ended`` is called with it, on a thread of its own, when it is gone.

    It has a process group of its own, so that a terminal's Ctrl-C reaches it through its parent
    only, once. It drains by itself when the parent dies: the pipe between them closes then.
    """

    def __init__(self, *, ended: Callable[[Child], object]) -> None:
        reading, self._writing = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                [*get_child_arguments(), CHILD_OPTION, str(reading)],
                pass_fds=(reading,),
                process_group=0,
            )
        finally:
            os.close(reading)
        self._ended = ended
        self._thread = threading.Thread(target=self._wait, name="backwave-child", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code: negative for a signal that killed it, ``None`` while it runs."""
        return self._process.returncode

    def terminate(self) -> None:
        """Ask it to drain; asked again, it ends now."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, within a second, whatever it does."""
        self._process.kill()

    def wait(self, *, seconds: float = _KILL_SECONDS) -> bool:
        """Wait for its end; tell whether it came."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def is_waited_for(self) -> bool:
        """Tell whether it runs, or whoever was told of its end is not done with that."""
        return self._thread.is_alive()

    def join(self, *, seconds: float) -> None:
        """Wait until whoever was told of its end is done with that."""
        self._thread.join(seconds)

    def _wait(self) -> None:
        self._process.wait()
        os.close(self._writing)
        self._ended(self)


def end_all(children: tuple[Child, ...]) -> None:
    """End children now: with a second signal, and by force where that does nothing."""
    for child in children:
        child.terminate()
    for child in children:
        if not child.wait():
            child.kill()
            child.wait()


def follow_parent(descriptor: int) -> None:
    """Drain this process once its parent is gone, in whatever way."""
    pipe = os.fdopen(os.dup(descriptor), "rb")  # a duplicate is closed in the jobs' own children
    os.close(descriptor)

    def watch() -> None:
        pipe.read()
        sys.stderr.write("backwave: the parent process is gone, draining\n")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="backwave-parent", daemon=True).start()
