"""Stores on connections of their own, closed when the test ends."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from backwave_django.core.contract import StoreSettings
from backwave_django.store import PumpStore, open_pump_store
from tests.builders import MINUTE

OpenStore = Callable[..., PumpStore]


@pytest.fixture
def open_store(transactional_db: None) -> Iterator[OpenStore]:
    """Open as many pump stores as a test wants."""
    opened: list[PumpStore] = []

    def open_one(*, lease_duration: timedelta = MINUTE, **settings: object) -> PumpStore:
        store = open_pump_store(
            "default",
            StoreSettings(**settings),  # type: ignore[arg-type]  # a test names what it needs
            application_name="backwave:test",
            lease_duration=lease_duration,
        )
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> PumpStore:
    """A pump's store."""
    return open_store()
