"""Checks of the schedules that code declares."""

from __future__ import annotations

from django.core import checks

from backwave_django.checks.dials import TAG
from backwave_django.core.errors import UsageError
from backwave_django.jobs.schedules import schedules


@checks.register(TAG)
def check_schedules(**_kwargs: object) -> list[checks.CheckMessage]:
    """Report declared schedules that cannot be stored: bad arguments, a name that comes twice."""
    try:
        schedules.specs()
    except UsageError as error:
        return [
            checks.Error(
                f"A schedule is declared wrongly: {error}.",
                hint="Correct what @backwave.schedule or backwave.add_schedule says.",
                id="backwave.E033",
            )
        ]
    return []
