"""``manage.py backwave_resume QUEUE``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from backwave_django import monitor, operations
from backwave_django.core.errors import InvalidOption
from backwave_django.management.speaking import actor_from, add_actor_arguments

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Resume a queue."""

    help = "Let pumps claim from a queue again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a queue."""
        parser.add_argument("queue", metavar="QUEUE")
        add_actor_arguments(parser, reason_required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Resume."""
        now = monitor.database_clock()
        try:
            operations.resume(options["queue"], actor=actor_from(options), now=now)
        except InvalidOption as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Queue {options['queue']} is resumed.")
