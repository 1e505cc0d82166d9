"""Threads that work against each other on one database, each with a store of its own."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from django.db import connections

from backwave_django.core.contract import StoreSettings
from backwave_django.core.errors import StoreUnavailable
from backwave_django.store.executors import PumpStore, open_pump_store
from backwave_django.store.faults import is_deadlock

T = TypeVar("T")

NAME = "rivalry"
#: A sixth of it is what a pump's statement may take; far more than any needs here.
LEASE = timedelta(minutes=10)


@contextmanager
def own_store(
    settings: StoreSettings | None = None, *, lease: timedelta = LEASE
) -> Iterator[PumpStore]:
    """A store on a connection of its own."""
    store = open_pump_store(
        "default", settings or StoreSettings(), application_name=NAME, lease_duration=lease
    )
    try:
        yield store
    finally:
        store.close()


def at_once(*acts: Callable[[], object]) -> list[Exception]:
    """Run each on a thread of its own; return what was raised."""
    start = threading.Barrier(len(acts), timeout=30)

    def run(act: Callable[[], object]) -> Exception | None:
        try:
            start.wait()
            act()
        except Exception as error:
            return error
        finally:
            connections.close_all()
        return None

    with ThreadPoolExecutor(len(acts)) as pool:
        return [error for error in pool.map(run, acts) if error is not None]


def patiently(act: Callable[[], T]) -> T:
    """Do it, and again while the database is busy. A deadlock is not that."""
    while True:
        try:
            return act()
        except StoreUnavailable as error:
            if is_deadlock(error):
                raise
