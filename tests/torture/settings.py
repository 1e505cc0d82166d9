"""The shop's settings with worker groups that differ in how they serve the same queues."""

from testproject.settings import *  # noqa: F403 - the shop's settings, but for what follows
from testproject.settings import INSTALLED_APPS as SHOP_APPS

INSTALLED_APPS = [*SHOP_APPS, "tests.torture"]

_SHORT = {
    "LEASE_DURATION": 2,
    "HEARTBEAT_INTERVAL": 0.5,
    "MAINTENANCE_INTERVAL": 0.5,
    "POLL_INTERVAL": 0.2,
    "SHUTDOWN_TIMEOUT": 4,
    "RETRY": {"MAX_ATTEMPTS": 4, "INITIAL": 0.2, "MAXIMUM": 1},
}

BACKWAVE = {
    "GROUPS": {
        "strict": {"QUEUES": ["plain", "capped", "swing", "keyed"], "POOL_SIZE": 2, **_SHORT},
        "weighted": {
            "QUEUES": {"plain": 3, "capped": 1, "swing": 1, "keyed": 1, "lazy": 1},
            "POOL_SIZE": 8,
            "CONNECTIONS": "reuse",
            **_SHORT,
        },
        "twin": {
            "QUEUES": ["lazy", "keyed", "capped", "swing", "plain"],
            "POOL_SIZE": 3,
            "PUMPS": 2,
            **_SHORT,
        },
    },
    "UNROUTABLE_GRACE": 1,
}
