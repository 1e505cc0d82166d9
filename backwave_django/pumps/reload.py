"""``--reload``: a parent that starts its child anew when code changes, for development."""

from __future__ import annotations

import logging
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from django.utils.autoreload import iter_all_python_module_files

from backwave_django.pumps.children import Child, end_all
from backwave_django.pumps.shutdown import ABANDONED, DRAINED, StopSignals, code_of

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger("backwave.pump")

LOOK_SECONDS: Final = 1.0


def snapshot() -> dict[Path, float]:
    """Return when each file that this process has imported was last changed."""
    found: dict[Path, float] = {}
    for path in iter_all_python_module_files():
        try:
            found[path] = path.stat().st_mtime
        except OSError:
            continue  # gone, or being replaced by an editor right now
    return found


class Reloader:
    """Keeps one child running the code as it is on disk.

    On a change the child drains, and the next one starts when it is gone. A child that fails, by
    a syntax error for example, is started again with the next change.
    """

    def __init__(self) -> None:
        self._news: SimpleQueue[Child | int] = SimpleQueue()
        self._files = snapshot()
        self._child: Child | None = None
        self._stale = False
        self._draining = False
        self._code = DRAINED

    def run(self, *, ends_process: bool = False) -> int:
        """Run until a signal ends it; return the exit code of the last child.

        With ``ends_process`` no signal is heard after that: the caller ends with this code.
        """
        put = self._news.put
        with StopSignals(first=put, again=put, ends_process=ends_process):
            self._start()
            while not (self._draining and self._child is None):
                try:
                    news = self._news.get(timeout=LOOK_SECONDS)
                except Empty:
                    self._look()
                    continue
                if isinstance(news, Child):
                    self._ended(news)
                elif self._draining:
                    end_all((self._child,) if self._child else ())
                    return code_of(news)
                else:
                    self._draining = True
                    if self._child is not None:
                        self._child.terminate()
        return self._code

    def _start(self) -> None:
        self._stale = False
        self._child = Child(ended=self._news.put)

    def _look(self) -> None:
        files = snapshot()
        changed = sorted(str(path) for path, at in files.items() if self._files.get(path, at) != at)
        self._files = files
        if not changed or self._draining:
            return
        logger.info("%s changed, starting anew", changed[0])
        if self._child is None:
            self._start()
        elif not self._stale:
            self._stale = True
            self._child.terminate()

    def _ended(self, child: Child) -> None:
        self._child = None
        self._code = child.code or DRAINED
        if self._draining:
            return
        if self._stale:
            self._start()
        elif self._code in {DRAINED, ABANDONED}:
            self._draining = True  # it had a rule when to stop, and has stopped
        else:
            logger.error("the process ended with %s: waiting for a change", child.code)
