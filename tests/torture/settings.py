"""The shop's settings with worker groups that differ in how they serve the same queues."""

from typing import Any

from testproject.settings import *  # noqa: F403 - the shop's settings, but for what follows
from testproject.settings import INSTALLED_APPS as SHOP_APPS

INSTALLED_APPS = [*SHOP_APPS, "tests.torture"]

_SHORT: dict[str, Any] = {
    "LEASE_DURATION": 2,
    "HEARTBEAT_INTERVAL": 0.5,
    "MAINTENANCE_INTERVAL": 0.5,
    "POLL_INTERVAL": 0.2,
    "SHUTDOWN_TIMEOUT": 4,
    "RETRY": {"MAX_ATTEMPTS": 4, "INITIAL": 0.2, "MAXIMUM": 1},
}

_GROUPS: dict[str, Any] = {
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
}

_TOP: dict[str, Any] = {"GROUPS": _GROUPS, "UNROUTABLE_GRACE": 1}
BACKWAVE = _TOP
