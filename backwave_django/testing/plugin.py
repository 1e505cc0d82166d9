"""The pytest fixture. Load it by ``pytest_plugins = ["backwave_django.testing.plugin"]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backwave_django.testing.harness import Harness


@pytest.fixture
def backwave_harness(db: None) -> Iterator[Harness]:  # noqa: ARG001 - a fixture by its name
    """An open ``Harness`` on the test's own transaction (pytest-django's ``db``)."""
    # Here, because this module is loaded before Django is set up.
    from backwave_django.testing.harness import Harness  # noqa: PLC0415

    with Harness() as harness:
        yield harness
