"""Races made to order: somebody else acts just before, or just after, a certain statement.

What a race needs is that another transaction commits at one moment out of a thousand. Here that
moment is named, so that one try is enough.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from backwave_django.core.contract import StoreSettings
from backwave_django.store.adapter import DatabaseStore
from backwave_django.store.executor import Executor, Row
from backwave_django.store.names import Statement


class Interposed:
    """An executor that lets ``act`` happen once, when a statement with this pattern comes by."""

    def __init__(
        self,
        inner: Executor,
        pattern: str,
        act: Callable[[], object],
        *,
        after: bool = False,
        settings: StoreSettings | None = None,
    ) -> None:
        self.pattern = pattern
        self._inner = inner
        self._act: Callable[[], object] | None = act
        self._after = after
        self._settings = settings or StoreSettings()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def happened(self) -> bool:
        """Whether the moment has come."""
        return self._act is None

    @property
    def store(self) -> DatabaseStore:
        """A store that works by way of this executor."""
        return DatabaseStore(cast("Executor", self), self._settings)

    @contextmanager
    def _at(self, statement: Statement) -> Iterator[None]:
        text = " ".join(statement.on(self._inner.vendor).split())
        act = self._act if re.search(self.pattern, text) else None
        if act is None:
            yield
            return
        self._act = None
        if not self._after:
            act()
        yield
        if self._after:
            act()

    def fetch(self, statement: Statement, parameters: Mapping[str, object]) -> list[Row]:
        with self._at(statement):
            return self._inner.fetch(statement, parameters)

    def execute(self, statement: Statement, parameters: Mapping[str, object]) -> int:
        with self._at(statement):
            return self._inner.execute(statement, parameters)

    def execute_many(self, statement: Statement, parameters: Sequence[Mapping[str, Any]]) -> None:
        with self._at(statement):
            self._inner.execute_many(statement, parameters)
