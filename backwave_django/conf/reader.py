"""Reads one dict of the settings, key by key, and says what is wrong with each value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Ten years: a longer span is a number of milliseconds by mistake.
LONGEST_SPAN = timedelta(days=3653)


class Problem(NamedTuple):
    """One thing that cannot work: its check id, what is wrong, and what to write."""

    code: str
    text: str
    hint: str


class Reader:
    """One dict of the settings, read key by key. What is wrong is noted, never raised."""

    def __init__(
        self,
        where: str,
        values: object,
        codes: Mapping[str, str],
        *,
        unknown: str,
        not_a_dict: str,
        problems: list[Problem] | None = None,
    ) -> None:
        self.where = where
        self.problems = [] if problems is None else problems
        self._codes = codes
        self.values: Mapping[object, object] = {}
        if isinstance(values, Mapping):
            self.values = values
        else:
            self.problems.append(Problem(not_a_dict, f"{where} is {values!r}.", "Write a dict."))
        known = ", ".join(sorted(codes))
        self.problems.extend(
            Problem(unknown, f"{where} has no setting {key!r}.", f"Known are: {known}.")
            for key in self.values
            if key not in codes
        )

    def below(self, key: str, values: object, keys: Sequence[str]) -> Reader:
        """Return a reader of the dict at ``key``, whose problems have the id of ``key``."""
        code = self._codes[key]
        return Reader(
            f'{self.where}["{key}"]',
            values,
            dict.fromkeys(keys, code),
            unknown=code,
            not_a_dict=code,
            problems=self.problems,
        )

    def wrong(self, key: str, hint: str, *, value: object = None) -> None:
        """Note that the value at ``key`` cannot work."""
        shown = value if isinstance(value, str) else repr(self.values.get(key, value))
        text = f'{self.where}["{key}"] is {shown}.'
        self.problems.append(Problem(self._codes[key], text, hint))

    def whole(self, key: str, default: int, *, most: int | None = None) -> int:
        """Return the whole number at ``key``, from 1 to ``most``."""
        value = self.values.get(key, default)
        if is_count(value) and value <= (most or value):
            return value
        self.wrong(key, f"Write a whole number, 1 {f'to {most}' if most else 'or more'}.")
        return default

    def number(self, key: str, default: float) -> float:
        """Return the number at ``key``; its range is for the caller to check."""
        value = self.values.get(key, default)
        if _is_number(value):
            return float(value)
        self.wrong(key, "Write a number.")
        return default

    def span(
        self, key: str, default: timedelta, *, zero: bool = False, least: timedelta | None = None
    ) -> timedelta:
        """Return the span at ``key``: a timedelta, or a number of seconds."""
        if key not in self.values:
            return default
        found = _as_span(self.values[key], zero=zero)
        if found is not None and (least is None or found >= least):
            return found
        self.wrong(key, _span_hint(zero=zero, least=least, or_none=False))
        return default

    def optional_span(
        self, key: str, default: timedelta | None, *, zero: bool = False
    ) -> timedelta | None:
        """Return the span at ``key``, where ``None`` is a value too."""
        value = self.values.get(key, default)
        if value is None:
            return None
        found = _as_span(value, zero=zero)
        if found is None:
            self.wrong(key, _span_hint(zero=zero, least=None, or_none=True))
            return default
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        """Return the truth value at ``key``."""
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        self.wrong(key, "Write True or False.")
        return default

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """Return the word at ``key``, which is one of ``choices``."""
        value = self.values.get(key, default)
        if isinstance(value, str) and value in choices:
            return str(value)
        self.wrong(key, f"Write {_one_of(choices)}.")
        return default

    def optional_choice(self, key: str, choices: Sequence[str]) -> str | None:
        """Return the word at ``key``, or ``None`` when there is none."""
        value = self.values.get(key)
        if value is None or (isinstance(value, str) and value in choices):
            return value
        self.wrong(key, f"Write {_one_of(choices)}, or None.")
        return None

    def optional_text(self, key: str, hint: str) -> str | None:
        """Return the text at ``key``, or ``None`` when there is none."""
        value = self.values.get(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self.wrong(key, hint)
        return None

    def texts(self, key: str, hint: str) -> tuple[str, ...]:
        """Return the texts listed at ``key``."""
        value = self.values.get(key, ())
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            return tuple(value)
        self.wrong(key, hint)
        return ()


def is_count(value: object) -> TypeGuard[int]:
    """Tell whether ``value`` is a whole number, 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def is_name(value: object, *, most: int) -> TypeGuard[str]:
    """Tell whether ``value`` is a text without blanks around it, of 1 to ``most`` characters."""
    return isinstance(value, str) and value == value.strip() and 1 <= len(value) <= most


def in_words(span: timedelta) -> str:
    """Return ``span`` the way a person writes it in the settings."""
    return f"{span.total_seconds():g} s"


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _as_span(value: object, *, zero: bool) -> timedelta | None:
    """Return ``value`` as a span, or ``None`` when it is none that can work."""
    if _is_number(value) and abs(value) <= LONGEST_SPAN.total_seconds():
        value = timedelta(seconds=value)
    if not isinstance(value, timedelta) or not timedelta(0) <= value <= LONGEST_SPAN:
        return None
    return value if zero or value else None


def _span_hint(*, zero: bool, least: timedelta | None, or_none: bool) -> str:
    if least is not None:
        size = f"of {in_words(least)} or more"
    else:
        size = "of 0 or more" if zero else "above 0"
    ending = ", or None" if or_none else ""
    return f"Write a timedelta or a number of seconds, {size}, at most ten years{ending}."


def _one_of(choices: Sequence[str]) -> str:
    return " or ".join(f'"{choice}"' for choice in choices)
