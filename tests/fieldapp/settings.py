"""The shop's settings, with one worker group whose dials come from the environment.

``FIELD_DIALS`` is a JSON object of group settings, ``FIELD_BACKWAVE`` one of top-level settings,
``FIELD_APPS`` a list of further apps, with commas between them, ``FIELD_POOL`` the options of
Django's connection pool.
"""

import json
import os

from testproject.settings import *  # noqa: F403 - the shop's settings, but for what follows
from testproject.settings import DATABASES
from testproject.settings import INSTALLED_APPS as SHOP_APPS

if "FIELD_POOL" in os.environ:
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = json.loads(os.environ["FIELD_POOL"])

MORE_APPS = [name for name in os.environ.get("FIELD_APPS", "").split(",") if name]
INSTALLED_APPS = [*SHOP_APPS, "tests.fieldapp", *MORE_APPS]

BACKWAVE = {
    "GROUPS": {
        "field": {
            "QUEUES": ["default"],
            "POOL_SIZE": 4,
            "POLL_INTERVAL": 0.2,
            **json.loads(os.environ.get("FIELD_DIALS", "{}")),
        },
        "other": {"QUEUES": ["other", "critical", "mail"], "POOL_SIZE": 1, "POLL_INTERVAL": 0.2},
    },
    **json.loads(os.environ.get("FIELD_BACKWAVE", "{}")),
}
