"""``manage.py backwave_enqueue WIRE_NAME``."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from backwave_django.core.errors import UsageError
from backwave_django.jobs.registry import registry
from backwave_django.management.speaking import span

if TYPE_CHECKING:
    from argparse import ArgumentParser

_WRITE = "write '[42]' or '{\"order_id\": 42}'"


def arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Return a JSON list or object as the arguments of a call, for argparse."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not JSON ({error}): {_WRITE}") from None
    if isinstance(value, list):
        return value, {}
    if isinstance(value, dict):
        return [], value
    raise ArgumentTypeError(f"{text!r} is neither a list nor an object: {_WRITE}")


class Command(BaseCommand):
    """Enqueue one job."""

    help = "Enqueue one job and print its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a type, its arguments, and where they differ from the type's own, options."""
        parser.add_argument("wire_name", metavar="WIRE_NAME")
        parser.add_argument(
            "--args",
            dest="arguments",
            type=arguments,
            default="[]",
            metavar="JSON",
            help='The arguments: a list, or an object by name. Default: "[]".',
        )
        parser.add_argument("--queue", help="Default: the type's own.")
        parser.add_argument("--priority", type=int, help="-100 to 100, high first.")
        parser.add_argument("--unique", metavar="KEY", help="Do nothing if a job holds this key.")
        parser.add_argument(
            "--delay", type=span, metavar="SPAN", help="Seconds, or 30m, 4h, 1d. Default: none."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Enqueue."""
        positional, named = options["arguments"]
        names = ("queue", "priority", "unique", "delay")
        given = {name: options[name] for name in names if options[name] is not None}
        try:
            job_type = registry.get(options["wire_name"])
            handle = job_type.options(**given).enqueue(*positional, **named)
        except UsageError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(str(handle.id))
