"""Limits as job types declare them: how many run at once, and how many start in a period."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backwave_django.core.bounds import MAX_CAP, MAX_LIMIT_KEY_CHARS
from backwave_django.core.errors import InvalidOption
from backwave_django.core.limits import Cap
from backwave_django.core.rates import rate_or_none
from backwave_django.jobs.names import check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``number`` jobs under ``key`` are leased at once, in the whole cluster.

    ``key`` is a text, or a callable that gets the arguments of each enqueue and returns the key,
    or ``None`` for a job without a limit. ``rate`` is how many may start in a period, such as
    ``"10/second"`` or ``"100/5 minutes"``, retries included; it may stand beside the number or
    alone. Job types that share a key share its numbers. An operator's numbers for a key, or for a
    pattern that it matches, go before the declared ones. Raises ``InvalidOption``.
    """

    key: str | Callable[..., str | None]
    number: int | None = None
    rate: str | None = None
    cap: Cap = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.key):
            check_key("limit", self.key, cap=MAX_LIMIT_KEY_CHARS)
        if self.number is None and self.rate is None:
            raise InvalidOption("limit", self.number, "write a number, a rate=, or both")
        if self.number is not None and (
            type(self.number) is not int or not 1 <= self.number <= MAX_CAP
        ):
            hint = f"write a whole number of 1 or more, at most {MAX_CAP:,}"
            raise InvalidOption("limit", self.number, hint)
        object.__setattr__(self, "cap", Cap(self.number, rate_or_none(self.rate)))

    @property
    def numbers(self) -> str:
        """The number and the rate, in words."""
        written = (self.number, self.cap.rate)
        return " and ".join(str(each) for each in written if each is not None)

    def key_of(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str | None:
        """Return the key for one call. Raises ``InvalidOption`` when a callable returns none."""
        if not callable(self.key):
            return self.key
        key = self.key(*args, **kwargs)
        if key is not None:
            check_key("limit", key, cap=MAX_LIMIT_KEY_CHARS)
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTable:
    """The declared numbers: of keys, and by wire name of job types whose keys are computed."""

    by_key: Mapping[str, Cap] = field(default_factory=dict)
    by_type: Mapping[str, Cap] = field(default_factory=dict)

    def of(self, *, key: str, wire_name: str) -> Cap | None:
        """Return the declared numbers for a job, or ``None`` when its type declares no limit."""
        return self.by_key.get(key, self.by_type.get(wire_name))
