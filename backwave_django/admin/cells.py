"""Pieces of HTML that several pages show. Data is always escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext as _

from backwave_django.core.states import JobState
from backwave_django.monitor.clock import span
from backwave_django.monitor.pumps import Pulse

if TYPE_CHECKING:
    from datetime import datetime

    from django.utils.safestring import SafeString

    from backwave_django.models import Job
    from backwave_django.monitor import PumpView

#: A shape for each state, so that nobody depends on its colour.
STATE_ICONS: Final[dict[str, str]] = {
    JobState.SCHEDULED: "◷",
    JobState.AWAITING: "◌",
    JobState.LEASED: "▶",
    JobState.SUCCEEDED: "✔",
    JobState.DEAD_LETTERED: "✖",
    JobState.QUARANTINED: "⚠",
    JobState.EXPIRED: "⧖",
    JobState.CANCELLED: "⊘",
}
PULSE_ICONS: Final[dict[str, str]] = {
    Pulse.LIVE: "●",
    Pulse.LATE: "◐",
    Pulse.DEGRADED: "◑",
    Pulse.DRAINING: "▽",
    Pulse.HALTED: "✖",
    Pulse.STOPPED: "■",
    Pulse.GONE: "○",
}
NOTHING: Final = "-"


def state_badge(state: str, label: str) -> SafeString:
    """Return a state as a word with its icon."""
    return format_html(
        '<span class="bw-badge bw-{}"><span aria-hidden="true">{}</span> {}</span>',
        state.replace("_", "-"),
        STATE_ICONS.get(state, ""),
        label,
    )


def pulse_badge(view: PumpView) -> SafeString:
    """Return a pump's pulse as a word with its icon."""
    return format_html(
        '<span class="bw-badge bw-pulse-{}"><span aria-hidden="true">{}</span> {}</span>',
        view.pulse,
        PULSE_ICONS[view.pulse],
        view.label,
    )


def instant(at: datetime | None, *, now: datetime | None = None) -> SafeString | str:
    """Return how far an instant is from now, with the instant itself as the title."""
    if at is None:
        return NOTHING
    present = now or timezone.now()
    distance = span(abs(at - present))
    text = _("in %(span)s") if at > present else _("%(span)s ago")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.isoformat(),
        exact(at),
        text % {"span": distance},
    )


def exact(at: datetime) -> str:
    """Return an instant to the second, in the person's zone, and in UTC if that differs."""
    local = timezone.localtime(at)
    text = date_format(local, "Y-m-d H:i:s T")
    if not local.utcoffset():
        return text
    return f"{text}, {at:%Y-%m-%d %H:%M:%S} UTC"


def attempt(job: Job) -> str:
    """Return which attempt a job is at, and of how many."""
    if not job.run:
        return NOTHING
    ended_without_success = job.terminal_at is not None and job.state != JobState.SUCCEEDED
    number = job.spent if ended_without_success else job.spent + 1
    return f"{number}/{job.max_attempts}" if job.max_attempts else str(number)
