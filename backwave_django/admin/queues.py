"""Queues: what each holds, who serves it, and how it is paused, limited and given a window."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin import widgets
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponseRedirect
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django import monitor, operations
from backwave_django.admin import cells
from backwave_django.admin.acting import RequiredReasonForm
from backwave_django.admin.limit_forms import QueueLimitForm, WindowForm
from backwave_django.admin.rights import ListOnlyAdmin, csrf_protected, may
from backwave_django.conf import get_config
from backwave_django.core.limits import Cap
from backwave_django.core.rates import rate_or_none

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from backwave_django.models import Queue

UNTIL_RESUMED: Final = ""
UNTIL_TIME: Final = "time"
SPANS: Final = {
    "30": timedelta(minutes=30),
    "60": timedelta(hours=1),
    "240": timedelta(hours=4),
    "1440": timedelta(days=1),
}


class PauseForm(RequiredReasonForm):
    """Why a queue is paused, and for how long."""

    length = forms.ChoiceField(
        label=gettext_lazy("Pause"),
        required=False,
        choices=[
            (UNTIL_RESUMED, gettext_lazy("until somebody resumes it")),
            ("30", gettext_lazy("for 30 minutes")),
            ("60", gettext_lazy("for 1 hour")),
            ("240", gettext_lazy("for 4 hours")),
            ("1440", gettext_lazy("for 1 day")),
            (UNTIL_TIME, gettext_lazy("until a time")),
        ],
    )
    until = forms.SplitDateTimeField(
        label=gettext_lazy("Until"),
        required=False,
        widget=widgets.AdminSplitDateTime,
        help_text=gettext_lazy("Only for “until a time”."),
    )
    field_order = ("length", "until", "reason")

    def clean(self) -> dict[str, Any]:
        """Ask for a time where one was promised."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("length") == UNTIL_TIME and values.get("until") is None:
            self.add_error("until", _("Give a date and a time."))
        return values

    def end(self, *, now: datetime) -> datetime | None:
        """Return when the pause ends by itself, if it does."""
        length = self.cleaned_data["length"]
        if length == UNTIL_TIME:
            until: datetime = self.cleaned_data["until"]
            return until
        return now + SPANS[length] if length in SPANS else None


