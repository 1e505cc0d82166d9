"""``manage.py backwave_limit --queue NAME LIMIT --rate RATE``."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from backwave_django import monitor, operations
from backwave_django.conf import get_config
from backwave_django.core.errors import InvalidOption
from backwave_django.core.limits import UNLIMITED
from backwave_django.core.rates import Rate
from backwave_django.management.speaking import actor_from, add_actor_arguments

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Mapping

#: Stands for what was not named: it is left as it is.
KEEP: Final = object()
_ACTIONS: Final[Mapping[tuple[str, str], Callable[..., None]]] = {
    ("queue", "limit"): operations.limit_queue,
    ("queue", "rate"): operations.rate_queue,
    ("key", "limit"): operations.limit_key,
    ("key", "rate"): operations.rate_key,
}


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


def rate(text: str) -> Rate | None:
    """Return a rate, or ``None`` for the word ``none``, for argparse."""
    try:
        return None if text == "none" else Rate.parse(text)
    except InvalidOption as error:
        raise ArgumentTypeError(f"{text!r} is no rate: {error.hint}, or none") from None


class Command(BaseCommand):
    """Limit how many jobs run at once, and how many start in a period."""

    help = (
        "Let at most so many jobs of a queue, or under a limit key, run at once, anywhere, or "
        "start in a period. What is not named stays as it is; none forgets what was set here, and "
        "what the settings (of a queue) or the code (of a key) say holds again, if they say "
        "anything."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a queue or a key, and a number, a rate or both."""
        target = parser.add_mutually_exclusive_group(required=True)
        target.add_argument("--queue", metavar="NAME", help="Limit this queue.")
        target.add_argument(
            "--key",
            metavar="KEY",
            help="Limit the jobs under this limit key; with a * at its end, those under each key "
            "that begins so and has no limit of its own: 'tenant:*'.",
        )
        parser.add_argument(
            "limit",
            type=limit,
            nargs="?",
            default=KEEP,
            metavar="LIMIT",
            help="How many run at once: a number, or none for what the settings or the code say.",
        )
        parser.add_argument(
            "--rate",
            type=rate,
            default=KEEP,
            metavar="RATE",
            help="How many start in a period, retries included: 10/second, 100/5 minutes, or none "
            "for what the settings or the code say.",
        )
        add_actor_arguments(parser, reason_required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Set them, both or none. Jobs that run already go on."""
        chosen = {what: options[what] for what in ("limit", "rate") if options[what] is not KEEP}
        if not chosen:
            raise CommandError("Name a LIMIT, a --rate, or both.")
        kind = "key" if options["queue"] is None else "queue"
        target, now = options[kind], monitor.database_clock()
        actor = actor_from(options)
        try:
            with transaction.atomic(using=get_config().database):
                for what, value in chosen.items():
                    _ACTIONS[kind, what](target, value, actor=actor, now=now)
        except InvalidOption as error:
            raise CommandError(str(error)) from error
        holds = UNLIMITED if kind == "key" else monitor.queue_view(target, clock=now).cap
        defaults = {"limit": holds.number, "rate": holds.rate}
        said = [_said(what, value, defaults[what]) for what, value in chosen.items()]
        self.stdout.write(f"{target} has {' and '.join(said)}.")


def _said(what: str, value: object, default: object) -> str:
    """Say what was set; and what holds where an operator's choice was lifted."""
    if value is not None:
        return f"a {what} of {value}"
    return f"no {what}" if default is None else f"the settings' {what} of {default}"
