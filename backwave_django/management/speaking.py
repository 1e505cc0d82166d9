"""What the commands have in common: who asks, and how answers are told."""

from __future__ import annotations

import getpass
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management.base import CommandError
from django.utils.dateparse import parse_datetime

from backwave_django import monitor, operations
from backwave_django.core.bounds import MAX_ACTOR_CHARS
from backwave_django.core.contract import ActionAnswer, ActionResult, Actor

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Sequence

    from django.core.management.base import BaseCommand

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CHANGED = frozenset({ActionResult.DONE, ActionResult.REQUESTED})


def add_actor_arguments(parser: ArgumentParser, *, reason_required: bool = False) -> None:
    """Let the command be told who asks and why."""
    parser.add_argument(
        "--reason",
        default="",
        required=reason_required,
        help="Why, for the operator log.",
    )
    parser.add_argument(
        "--actor",
        default="",
        help="Who asks, for the operator log. Default: the user that runs this process.",
    )


def actor_from(options: dict[str, Any]) -> Actor:
    """Return who asks."""
    name = options["actor"] or _user()
    return Actor(name=name[:MAX_ACTOR_CHARS], source="command", reason=options["reason"].strip())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"  # a container's user may have no name


def job_id(text: str) -> UUID:
    """Return ``text`` as the id of a job, for argparse."""
    try:
        return UUID(text.strip())
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is no job id: write all 36 characters, as in the admin or a log line"
        ) from None


def span(text: str) -> timedelta:
    """Return a span such as ``30m``, ``4h``, ``1d`` or a number of seconds, for argparse."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        found = timedelta(seconds=float(number) * _UNITS[unit])
    except (ValueError, OverflowError):
        found = timedelta(0)
    if found <= timedelta(0):
        raise ArgumentTypeError(
            f"{text!r} is no span of time: write 90 (seconds), 30m, 4h or 1d, above zero"
        )
    return found


def instant(text: str) -> datetime:
    """Return an ISO 8601 instant, for argparse; without an offset it is UTC."""
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no instant: write 2027-03-01T14:30 or add +02:00")
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def act_on_jobs(
    command: BaseCommand,
    action: Callable[..., tuple[ActionAnswer, ...]],
    ids: Sequence[UUID],
    options: dict[str, Any],
) -> None:
    """Act, tell what came of each job, and fail if any was left as it was."""
    answers = action(ids, actor=actor_from(options), now=monitor.database_clock())
    for answer in answers:
        state = f" {answer.state}" if answer.state is not None else ""
        detail = f" ({answer.detail})" if answer.detail else ""
        command.stdout.write(f"{answer.job_id} {answer.result}{state}{detail}")
    unchanged = sum(answer.result not in _CHANGED for answer in answers)
    if unchanged:
        counts = ", ".join(f"{n} {result}" for result, n in operations.tally(answers).items())
        raise CommandError(f"{unchanged} of {len(answers)} jobs were left as they are: {counts}")


def tell_alerts(command: BaseCommand, alerts: Sequence[monitor.Alert]) -> None:
    """Print what is wrong and what to do about it."""
    for alert in alerts:
        style = command.style.ERROR if alert.severe else command.style.WARNING
        command.stdout.write(style(f"{'!!' if alert.severe else '! '} {alert.text}"))
        if alert.remedy:
            command.stdout.write(f"   {alert.remedy}")
