"""A wire between pumps and their server, on which answers get lost at the right moment."""

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

#: What ends an answer of a PostgreSQL that is in no transaction: everything before is committed.
IDLE = b"Z\x00\x00\x00\x05I"
_CHUNK = 1 << 16


class Wire:
    """Forwards connections to a PostgreSQL, as long as it is entered.

    ``lose``: once ``marker`` has gone by, in either direction, the answer that says that its
    transaction is over is dropped, and the connection is cut. ``hang``: nothing gets through any
    more, and nobody is told.
    """

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._marker: bytes | None = None
        self._flowing = threading.Event()
        self._flowing.set()
        self.lost = threading.Event()

    @property
    def url(self) -> str:
        """The ``DATABASE_URL`` of the same database by way of this wire."""
        port = self._listening.getsockname()[1]
        user = self._parts.netloc.rpartition("@")[0]
        return urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{port}"))

    def lose(self, marker: str) -> None:
        """Lose the next answer that has to do with ``marker``; ``lost`` is set when it is."""
        self.lost.clear()
        self._marker = marker.encode()

    def hang(self) -> None:
        """Let nothing through."""
        self._flowing.clear()

    def flow(self) -> None:
        """Let everything through again, and what was held up as well."""
        self._flowing.set()

    def __enter__(self) -> "Wire":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self._flowing.set()
        for each in tuple(self._open):
            self._cut(each)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
                far = socket.create_connection((self._parts.hostname, self._parts.port or 5432))
            except OSError:
                return
            self._open |= {near, far}
            marked = threading.Event()
            for source, target, answers in ((near, far, False), (far, near, True)):
                threading.Thread(
                    target=self._forward,
                    args=(source, target),
                    kwargs={"answers": answers, "marked": marked},
                    daemon=True,
                ).start()

    def _forward(
        self,
        source: socket.socket,
        target: socket.socket,
        *,
        answers: bool,
        marked: threading.Event,
    ) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flowing.wait()
                marker = self._marker
                if marker is not None and marker in data:
                    self._marker = None
                    marked.set()
                if answers and marked.is_set() and data.endswith(IDLE):
                    self.lost.set()
                    break
                target.sendall(data)
        self._cut(source)
        self._cut(target)

    def _cut(self, each: socket.socket) -> None:
        self._open.discard(each)
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
