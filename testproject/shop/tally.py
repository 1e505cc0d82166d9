"""Counting what the jobs came to, for the demo's progress line and its closing summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from django.conf import settings
from django.db import connection
from django.db.models import Count, Sum

from backwave_django.core.states import TERMINAL, JobState
from backwave_django.models import Job
from testproject.shop.models import Invoice, Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many jobs of each type are in each state, and how often they were claimed."""

    counts: dict[tuple[str, str], int]
    runs: int

    @classmethod
    def take(cls) -> Self:
        """Count now, in one query."""
        rows = Job.objects.order_by().values_list("wire_name", "state")
        counted = list(rows.annotate(jobs=Count("pk"), runs=Sum("run")))
        return cls(
            counts={(wire_name, state): jobs for wire_name, state, jobs, _ in counted},
            runs=sum(runs or 0 for *_, runs in counted),
        )

    @property
    def total(self) -> int:
        """All jobs."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """Jobs in a terminal state."""
        return sum(jobs for (_, state), jobs in self.counts.items() if state in TERMINAL)

    def table(self) -> list[str]:
        """Job types down, states that occur across."""
        seen = {state for _, state in self.counts}
        states = [state.value for state in JobState if state.value in seen]
        names = sorted({name for name, _ in self.counts})
        width = max(map(len, [*names, "job type"]))
        lines = ["  ".join([f"{'job type':{width}}", *states])]
        for name in names:
            cells = [self.counts.get((name, state), 0) for state in states]
            lines.append(_row(f"{name:{width}}", cells, states))
        sums = [sum(self.counts.get((name, state), 0) for name in names) for state in states]
        lines.append(_row(f"{'together':{width}}", sums, states))
        return lines


def _row(name: str, cells: Sequence[int], states: Sequence[str]) -> str:
    numbers = (f"{cell:>{len(state)},}" for cell, state in zip(cells, states, strict=True))
    return "  ".join([name, *numbers])


def database_name() -> str:
    """The database by name and version, such as ``PostgreSQL 18.6``."""
    version = connection.get_database_version()
    return f"{connection.display_name} {'.'.join(map(str, version))}"


def effects() -> list[str]:
    """What the shop can show for it."""
    mails = settings.MAIL_DIR.glob("*.log")
    sent = sum(path.read_text(encoding="utf-8").count("\nMessage-ID: ") for path in mails)
    charged = Order.objects.filter(payment__isnull=False).count()
    return [
        f"charged   {charged:,} of {Order.objects.count():,} orders",
        f"mails     {sent:,} in {settings.MAIL_DIR}",
        f"invoices  {Invoice.objects.count():,} in {settings.INVOICE_DIR}",
    ]
