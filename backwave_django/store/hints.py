"""Wake-up hints: something may be due, look now. Nothing depends on them.

Pumps of this process are told at once when the transaction commits. Other processes hear a
NOTIFY: one for a queue, then none for a moment, because each takes a lock that all committing
transactions share. A pump that was told looks once more after that moment, which covers the
swallowed ones.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from backwave_django.core.bounds import HINT_WINDOW
from backwave_django.store.faults import DATABASE_ERRORS
from backwave_django.store.names import Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from backwave_django.store.room import Room

logger = logging.getLogger("backwave.store")

#: The channel of NOTIFY. A channel belongs to one database, so its name need not.
CHANNEL: Final = "backwave"
#: What begins the payload that a process sends to itself, to find out whether hints arrive.
_PROBE: Final = '{"probe": '
#: PostgreSQL refuses a payload of 8,000 bytes.
_LONGEST_PAYLOAD: Final = 7_999


class Hint(NamedTuple):
    """Something may be due in ``queue`` (``None``: in any) at ``priority``, as callers write it.

    ``cancel`` says instead that a running job may have been asked to stop.
    """

    queue: str | None
    priority: int = 0
    cancel: bool = False


ANY: Final = Hint(None)


def encode(hint: Hint) -> str:
    """Return the payload of a NOTIFY."""
    if hint.cancel:
        return '{"cancel": true}'
    payload = json.dumps({"q": hint.queue, "p": hint.priority})
    return payload if len(payload) <= _LONGEST_PAYLOAD else "{}"


def probe(token: str) -> str:
    """Return the payload of a NOTIFY that hints at nothing: its sender looks out for it."""
    return f'{_PROBE}"{token}"}}'


def is_probe(payload: str) -> bool:
    """Tell whether ``probe`` made this payload, here or in another process."""
    return payload.startswith(_PROBE)


@lru_cache(maxsize=256)
def decode(payload: str) -> Hint:
    """Return what ``encode`` wrote; for anything else, a hint that names no queue."""
    try:
        said = json.loads(payload)
    except ValueError:
        return ANY
    if not isinstance(said, dict):
        return ANY
    if said.get("cancel") is True:
        return Hint(None, cancel=True)
    queue, priority = said.get("q"), said.get("p")
    return Hint(queue, priority) if isinstance(queue, str) and isinstance(priority, int) else ANY


class Hub:
    """Passes hints to the listeners of this process, and says which go out of it.

    Safe to use from any thread. ``clock`` counts seconds from anywhere.
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[Hint], object], ...] = ()
        self._sent: dict[tuple[str, str | None], float] = {}

    def subscribe(self, listener: Callable[[Hint], object]) -> Callable[[], None]:
        """Let ``listener`` hear of every hint; return what ends that.

        It is called on the thread that committed, and must only put the hint into an inbox.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(each for each in self._listeners if each is not listener)

        return unsubscribe

    def tell(self, hint: Hint) -> None:
        """Pass ``hint`` on. A listener that fails is logged and stays nobody else's problem."""
        for listener in self._listeners:
            try:
                listener(hint)
            except Exception:
                logger.exception("a listener for hints failed on %r", hint)

    def may_send(self, using: str, hint: Hint) -> bool:
        """Tell whether no hint for the same queue of ``using`` went out a moment ago."""
        sent_at = self._sent.get((using, hint.queue))
        return (
            hint.cancel or sent_at is None or self._clock() - sent_at >= HINT_WINDOW.total_seconds()
        )

    def sent(self, using: str, hint: Hint) -> None:
        """Note that a hint went out: nobody needs another one for a moment."""
        self._sent[using, hint.queue] = self._clock()


#: The hub of this process.
hub: Final = Hub()

_NOTIFY: Final = Statement("SELECT pg_notify(%(channel)s, %(payload)s)")


def announce(room: Room, lanes: Iterable[tuple[str, int]]) -> None:
    """Tell pumps, once what was written is committed, that something is due in ``lanes``.

    Lanes are queues with priorities as callers write them.
    """
    hints = dict.fromkeys(Hint(queue, priority) for queue, priority in lanes)
    if hints and room.hints:
        _promise(room, hints)


def announce_any(room: Room) -> None:
    """Tell pumps, once it is committed, that something may be due in any queue."""
    if room.hints:
        _promise(room, {ANY: None})


def announce_cancel(room: Room) -> None:
    """Tell pumps, once it is committed, that a running job was asked to stop."""
    if room.hints:
        _promise(room, {Hint(None, cancel=True): None})


class _Announcement:
    """Hints to be spread when their transaction commits; more may join until then."""

    def __init__(self, room: Room, hints: dict[Hint, None]) -> None:
        self._room = room
        self.hints = hints

    def __call__(self) -> None:
        _spread(self._room, self.hints)


def _promise(room: Room, hints: dict[Hint, None]) -> None:
    """Spread ``hints`` at the commit, each once, however many jobs the transaction enqueues."""
    waiting = room.executor.last_promise()
    if isinstance(waiting, _Announcement):
        waiting.hints.update(hints)
    else:
        room.executor.on_commit(_Announcement(room, hints))


def _spread(room: Room, hints: Iterable[Hint]) -> None:
    for hint in hints:
        hub.tell(hint)
    if room.executor.vendor == "postgresql":
        using = room.executor.using
        for hint in hints:
            if hub.may_send(using, hint):
                _send(room, hint)


def _send(room: Room, hint: Hint) -> None:
    try:
        room.executor.fetch(_NOTIFY, {"channel": CHANNEL, "payload": encode(hint)})
    except DATABASE_ERRORS as error:
        # What was enqueued is committed: the caller must not hear of this.
        logger.warning("a hint was not sent, pumps of other processes will poll: %s", error)
    else:
        hub.sent(room.executor.using, hint)
