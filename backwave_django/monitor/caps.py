"""Caps of limit keys, as enqueueing compares them with what the code declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.models import Limit

if TYPE_CHECKING:
    from collections.abc import Mapping


def unnoted_limits(declared: Mapping[str, int], *, using: str) -> list[tuple[str, int]]:
    """Return those of the ``declared`` numbers by key that the database does not have yet.

    A number that an operator chose counts as noted: it goes before the declared one.
    """
    rows = Limit.objects.using(using).filter(pk__in=declared)
    noted = {
        key: declared[key] if source == "operator" else limit
        for key, limit, source in rows.values_list("key", "limit", "source")
    }
    return [(key, number) for key, number in declared.items() if noted.get(key) != number]
