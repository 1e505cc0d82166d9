"""``manage.py backwave_purge``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from backwave_django import monitor, operations


class Command(BaseCommand):
    """Delete what is past its retention."""

    help = (
        "Delete what is past its retention, in batches. Pumps do this by themselves, unless their "
        "group has PURGE off. It may be interrupted at any time."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Purge until nothing is left to purge."""
        count = operations.purge(now=monitor.database_clock())
        self.stdout.write(f"{count:,} rows were past their retention and are gone.")
