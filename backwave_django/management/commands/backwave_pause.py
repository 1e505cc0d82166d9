"""``manage.py backwave_pause QUEUE``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from backwave_django import monitor, operations
from backwave_django.core.errors import InvalidOption
from backwave_django.management.speaking import actor_from, add_actor_arguments, instant, span

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Pause a queue."""

    help = "Let no pump claim from a queue. Jobs that run go on, new ones are still enqueued."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a queue, and when the pause ends by itself."""
        parser.add_argument("queue", metavar="QUEUE")
        end = parser.add_mutually_exclusive_group()
        end.add_argument(
            "--for",
            dest="length",
            type=span,
            metavar="SPAN",
            help="How long: seconds, or 30m, 4h, 1d. Default: until it is resumed.",
        )
        end.add_argument(
            "--until", type=instant, metavar="TIME", help="Until when: ISO 8601, UTC by default."
        )
        add_actor_arguments(parser, reason_required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Pause."""
        now = monitor.database_clock()
        until = now + options["length"] if options["length"] else options["until"]
        try:
            operations.pause(options["queue"], until=until, actor=actor_from(options), now=now)
        except InvalidOption as error:
            raise CommandError(str(error)) from error
        ending = f"until {until:%Y-%m-%d %H:%M:%S %Z}" if until else "until it is resumed"
        self.stdout.write(f"Queue {options['queue']} is paused {ending}.")
