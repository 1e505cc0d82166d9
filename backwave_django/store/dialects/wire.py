"""Statements on a pump's connection, straight to libpq: prepared once, awaited with patience.

psycopg makes the connection and turns values into what the server reads, and back. What is left out
is its cursor, which does for each statement what these need once: it reads the text, sets up how
values are written, and looks for rows of every shape. A pump that a hint wakes has not run for a
while, and finds none of that in the processor's caches: a tenth of the time until a body began.
"""

from __future__ import annotations

import selectors
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.pq.abc import PGresult

#: More than a pump uses: each statement, with each of the types that its values come in.
_MOST_PREPARED: Final = 400
_READ: Final = selectors.EVENT_READ
_EITHER: Final = selectors.EVENT_READ | selectors.EVENT_WRITE


def silent_for(seconds: float) -> psycopg.OperationalError:
    """Return the error of a server that said nothing for so long."""
    return psycopg.OperationalError(f"the server has been silent for {seconds:g} s")


class Wire:
    """Carries statements one at a time. Used by one thread.

    ``prepares`` is for connections that are ours alone: behind a pooler of transactions the next
    statement may reach another session.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], *, patience_seconds: float, prepares: bool
    ) -> None:
        self._connection = connection
        self._server = connection.pgconn
        self._encoding = connection.info.encoding
        self._patience_seconds = patience_seconds
        self._prepares = prepares
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        # One for all statements: how values of a type are written is found out once.
        self._values = Transformer(connection)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server.socket, _READ)

    def close(self) -> None:
        """Let go of what watches the connection, which is somebody else's to close."""
        self._selector.close()

    def command(self, text: bytes) -> None:
        """Run one statement without values and rows, like BEGIN."""
        self._server.send_query(text)
        self._answer()

    def rows(self, text: bytes, values: Sequence[object]) -> list[Any]:
        """Run one statement with numbered parameters; return its rows as tuples."""
        answer, loading = self._run(text, values), self._values
        loading.set_pgresult(answer)
        rows = loading.load_rows(0, answer.ntuples, tuple)
        loading.set_pgresult(None)  # it would keep what came until the next one
        return rows

    def changed(self, text: bytes, values: Sequence[object]) -> int:
        """Run one statement with numbered parameters; return how many rows it changed."""
        return self._run(text, values).command_tuples or 0

    def many(self, text: bytes, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each of ``rows``, without waiting for each answer."""
        *first, last = rows
        if first:
            psycopg.RawCursor(self._connection).executemany(text, first)
        # By itself: after the flush that ends a pipeline the server forgets how long a transaction
        # may idle, and a pump that is stopped in one would hold its locks for ever.
        self._run(text, last)

    def _run(self, text: bytes, values: Sequence[object]) -> PGresult:
        writing, server = self._values, self._server
        written = writing.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types = writing.types or ()
        if self._prepares:
            name = self._names.get((text, types)) or self._prepared(text, types)
            server.send_query_prepared(name, written, writing.formats, Format.BINARY)
        else:
            server.send_query_params(text, written, types, writing.formats, Format.BINARY)
        return self._answer()

    def _prepared(self, text: bytes, types: tuple[int, ...]) -> bytes:
        if len(self._names) >= _MOST_PREPARED:
            # One of ours, the oldest: psycopg's cursor has prepared what ``many`` ran.
            oldest = next(iter(self._names))
            self.command(b"DEALLOCATE " + self._names.pop(oldest))
        # Named after what it says: behind a pooler that nobody told us of, a number could stand
        # for another statement, and would run that.
        seal = blake2b(text + repr(types).encode(), digest_size=12).hexdigest()
        name = f"backwave_{seal}".encode()
        self._server.send_prepare(name, text, types)
        self._answer()
        self._names[text, types] = name
        return name

    def _answer(self) -> PGresult:
        """Wait for the answer to what was sent. Raises the server's error, or ``OperationalError``.

        What was sent may have been carried out all the same.
        """
        self._send()
        answer: PGresult | None = None
        while self._may_read(after=answer) and (part := self._server.get_result()) is not None:
            answer = part
        if answer is None:
            raise psycopg.OperationalError("the server gave no answer")
        if answer.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(answer, encoding=self._encoding)
        return answer

    def _send(self) -> None:
        server = self._server
        while server.flush():
            self._wait(_EITHER)
            server.consume_input()

    def _may_read(self, *, after: PGresult | None) -> bool:
        """Wait for the next part of an answer; false if the server said why, and hung up."""
        server = self._server
        try:
            while server.is_busy():
                self._wait(_READ)
                server.consume_input()
        except psycopg.OperationalError:
            if after is None or after.status != ExecStatus.FATAL_ERROR:
                raise
            return False
        return True

    def _wait(self, wanted: int) -> None:
        if wanted != _READ:
            self._selector.modify(self._server.socket, wanted)
        try:
            if not self._selector.select(self._patience_seconds):
                raise silent_for(self._patience_seconds)
        finally:
            if wanted != _READ:
                self._selector.modify(self._server.socket, _READ)
