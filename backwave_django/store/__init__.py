"""The storage contract over Django: PostgreSQL and SQLite."""

from backwave_django.store.executors import PumpStore, default_store, observed, open_pump_store

__all__ = ["PumpStore", "default_store", "observed", "open_pump_store"]
