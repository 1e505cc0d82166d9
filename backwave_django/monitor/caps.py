"""Caps of limit keys, as enqueueing compares them with what the code declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.limits import CODE, Cap
from backwave_django.core.rates import rate_or_none
from backwave_django.models import Limit

if TYPE_CHECKING:
    from collections.abc import Mapping


def unnoted_limits(declared: Mapping[str, Cap], *, using: str) -> dict[str, Cap]:
    """Return those of the ``declared`` numbers by key that the database does not have yet.

    Numbers that an operator chose count as noted: they go before the declared ones.
    """
    rows = Limit.objects.using(using).filter(pk__in=declared)
    noted = {
        key: Cap(limit, rate_or_none(rate)) if source == CODE else declared[key]
        for key, limit, rate, source in rows.values_list("key", "limit", "rate", "source")
    }
    return {key: cap for key, cap in declared.items() if noted.get(key) != cap}
