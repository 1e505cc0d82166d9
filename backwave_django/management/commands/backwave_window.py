"""``manage.py backwave_window QUEUE WINDOW``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from backwave_django import monitor, operations
from backwave_django.core.errors import InvalidOption
from backwave_django.management.speaking import actor_from, add_actor_arguments

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Serve a queue at some times only."""

    help = (
        "Let pumps claim from a queue at the times of a window only. Jobs that run when it closes "
        "go on, new ones are still enqueued."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a queue, and a window or the wish to forget it."""
        parser.add_argument("queue", metavar="QUEUE")
        window = parser.add_mutually_exclusive_group(required=True)
        window.add_argument(
            "window",
            nargs="?",
            metavar="WINDOW",
            help="Local times and a time zone: '20:00-06:00 Europe/Zurich', or "
            "'Mon-Fri 08:00-12:00; Sat 09:00-11:00 UTC', or always.",
        )
        window.add_argument(
            "--clear",
            action="store_true",
            help="Forget what was set here: the window of the settings holds again, if there is "
            "one.",
        )
        add_actor_arguments(parser, reason_required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Set the window."""
        now = monitor.database_clock()
        queue, window = options["queue"], None if options["clear"] else options["window"]
        try:
            operations.open_queue(queue, window, actor=actor_from(options), now=now)
        except InvalidOption as error:
            raise CommandError(str(error)) from error
        view = monitor.queue_view(queue, clock=now)
        state = "open" if view.opens_at is None else f"closed until {view.opens_at.isoformat()}"
        self.stdout.write(f"Queue {queue} is served {view.window or 'always'}: now {state}.")
