"""The project's settings for one contestant: ``BENCH_CONTESTANT`` names it.

A contestant adds its apps and settings, so that none pays for another.
"""

import os

from testproject.bench.contestants.catalogue import settings_of
from testproject.settings import *  # noqa: F403 - a settings module
from testproject.settings import DATABASES, INSTALLED_APPS

DEBUG = False
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
DATABASES["default"]["CONN_MAX_AGE"] = int(os.environ.get("BENCH_CONN_MAX_AGE", "600"))
if os.environ.get("BENCH_DJANGO_POOL"):
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {"min_size": 4, "max_size": 120}
INSTALLED_APPS.remove("testproject.shop")
BACKWAVE = {
    "GROUPS": {
        "bench": {
            "QUEUES": os.environ.get("BENCH_QUEUES", "bench").split(","),
            "POOL_SIZE": int(os.environ.get("BENCH_SLOTS", "20")),
            "PUMPS": int(os.environ.get("BENCH_PUMPS", "1")),
            "MAX_CLAIM_BATCH": int(os.environ.get("BENCH_CLAIM_BATCH", "100")),
            "CONNECTIONS": os.environ.get("BENCH_CONNECTIONS", "fresh"),
            **(
                {"MAX_POLL_INTERVAL": float(os.environ["BENCH_MAX_POLL"])}
                if os.environ.get("BENCH_MAX_POLL")
                else {}
            ),
        }
    }
}
for _name, _value in settings_of(os.environ.get("BENCH_CONTESTANT", "backwave")).items():
    if _name == "INSTALLED_APPS":
        INSTALLED_APPS += [app for app in _value if app not in INSTALLED_APPS]
    else:
        globals()[_name] = _value
