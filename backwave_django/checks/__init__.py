"""System checks: every dial that cannot work, under an id of its own, with what to write.

Importing this package registers them. Ids ``backwave.E001`` to ``E029``, ``E034`` and ``E037``
belong to the dials of ``BACKWAVE`` (the table is in ``conf``); the others, and the warnings, to
what surrounds them.
"""

from backwave_django.checks.atomic import check_atomic
from backwave_django.checks.databases import check_databases, check_server
from backwave_django.checks.dials import check_dials, check_paths, check_queues
from backwave_django.checks.schedules import check_schedules

__all__ = [
    "check_atomic",
    "check_databases",
    "check_dials",
    "check_paths",
    "check_queues",
    "check_schedules",
    "check_server",
]
