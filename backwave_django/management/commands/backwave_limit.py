"""``manage.py backwave_limit --queue NAME LIMIT``."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from backwave_django import monitor, operations
from backwave_django.core.errors import InvalidOption
from backwave_django.management.speaking import actor_from, add_actor_arguments

if TYPE_CHECKING:
    from argparse import ArgumentParser


def limit(text: str) -> int | None:
    """Return a whole number, or ``None`` for the word ``none``, for argparse."""
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is no limit: write a whole number from 0, or none"
        ) from None


class Command(BaseCommand):
    """Limit how many jobs run at once."""

    help = "Let at most so many jobs of a queue, or under a limit key, run at once, anywhere."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a queue or a key, and a number."""
        target = parser.add_mutually_exclusive_group(required=True)
        target.add_argument("--queue", metavar="NAME", help="Limit this queue.")
        target.add_argument("--key", metavar="KEY", help="Limit the jobs under this limit key.")
        parser.add_argument("limit", type=limit, metavar="LIMIT", help="A number, or none.")
        add_actor_arguments(parser, reason_required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Set the limit. Jobs that run already go on."""
        set_limit = operations.limit_key if options["queue"] is None else operations.limit_queue
        target = options["key"] if options["queue"] is None else options["queue"]
        now = monitor.database_clock()
        try:
            set_limit(target, options["limit"], actor=actor_from(options), now=now)
        except InvalidOption as error:
            raise CommandError(str(error)) from error
        shown = "no limit" if options["limit"] is None else f"a limit of {options['limit']}"
        self.stdout.write(f"{target} has {shown}.")
