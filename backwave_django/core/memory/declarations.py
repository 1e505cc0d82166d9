"""What code and settings say about limit keys and queues, as the tables keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.limits import CODE
from backwave_django.core.memory.rows import LimitRow
from backwave_django.core.queues import NO_DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backwave_django.core.limits import Cap
    from backwave_django.core.memory.tables import Tables
    from backwave_django.core.queues import QueueDefaults


def declare_limits(tables: Tables, limits: Mapping[str, Cap]) -> None:
    """Note declared numbers, except where an operator chose some."""
    for key, cap in limits.items():
        known = tables.limits.get(key)
        if known is None or known.source == CODE:
            full_at = None if known is None else known.rate_full_at
            tables.limits[key] = LimitRow(cap.number, CODE, cap.rate, full_at)


def declare_queues(tables: Tables, defaults: Mapping[str, QueueDefaults]) -> None:
    """Note what the settings say; a queue that nobody has touched needs no row for nothing."""
    checked = {queue: default.checked() for queue, default in defaults.items()}
    for queue, default in checked.items():
        if default != NO_DEFAULTS or queue in tables.queues:
            row = tables.queue(queue)
            (row.limit_default, row.rate_default), row.window_default = default
