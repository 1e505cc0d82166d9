"""Atomic bodies on SQLite: one pump, and no other beside it.

SQLite lets one transaction write at a time, and an atomic body is one from its beginning to its
end. Meanwhile no other pump could renew its leases or record an outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import connections

from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs.registry import registry
from backwave_django.monitor.clock import database_clock
from backwave_django.monitor.pumps import pump_views
from backwave_django.pumps.deaths import dead_pumps

if TYPE_CHECKING:
    from backwave_django.pumps.plans import NodePlan

HINT: Final = (
    "An atomic body holds SQLite's write lock as long as it runs, and no other pump could renew "
    "its leases meanwhile: run one process with one pump, move to PostgreSQL, or leave "
    "atomic=True out."
)


def refuse_company(plan: NodePlan, *, processes: int, using: str) -> None:
    """Raise ``ConfigurationError`` where an atomic body would hold up other pumps.

    Looks at what is about to start, and at the pumps that live already.
    """
    atomic = [job_type.wire_name for job_type in registry.all() if job_type.atomic]
    if not atomic or connections[using].vendor != "sqlite":
        return
    starting = processes * sum(group.pumps for group in plan.groups)
    if starting > 1:
        raise ConfigurationError(
            f"{atomic[0]!r} is atomic, and {starting} pumps would share one SQLite database.", HINT
        )
    dead = set(dead_pumps(using=using))
    there = pump_views(clock=database_clock(), gone=False)
    living = [each.pump for each in there if each.pump.pk not in dead]
    if living:
        raise ConfigurationError(
            f"{atomic[0]!r} is atomic, and pump {living[0]} works on this SQLite database.", HINT
        )
