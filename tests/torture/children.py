"""Processes of a run: forked, so that a hundred of them cost no more than ten started anew."""

import ctypes
import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from django.core.management import CommandError, call_command

#: Lets a child write into its log where each of its threads is.
SHOW_STACKS = signal.SIGUSR1
_PR_SET_PDEATHSIG = 1
_TOLD_TO_END = {signal.SIGTERM}
_libc = ctypes.CDLL(None, use_errno=True)


class Child:
    """One process; it dies with the process that made it."""

    def __init__(self, act: Callable[[], int | None], *, log: Path) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.log = log
        self.code: int | None = None
        self.stopped = False
        parent = os.getpid()
        # Our own answer to it must not be the child's, not even for a moment.
        signal.pthread_sigmask(signal.SIG_BLOCK, _TOLD_TO_END)
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(act, log=log, parent=parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TOLD_TO_END)

    def poll(self) -> int | None:
        """The exit code as a shell says it (128 and the signal), if it has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._reaped(status)
        return self.code

    def wait(self) -> int:
        """Wait for the end."""
        if self.code is None:
            self._reaped(os.waitpid(self.pid, 0)[1])
        assert self.code is not None
        return self.code

    def _reaped(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.code = 128 - code if code < 0 else code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if there is somebody to take it."""
        if self.poll() is None:
            os.kill(self.pid, number)
            self.stopped = number == signal.SIGSTOP or (self.stopped and number != signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, and reap it."""
        self.signal(signal.SIGKILL)
        self.wait()


def die_with(parent: int) -> None:
    """Let this process be killed when its parent ends, in whatever way that ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(70)  # it ended before we could ask for that


def _be_child(act: Callable[[], int | None], *, log: Path, parent: int) -> None:
    """Become another process: never returns."""
    code = 70
    try:
        die_with(parent)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TOLD_TO_END)
        sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        faulthandler.register(SHOW_STACKS)
        code = act() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def runpumps(group: str) -> int:
    """Be a process that runs pumps of this tree."""
    try:
        call_command("runpumps", "--group", group)
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return error.returncode
    return 0


def exec_runpumps(group: str, *, path: Sequence[Path], environ: Mapping[str, str]) -> int:
    """Be a process that runs pumps of another tree."""
    joined = os.pathsep.join(map(str, path))
    arguments = [sys.executable, "-m", "django", "runpumps", "--group", group]
    os.chdir(path[0])  # which comes before all others in the path of ``python -m``
    os.execve(sys.executable, arguments, {**environ, "PYTHONPATH": joined})  # noqa: S606 - our own
