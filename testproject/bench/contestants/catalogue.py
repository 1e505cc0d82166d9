"""The contestants by name, and the settings each of them adds. Imports none of them."""

import os
from importlib import import_module
from typing import Any

MODULES = {
    "backwave": "backwave",
    "procrastinate": "procrastinate",
    "pgqueuer": "pgqueuer",
    "django-tasks-db": "django_tasks_db",
    "django-ox": "django_ox",
    "dramatiq": "dramatiq",
}
PEERS = [name for name in MODULES if name != "backwave"]


def settings_of(name: str) -> dict[str, Any]:
    """Return what the contestant adds to the settings."""
    extra: dict[str, dict[str, Any]] = {
        "backwave": {"INSTALLED_APPS": ["testproject.bench.ours"]},
        "procrastinate": {
            "INSTALLED_APPS": ["procrastinate.contrib.django"],
            "PROCRASTINATE_IMPORT_PATHS": ["testproject.bench.contestants.procrastinate"],
        },
        "django-tasks-db": {
            "INSTALLED_APPS": ["django_tasks_db"],
            "TASKS": {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}},
        },
        "django-ox": {
            "INSTALLED_APPS": ["django_ox"],
            "TASKS": {"default": {"BACKEND": "django_ox.backend.OxBackend"}},
        },
        "dramatiq": {
            "INSTALLED_APPS": ["django_dramatiq"],
            "DRAMATIQ_BROKER": {
                "BROKER": "dramatiq.brokers.redis.RedisBroker",
                "OPTIONS": {"url": os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/9")},
                "MIDDLEWARE": [
                    "dramatiq.middleware.AgeLimit",
                    "dramatiq.middleware.TimeLimit",
                    "dramatiq.middleware.Callbacks",
                    "dramatiq.middleware.Retries",
                    "django_dramatiq.middleware.DbConnectionsMiddleware",
                ],
            },
            "DRAMATIQ_TASKS_DATABASE": "default",
            "DRAMATIQ_AUTODISCOVER_MODULES": ["contestants.dramatiq"],
        },
    }
    return extra.get(name, {})


def load(name: str) -> Any:
    """Return a new contestant. ``ImportError`` when the peer is not installed."""
    module = import_module(f"testproject.bench.contestants.{MODULES[name]}")
    return module.Contestant()
