"""What the authors of jobs test with: ``Harness``, and a pytest fixture in ``testing.plugin``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backwave_django.testing.harness import Harness

__all__ = ["Harness"]


def __getattr__(name: str) -> Any:
    """Import the harness when it is asked for: pytest loads the plugin before Django is set up."""
    if name == "Harness":
        from backwave_django.testing.harness import Harness  # noqa: PLC0415

        return Harness
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
