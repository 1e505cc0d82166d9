"""What the pages of schedules show of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from backwave_django import monitor
from backwave_django.admin import cells, sensitive
from backwave_django.core.cron import zone_of
from backwave_django.core.errors import InvalidOption
from backwave_django.core.schedules import SkipReason
from backwave_django.monitor import Standing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.utils.safestring import SafeString
    from django_stubs_ext import StrPromise

    from backwave_django.monitor import ScheduleView

_ICONS: Final = {
    Standing.ACTIVE: ("pulse-live", "▶"),
    Standing.PAUSED: ("paused", "‖"),
    Standing.RETIRED: ("retired", "■"),
    Standing.ERROR: ("pulse-halted", "✖"),
    Standing.OVERDUE: ("pulse-late", "◐"),
}
_SKIPPED: Final[dict[str, StrPromise]] = {
    SkipReason.MISSED: gettext_lazy("nothing ran when it came"),
    SkipReason.OVERLAP: gettext_lazy("an earlier job was not over"),
}


class Row(NamedTuple):
    """One schedule in a table."""

    name: str
    wire_name: str
    queue: str
    rule: str
    raw: str
    badge: object
    notes: tuple[str, ...]
    next_at: object
    last: object
    skipped: str


def row_of(view: ScheduleView, *, clock: datetime) -> Row:
    """Return what a list shows of a schedule."""
    row = view.schedule
    return Row(
        name=row.name,
        wire_name=row.wire_name,
        queue=row.queue,
        rule=view.rule,
        raw=f"{view.raw} {row.timezone}" if row.cron else view.raw,
        badge=_badge(view),
        notes=tuple(_notes(view)),
        next_at=_both_zones(view.next_at, row.timezone, clock=clock),
        last=_last(view),
        skipped=_skipped(view),
    )


def page_context(view: ScheduleView, *, clock: datetime, sees_arguments: bool) -> dict[str, Any]:
    """Return what the page of a schedule shows."""
    row = view.schedule
    show = sensitive.values_of if sees_arguments else sensitive.shape_of
    return {
        "row": row_of(view, clock=clock),
        "view": view,
        "badge": _badge(view),
        "facts": tuple(_facts(view, clock)),
        "next_runs": [
            (cells.instant(tick, now=clock), *_shown(tick, row.timezone))
            for tick in monitor.next_runs(view, clock=clock)
        ],
        "arguments": show(row.payload),
        "sees_arguments": sees_arguments,
    }


def _badge(view: ScheduleView) -> SafeString:
    kind, icon = _ICONS[view.standing]
    return format_html(
        '<span class="bw-badge bw-{}"><span aria-hidden="true">{}</span> {}</span>',
        kind,
        icon,
        view.label,
    )


def _notes(view: ScheduleView) -> Iterator[str]:
    if view.problem:
        yield view.problem
    if view.standing is Standing.OVERDUE:
        yield _("No pump has taken up its last tick: is one running that knows the job type?")
    if view.drift:
        text = _("Not as the code declares it (%(what)s): run backwave_sync_schedules.")
        yield text % {"what": ", ".join(view.drift)}


def _facts(view: ScheduleView, clock: datetime) -> Iterator[tuple[str, object]]:
    row = view.schedule
    yield _("Rule"), f"{view.rule or '-'} · {view.raw}"
    yield _("Time zone"), row.timezone
    yield _("Job type"), row.wire_name
    yield _("Queue"), row.queue
    yield _("Priority"), row.priority
    yield _("Missed ticks"), row.get_catch_up_display()
    overlap = _("a tick is skipped while an earlier job is not over")
    yield _("Overlap"), overlap if row.no_overlap else _("allowed")
    yield _("Skipped"), _skipped(view)
    if view.of_code:
        release = "" if row.release is None else f", {row.release}"
        yield _("Declared in code by"), f"{row.owner}{release}"
    yield _("Stored"), cells.instant(row.created_at, now=clock)
    if row.retired_at is not None:
        yield _("Retired"), cells.instant(row.retired_at, now=clock)
    if row.limit_key:
        yield _("Limit key"), row.limit_key


def _last(view: ScheduleView) -> object:
    if view.last is None:
        return cells.NOTHING
    return cells.state_badge(view.last.state, view.last.get_state_display())


def _skipped(view: ScheduleView) -> str:
    row = view.schedule
    if not row.skipped or row.last_skipped_at is None:
        return cells.NOTHING
    text = ngettext("%(count)s tick", "%(count)s ticks", row.skipped)
    why = _SKIPPED.get(row.last_skip_reason or "", "")
    words = {"count": f"{row.skipped:,}", "at": cells.exact(row.last_skipped_at), "why": why}
    return (text + _(", the last of %(at)s: %(why)s")) % words


def _both_zones(at: datetime | None, zone: str, *, clock: datetime) -> object:
    if at is None:
        return cells.NOTHING
    shown, _here = _shown(at, zone)
    return format_html('{}<div class="bw-note">{}</div>', cells.instant(at, now=clock), shown)


def _shown(at: datetime, zone: str) -> tuple[str, str]:
    """Return an instant on the schedule's clocks, and on the person's."""
    try:
        there = at.astimezone(zone_of(zone))
    except InvalidOption:
        there = at
    return f"{there:%Y-%m-%d %H:%M:%S %Z}", cells.exact(at)
