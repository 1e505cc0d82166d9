"""The condition under which a job is in the index of those that have ended."""

from __future__ import annotations

from typing import Final

from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from backwave_django.models.choices import TERMINAL_STATES
from backwave_django.store.names import table

_LISTED: Final = ", ".join(f"'{state}'" for state in TERMINAL_STATES)

#: SQLite uses a partial index only for a condition that it can read: bound values hide the words.
HAS_ENDED: Final = Q(
    RawSQL(f'{table("job")}."state" IN ({_LISTED})', (), output_field=BooleanField())  # noqa: S611 - constants
)
