"""What limits the jobs under one limit key: numbers of its own, or those of a pattern.

A pattern is a key that an operator writes with a ``*`` at its end, ``tenant:*``. Its numbers hold
for each key that begins so, as if each had been given them: a hundred tenants under a cap of two
run two hundred jobs. What an operator chose for a key itself goes before every pattern, the
longest pattern before shorter ones, and any pattern before what code declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from backwave_django.core.bounds import MAX_CAP
from backwave_django.core.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backwave_django.core.rates import Rate

#: Who chose the numbers of a row: code (or nobody), an operator, or an operator for a pattern.
CODE: Final = "code"
OPERATOR: Final = "operator"
PATTERN: Final = "pattern"


class Cap(NamedTuple):
    """At most ``number`` jobs leased at once, and so many starts; ``None`` is no limit."""

    number: int | None = None
    rate: Rate | None = None


UNLIMITED: Final = Cap()


def checked_number(number: int | None) -> int | None:
    """Return how many jobs may be leased at once. Raises ``InvalidOption`` for what cannot be."""
    if number is not None and not 0 <= number <= MAX_CAP:
        hint = f"write zero or more, at most {MAX_CAP:,}, or None for no limit"
        raise InvalidOption("limit", number, hint)
    return number


def is_pattern(key: str) -> bool:
    """Tell whether ``key``, as an operator writes it, stands for all keys that begin so."""
    return key.endswith("*")


def source_of(key: str) -> str:
    """Return how a row is marked that an operator makes for ``key``."""
    return PATTERN if is_pattern(key) else OPERATOR


def governing(
    key: str, *, own: tuple[Cap, str] | None, patterns: Mapping[str, Cap]
) -> tuple[Cap, str]:
    """Return what holds for a key, and the key or pattern that says so.

    ``own`` is its own row, if there is one: the numbers and who chose them.
    """
    if own is not None and own[1] != CODE:
        return own[0], key
    matching = [pattern for pattern in patterns if key.startswith(pattern[:-1])]
    if matching:
        longest = max(matching, key=len)
        return patterns[longest], longest
    return (UNLIMITED if own is None else own[0]), key
