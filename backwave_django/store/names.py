"""The names of tables, and SQL texts in which they stand as ``{job}``, ``{lease}``, ...

A statement is written once. Where databases differ in a word, it says ``{skip_locked:alias}``,
``{lock:alias}``, ``{any:parameter}`` or ``{ids:parameter}`` (a table ``o`` of ids and places), and
each database gets its own text. Values are always parameters; only validated whole numbers are
written into a text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backwave_django.core.outcomes import SPENDING
from backwave_django.models import (
    Dependency,
    Job,
    Lease,
    Limit,
    OperatorAction,
    Outcome,
    Pump,
    Queue,
    Schedule,
    SettleQueue,
    Workflow,
)
from backwave_django.models.choices import TERMINAL_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db import models

_MODELS: Final[dict[str, type[models.Model]]] = {
    "job": Job,
    "lease": Lease,
    "outcome": Outcome,
    "edge": Dependency,
    "settle": SettleQueue,
    "workflow": Workflow,
    "pump": Pump,
    "queue": Queue,
    "cap": Limit,
    "action": OperatorAction,
    "schedule": Schedule,
}


class _Fragment:
    """A word that differs between databases; the part after the colon is its argument."""

    def __init__(self, template: str) -> None:
        self._template = template

    def __format__(self, argument: str) -> str:
        return self._template.replace("?", argument)


_TABLES: Final[dict[str, object]] = {
    word: f'"{model._meta.db_table}"'  # noqa: SLF001 - the documented way to a table's name
    for word, model in _MODELS.items()
}


def _listed(words: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{word}'" for word in words) + ")"


# In the order of the model: SQLite takes a partial index only if its condition stands in the text.
_SETS: Final[dict[str, object]] = {
    "terminal": _listed(TERMINAL_STATES),
    "spending": _listed(sorted(SPENDING)),
}
_WORDS: Final[dict[str, dict[str, object]]] = {
    "postgresql": {
        "skip_locked": _Fragment("FOR UPDATE OF ? SKIP LOCKED"),
        "skip_locked_no_key": _Fragment("FOR NO KEY UPDATE OF ? SKIP LOCKED"),
        "lock": _Fragment("FOR UPDATE OF ?"),
        "any": _Fragment("= ANY(%(?)s)"),
        "ids": _Fragment("unnest(%(?)s::uuid[]) WITH ORDINALITY AS o(id, place)"),
        "instant": _Fragment("%(?)s::timestamptz"),
        "now": "statement_timestamp()",
        "clock": "clock_timestamp()",
        "true": "true",
        "false": "false",
        "open": _Fragment("NOT ?.settled"),
        "json": _Fragment("%(?)s::jsonb"),
        "greater": "GREATEST",
        "lesser": "LEAST",
        "bytewise": _Fragment('? COLLATE "C"'),
    },
    "sqlite": {
        "skip_locked": _Fragment(""),
        "skip_locked_no_key": _Fragment(""),
        "lock": _Fragment(""),
        "any": _Fragment("IN (SELECT value FROM json_each(%(?)s))"),
        "ids": _Fragment("(SELECT value AS id, key AS place FROM json_each(%(?)s)) AS o"),
        "instant": _Fragment("%(?)s"),
        "now": "NULL",
        # Milliseconds are all that SQLite 3.35 tells; it cuts, so nothing is due in the future.
        "clock": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
        "true": "1",
        "false": "0",
        # SQLite takes a partial index only if its condition stands in the text, word by word, and
        # Django 5.2 and 6.1 write the one of open edges differently.
        "open": _Fragment("(NOT ?.settled AND ?.settled = 0)"),
        "json": _Fragment("%(?)s"),
        "greater": "MAX",
        "lesser": "MIN",
        "bytewise": _Fragment("?"),
    },
}


class _Named(dict[str, str]):
    """Turns ``%(name)s`` into ``:name``."""

    def __missing__(self, name: str) -> str:
        return f":{name}"


class _Numbered(dict[str, str]):
    """Turns ``%(name)s`` into ``$1``, ``$2``, ..., the same name into the same number."""

    def __missing__(self, name: str) -> str:
        self[name] = number = f"${len(self) + 1}"
        return number


class Statement:
    """One SQL text, as each database wants to read it. Parameters are named: ``%(name)s``.

    ``numbered`` is the text for PostgreSQL's own protocol, ``names`` its parameters in order.
    """

    __slots__ = ("_texts", "names", "numbered")

    def __init__(self, text: str) -> None:
        self._texts = {
            vendor: text.format_map({**_TABLES, **_SETS, **words})
            for vendor, words in _WORDS.items()
        }
        self._texts["sqlite3"] = self._texts["sqlite"] % _Named()
        numbers = _Numbered()
        self.numbered = (self._texts["postgresql"] % numbers).encode()
        self.names = tuple(numbers)

    def on(self, reader: str) -> str:
        """Return the text for ``postgresql``, ``sqlite`` (through Django) or plain ``sqlite3``."""
        return self._texts[reader]


def table(word: str) -> str:
    """Return the quoted name of a table."""
    return str(_TABLES[word])


def columns(word: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in the order of its model's fields."""
    fields = _MODELS[word]._meta.concrete_fields  # noqa: SLF001 - the documented way to columns
    return tuple(field.column for field in fields if field.column is not None)
