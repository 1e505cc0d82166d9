"""Queues: what each holds, who serves it, and the switch to pause it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin import widgets
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django import monitor, operations
from backwave_django.admin import cells
from backwave_django.admin.acting import RequiredReasonForm
from backwave_django.admin.rights import ReadOnlyAdmin, csrf_protected, may

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

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


class QueueAdmin(ReadOnlyAdmin):
    """One page with every queue, and a page to ask before it is paused or resumed."""

    def get_urls(self) -> list[URLPattern]:
        """Put the two questions in front of Django's own pages."""
        wrap = self.admin_site.admin_view
        return [
            path("<path:name>/pause/", wrap(self.pause_view), name="backwave_queue_pause"),
            path("<path:name>/resume/", wrap(self.resume_view), name="backwave_queue_resume"),
            *super().get_urls(),
        ]

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may pause and resume queues."""
        return self.has_view_permission(request) and may(request, "pause_queue")

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
                    self._paused_text(view),
                    cells.instant(view.counts.oldest_due, now=clock),
                )
                for view in views
            ],
            "may_pause": self.has_pause_permission(request),
            "sees_jobs": may(request, "view_job"),
            "clock": clock,
            **(extra_context or {}),
        }
        return self._page(request, "admin/backwave/queue/list.html", context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the page with every queue: it shows all there is to say about one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(self._list_url())

    @csrf_protected
    def pause_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for a reason and an end, then pause."""
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

    def _asked(self, request: HttpRequest, name: str, form: type[forms.Form]) -> tuple[str, Any]:
        if not self.has_pause_permission(request):
            raise PermissionDenied
        return unquote(name), form(request.POST if request.method == "POST" else None)

    def _question(
        self, request: HttpRequest, queue: str, form: forms.Form, context: dict[str, Any]
    ) -> HttpResponse:
        clock = monitor.database_clock()
        view = monitor.queue_view(queue, clock=clock)
        shown = {
            "queue": view,
            "paused_text": self._paused_text(view),
            "form": form,
            "back": self._list_url(),
            "media": self.media + form.media,
            **context,
        }
        return self._page(request, "admin/backwave/queue/ask.html", shown)

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        shown = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            **context,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, shown)

    def _paused_text(self, view: monitor.QueueView) -> str:
        if not view.paused or view.switches is None:
            return ""
        return monitor.paused_text(view.switches, clock=view.clock)

    def _done(self, request: HttpRequest, text: str) -> HttpResponse:
        self.message_user(request, text, messages.SUCCESS)
        return HttpResponseRedirect(self._list_url())

    def _list_url(self) -> str:
        return reverse("admin:backwave_queue_changelist", current_app=self.admin_site.name)
