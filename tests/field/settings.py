"""The settings of the field app with further jobs, and with database settings from outside.

``GROUND_DATABASE`` is a JSON object of settings for the database; its ``OPTIONS`` are added to
those that are there, and one that is null is taken away.
"""

import json
import os

from tests.fieldapp.settings import *  # noqa: F403 - the field's settings, but for what follows
from tests.fieldapp.settings import DATABASES
from tests.fieldapp.settings import INSTALLED_APPS as FIELD_APPS

INSTALLED_APPS = [*FIELD_APPS, "tests.field"]

_given = json.loads(os.environ.get("GROUND_DATABASE", "{}"))
_options = {**DATABASES["default"].get("OPTIONS", {}), **_given.pop("OPTIONS", {})}
DATABASES["default"].update(_given)
DATABASES["default"]["OPTIONS"] = {
    name: value for name, value in _options.items() if value is not None
}
