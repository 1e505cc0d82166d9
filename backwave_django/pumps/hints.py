"""Wake-up hints: from whoever enqueues to the pumps of this process.

Nothing here is needed for correctness: with every hint lost, pumps poll. Three ways a hint comes:
from this process without the database; from others through PostgreSQL's NOTIFY, on one connection
that is nobody else's; on SQLite, by watching the file's version.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, Protocol, Self

from django.db import connections

from backwave_django.core.events import CancelHinted, DueHinted
from backwave_django.pumps.listeners import FileWatch, PostgresListener
from backwave_django.store.hints import Hint, hub

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from backwave_django.conf import Config
    from backwave_django.pumps.pump import Pump

logger = logging.getLogger("backwave.pump")

ANY: Final = Hint(None)
_JOIN_SECONDS: Final = 2.0


class Listener(Protocol):
    """Hears hints from outside of this process."""

    def run(self, tell: Callable[[Hint], None]) -> None:
        """Listen, and ``tell`` each hint, until closed. Raises nothing that time heals."""

    def close(self) -> None:
        """Let ``run`` return soon. Safe from another thread, more than once."""


class HintSource:
    """Puts hints into the inboxes of the pumps they concern, as long as it is entered."""

    def __init__(self, config: Config, pumps: Sequence[Pump]) -> None:
        self._pumps = pumps
        self._unsubscribe: Callable[[], object] | None = None
        self._listener = _listener(config)
        self._thread = threading.Thread(target=self._listen, name="backwave-hints", daemon=True)

    def __enter__(self) -> Self:
        self._unsubscribe = hub.subscribe(self.tell)
        if self._listener is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._listener is not None:
            self._listener.close()
            self._thread.join(_JOIN_SECONDS)

    def tell(self, hint: Hint) -> None:
        """Pass a hint on. Safe from any thread."""
        for pump in self._pumps:
            queues = pump.config.queues
            if hint.cancel:
                pump.inbox.put(CancelHinted())
            elif hint.queue is None:
                pump.inbox.put(DueHinted(queue=queues[0], priority=0))
            elif hint.queue in queues:
                pump.inbox.put(DueHinted(queue=hint.queue, priority=hint.priority))

    def _listen(self) -> None:
        listener = self._listener
        assert listener is not None, "started with a listener only"
        try:
            listener.run(self.tell)
        except Exception:
            logger.exception("hints from other processes are off: pumps go on by polling")
        finally:
            connections.close_all()


def _listener(config: Config) -> Listener | None:
    vendor = connections[config.database].vendor
    if vendor == "postgresql":
        if config.pooler is not None and config.direct_url is None:
            return None  # a transaction pooler hands LISTEN to anybody
        return PostgresListener(using=config.database, direct_url=config.direct_url)
    if vendor == "sqlite":
        return FileWatch.of(using=config.database)
    return None
