"""What code and settings say about limit keys and queues, as the tables keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backwave_django.core.limits import CODE
from backwave_django.core.memory.rows import LimitRow
from backwave_django.core.windows import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backwave_django.core.limits import Cap
    from backwave_django.core.memory.tables import Tables


def declare_limits(tables: Tables, limits: Mapping[str, Cap]) -> None:
    """Note declared numbers, except where an operator chose some."""
    for key, cap in limits.items():
        known = tables.limits.get(key)
        if known is None or known.source == CODE:
            full_at = None if known is None else known.rate_full_at
            tables.limits[key] = LimitRow(cap.number, CODE, cap.rate, full_at)


def declare_windows(tables: Tables, windows: Mapping[str, str | None]) -> None:
    """Note the windows of the settings; a queue that nobody has touched needs no row for none."""
    written = {
        queue: None if window is None else str(Window.parse(window))
        for queue, window in windows.items()
    }
    for queue, window in written.items():
        if window is not None or queue in tables.queues:
            tables.queue(queue).window_default = window