class QueueAdmin(ListOnlyAdmin):
    """One page with every queue, and a page to ask before one is switched or limited."""

    def get_urls(self) -> list[URLPattern]:
        """Put the questions in front of Django's own pages."""
        wrap = self.admin_site.admin_view
        return [
            path("<path:name>/pause/", wrap(self.pause_view), name="backwave_queue_pause"),
            path("<path:name>/resume/", wrap(self.resume_view), name="backwave_queue_resume"),
            path("<path:name>/limit/", wrap(self.limit_view), name="backwave_queue_limit"),
            path("<path:name>/window/", wrap(self.window_view), name="backwave_queue_window"),
            *super().get_urls(),
        ]

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may pause and resume queues."""
        return self.has_view_permission(request) and may(request, "pause_queue")

    def has_limit_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may change limits, rates and windows of queues."""
        return self.has_view_permission(request) and may(request, "change_queue_limit")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show every queue."""
        if not self.has_view_permission(request) or request.method == "POST":
            raise PermissionDenied
        clock = monitor.database_clock()
        views = monitor.queue_views(clock=clock)
        context = {
            "title": _("Queues"),
            "queues": [
                (
                    view,
                    self._notes(view),
                    cells.instant(view.counts.oldest_due, now=clock),
                )
                for view in views
            ],
            "may_pause": self.has_pause_permission(request),
            "may_limit": self.has_limit_permission(request),
            "sees_jobs": may(request, "view_job"),
            "clock": clock,
            **(extra_context or {}),
        }
        return self.page(request, "admin/backwave/queue/list.html", context)

    @csrf_protected
    def pause_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for a reason and an end, then pause."""
        self._check(self.has_pause_permission(request))
        queue, form = self._asked(request, name, PauseForm)
        now = monitor.database_clock()
        if form.is_valid():
            until = form.end(now=now)
            if until is not None and until <= now:
                form.add_error("until", _("This time has passed. Give one in the future."))
            else:
                actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
                operations.pause(queue, until=until, actor=actor, now=now)
                return self._done(request, _("Queue %(queue)s is paused.") % {"queue": queue})
        context = {
            "title": _("Pause the queue %(queue)s") % {"queue": queue},
            "effect": _(
                "No pump claims from it. Jobs that run go on, and new ones are still enqueued."
            ),
            "button": _("Pause"),
        }
        return self._question(request, queue, form, context)

    @csrf_protected
    def resume_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for a reason, then resume."""
        self._check(self.has_pause_permission(request))
        queue, form = self._asked(request, name, RequiredReasonForm)
        if form.is_valid():
            actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
            operations.resume(queue, actor=actor, now=monitor.database_clock())
            return self._done(request, _("Queue %(queue)s is resumed.") % {"queue": queue})
        context = {
            "title": _("Resume the queue %(queue)s") % {"queue": queue},
            "effect": _("Pumps claim from it again, at once."),
            "button": _("Resume"),
        }
        return self._question(request, queue, form, context)

    @csrf_protected
    def limit_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for a number, a rate and a reason, then set what is not as an operator had it."""
        self._check(self.has_limit_permission(request))
        row = self._row(request, name)
        had = Cap() if row is None else Cap(row.limit, rate_or_none(row.rate))
        initial = {"number": had.number, "rate": had.rate or ""}
        queue, form = self._asked(request, name, QueueLimitForm, initial=initial)
        if form.is_valid() and form.cap == had:
            form.add_error(None, _("This is what holds already."))
        elif form.is_valid():
            actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
            now = monitor.database_clock()
            with transaction.atomic(using=get_config().database):
                if form.cap.number != had.number:
                    operations.limit_queue(queue, form.cap.number, actor=actor, now=now)
                if form.cap.rate != had.rate:
                    operations.rate_queue(queue, form.cap.rate, actor=actor, now=now)
            return self._done(request, _("Queue %(queue)s is limited anew.") % {"queue": queue})
        context = {
            "title": _("Limit the queue %(queue)s") % {"queue": queue},
            "effect": _("It holds for claims from now on. Jobs that run go on."),
            "button": _("Set the limit"),
        }
        return self._question(request, queue, form, context)

    @csrf_protected
    def window_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for a window and a reason, then set it."""
        self._check(self.has_limit_permission(request))
        row = self._row(request, name)
        initial = {"window": "" if row is None else row.window or ""}
        queue, form = self._asked(request, name, WindowForm, initial=initial)
        if form.is_valid():
            actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
            window, now = form.cleaned_data["window"], monitor.database_clock()
            operations.open_queue(queue, window, actor=actor, now=now)
            return self._done(request, _("Queue %(queue)s has its window.") % {"queue": queue})
        context = {
            "title": _("Window of the queue %(queue)s") % {"queue": queue},
            "effect": _(
                "Outside of its window no pump claims from it. Jobs that run when it closes go "
                "on, and new ones are still enqueued."
            ),
            "button": _("Set the window"),
        }
        return self._question(request, queue, form, context)

    def _check(self, permitted: bool) -> None:  # noqa: FBT001 - the one thing it looks at
        if not permitted:
            raise PermissionDenied

    def _row(self, request: HttpRequest, name: str) -> Queue | None:
        row: Queue | None = self.get_queryset(request).filter(pk=unquote(name)).first()
        return row

    def _asked(
        self,
        request: HttpRequest,
        name: str,
        form: type[forms.Form],
        *,
        initial: dict[str, Any] | None = None,
    ) -> tuple[str, Any]:
        asked = request.POST if request.method == "POST" else None
        return unquote(name), form(asked, initial=initial)

    def _question(
        self, request: HttpRequest, queue: str, form: forms.Form, context: dict[str, Any]
    ) -> HttpResponse:
        clock = monitor.database_clock()
        view = monitor.queue_view(queue, clock=clock)
        shown = {
            "queue": view,
            "notes": self._notes(view),
            "form": form,
            "back": self.list_url(),
            "media": self.media + form.media,
            **context,
        }
        return self.page(request, "admin/backwave/queue/ask.html", shown)

    def _notes(self, view: monitor.QueueView) -> list[str]:
        """Return what holds a queue up or bounds it, each in words."""
        row, clock = view.switches, view.clock
        if row is None:
            return []
        bounds = monitor.bound_texts(row)
        if view.opens_at is not None:
            bounds["window"] = monitor.window_text(row, view.opens_at, clock=clock)
        if view.next_token is not None:
            what = _("Its rate")
            bounds["rate"] = monitor.queue_rate_text(row, what, view.next_token, clock=clock)
        paused = [monitor.paused_text(row, clock=clock)] if view.paused else []
        return [*paused, *bounds.values()]

    def _done(self, request: HttpRequest, text: str) -> HttpResponse:
        self.message_user(request, text, messages.SUCCESS)
        return HttpResponseRedirect(self.list_url())
