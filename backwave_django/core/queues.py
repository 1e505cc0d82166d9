"""What holds for a queue: what an operator chose, and what the settings say where nobody did."""

from __future__ import annotations

from typing import Final, NamedTuple

from backwave_django.core.limits import UNLIMITED, Cap, checked_number
from backwave_django.core.windows import Window


class QueueDefaults(NamedTuple):
    """What the settings say of one queue: how it is limited, and when it is served."""

    cap: Cap = UNLIMITED
    window: str | None = None

    def checked(self) -> QueueDefaults:
        """Return it as it is kept. Raises ``InvalidOption`` for a cap or window that cannot be."""
        checked_number(self.cap.number)
        window = None if self.window is None else str(Window.parse(self.window))
        return self._replace(window=window)


#: Of a queue that the settings name and say nothing else of.
NO_DEFAULTS: Final = QueueDefaults()


def in_force(own: Cap, default: Cap) -> Cap:
    """Return what holds, number and rate each for itself: an operator's, else the settings'."""
    return Cap(
        default.number if own.number is None else own.number,
        default.rate if own.rate is None else own.rate,
    )
