"""``manage.py backwave_doctor``."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from backwave_django import monitor
from backwave_django.management.speaking import tell_alerts


class Command(BaseCommand):
    """Look for what is wrong."""

    help = (
        "Look for what is wrong with settings, migrations, clocks, pumps, rows and retention, and "
        "say what to do. Exits with 1 if work is not being done, 0 else."
    )
    requires_system_checks: list[str] = []  # it reports them itself

    def handle(self, *args: Any, **options: Any) -> None:
        """Look."""
        found = monitor.examine(node_clock=timezone.now())
        tell_alerts(self, found)
        if not found:
            self.stdout.write("Nothing is wrong.")
        if any(alert.severe for alert in found):
            sys.exit(1)
