"""What needs a person, each with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from backwave_django.conf import get_config
from backwave_django.models import Lease
from backwave_django.monitor.clock import moment, span
from backwave_django.monitor.pumps import Pulse, pump_views
from backwave_django.monitor.queues import queue_views
from backwave_django.monitor.schedules import Standing, schedule_views
from backwave_django.monitor.why import paused_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from backwave_django.monitor.pumps import PumpView
    from backwave_django.monitor.queues import QueueView

#: A pause of a queue that holds nothing, and a pump that stopped as it was told, are no news.
MOST_LEASES = 1_000


class Alert(NamedTuple):
    """One thing that is wrong, and what to do. ``severe`` says that work is not being done."""

    code: str
    text: str
    remedy: str
    severe: bool = True


def alerts(*, clock: datetime) -> tuple[Alert, ...]:
    """Return what needs a person, the severe things first. ``clock`` is the database's time."""
    queues = queue_views(clock=clock)
    pumps = pump_views(clock=clock)
    found = [
        *_queue_alerts(queues),
        *_pump_alerts(pumps, clock),
        *_lease_alerts(clock),
        *_schedule_alerts(clock),
    ]
    return tuple(sorted(found, key=lambda alert: not alert.severe))


def _queue_alerts(queues: Iterable[QueueView]) -> Iterator[Alert]:
    for view in queues:
        words = {"queue": view.name, "due": view.counts.due}
        if view.unserved:
            text = ngettext(
                "%(due)s job is due in the queue %(queue)s, and no live pump serves it.",
                "%(due)s jobs are due in the queue %(queue)s, and no live pump serves it.",
                view.counts.due.number,
            )
            groups = view.groups or ("...",)
            remedy = _("Start one: %(command)s")
            command = f"python manage.py runpumps --group {groups[0]}"
            yield Alert("unserved", text % words, remedy % {"command": command})
        elif view.paused and view.counts.due and view.switches is not None:
            text = ngettext(
                "%(due)s job is due in a queue that is paused. %(paused)s",
                "%(due)s jobs are due in a queue that is paused. %(paused)s",
                view.counts.due.number,
            )
            words["paused"] = paused_text(view.switches, clock=view.clock)
            remedy = _("Resume it when the reason is gone: %(command)s")
            command = f"python manage.py backwave_resume {view.name} --reason ..."
            yield Alert("paused", text % words, remedy % {"command": command}, severe=False)


def _pump_alerts(pumps: Iterable[PumpView], clock: datetime) -> Iterator[Alert]:
    for view in pumps:
        words = {
            "pump": view.pump,
            "silent": span(view.silent),
            "problem": view.pump.problem or "-",
            "end": moment(view.lapses_at, now=clock),
        }
        if view.pulse is Pulse.HALTED:
            text = _("Pump %(pump)s halted: %(problem)s") % words
            yield Alert("halted", text, _("Mend the cause, then start it again."))
        elif view.pulse is Pulse.DEGRADED:
            text = _("Pump %(pump)s cannot work with its database: %(problem)s") % words
            yield Alert("degraded", text, _("Look at the database. The pump goes on by itself."))
        elif view.pulse is Pulse.LATE:
            text = _("Pump %(pump)s is silent for %(silent)s. Its leases end at %(end)s.") % words
            yield Alert("late", text, _("See whether its process lives."), severe=False)


def _lease_alerts(clock: datetime) -> Iterator[Alert]:
    lapsed = Lease.objects.using(get_config().database).filter(expires_at__lte=clock)
    count = len(lapsed.values_list("pk")[:MOST_LEASES])
    if count:
        text = ngettext(
            "%(count)d lease has run out and was not swept yet.",
            "%(count)d leases have run out and were not swept yet.",
            count,
        )
        remedy = _("Any live pump sweeps them within seconds. If none does, start one.")
        yield Alert("lapsed", text % {"count": count}, remedy, severe=False)


def _schedule_alerts(clock: datetime) -> Iterator[Alert]:
    for view in schedule_views(clock=clock):
        words = {"schedule": view.schedule.name, "problem": view.problem}
        if view.standing is Standing.ERROR:
            text = _("The schedule %(schedule)s is in error: %(problem)s") % words
            yield Alert("schedule", text, _("Mend the cause; it goes on by itself."))
        elif view.standing is Standing.OVERDUE and view.schedule.next_at is not None:
            words["at"] = moment(view.schedule.next_at, now=clock)
            text = _("The schedule %(schedule)s was to run at %(at)s.") % words
            remedy = _("Start a pump that knows the job type %(name)s.")
            yield Alert("overdue", text, remedy % {"name": view.schedule.wire_name})
