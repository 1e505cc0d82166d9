"""The scope of one attempt: what it gets for itself, closed when it ends.

Python's and Django's context variables (language, time zone, URL configuration) are as a thread
finds them that has done nothing yet. Database connections are opened at first use. Services live
in a container of their own and are closed in reverse order. What hides elsewhere in a thread or a
process (``threading.local``, the environment, the working directory) is shared by all attempts.
"""

from __future__ import annotations

import logging
import os
from contextvars import copy_context
from typing import TYPE_CHECKING, NoReturn, TypeVar

from django.conf import settings
from django.core.cache import caches, close_caches
from django.core.cache.backends.base import BaseCache

from backwave_django.pumps.isolation import close_connections, keep_healthy_connections

if TYPE_CHECKING:
    from collections.abc import Callable

    import svcs

T = TypeVar("T")
logger = logging.getLogger("backwave.job")


class Services:
    """The container of one attempt, made when it is first asked for."""

    def __init__(self, new_container: Callable[[], svcs.Container]) -> None:
        self._new_container = new_container
        self._container: svcs.Container | None = None

    def __call__(self) -> svcs.Container:
        """Return the container."""
        if self._container is None:
            self._container = self._new_container()
        return self._container

    def close(self) -> None:
        """Close all that was opened, the last first. A clean-up that raises is logged."""
        if self._container is None:
            return
        try:
            # Without the body's exception: what follows a factory's yield runs in any case.
            self._container.close()
        except BaseException:
            logger.exception("a service did not close")


class Scopes:
    """Opens a scope per attempt. Used by all workers of a pump.

    ``new_container`` is called in attempts that use services.
    """

    def __init__(
        self, *, new_container: Callable[[], svcs.Container], reuse_connections: bool
    ) -> None:
        self._new_container = new_container
        self._give_back = keep_healthy_connections if reuse_connections else close_connections
        self._pid = os.getpid()
        # Most cache backends have nothing to close, and looking takes as long as a small body.
        self._closes_caches = True

    def warm(self) -> None:
        """Prepare the calling thread: attempts start from copies of what it has by then.

        Cache clients live in context variables; without this each attempt would build its own.
        """
        for alias in settings.CACHES:
            try:
                caches[alias]
            except Exception:  # bodies that do not use it shall run all the same
                logger.warning("the cache %r cannot be opened", alias, exc_info=True)
        self._closes_caches = any(
            type(client).close is not BaseCache.close
            for client in caches.all(initialized_only=True)
        )

    def run(self, call: Callable[[Services], T]) -> T:
        """Return what ``call`` returns inside a scope of its own, which is closed then.

        ``call`` raises nothing.
        """
        return copy_context().run(self._inside, call)

    def _inside(self, call: Callable[[Services], T]) -> T:
        services = Services(self._new_container)
        try:
            return call(services)
        finally:
            if os.getpid() != self._pid:
                _end_of_fork()
            services.close()
            self._give_back()
            if self._closes_caches:
                close_caches()


def _end_of_fork() -> NoReturn:
    """End a child process that a body forked and let run out of the body.

    It is a copy of a worker: it would report the attempt a second time and wait for jobs for ever,
    and what it closed would be its parent's.
    """
    os.write(2, b"backwave: a forked child returned from its job's body, and ends here\n")
    os._exit(1)
