"""Schedules: what ticks when, what came of it, and the switches that people have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from backwave_django import monitor, operations
from backwave_django.admin import cells
from backwave_django.admin.rights import ReadOnlyAdmin, csrf_protected, may, sees_sensitive
from backwave_django.admin.schedule_actions import BY_NAME, ScheduleAction
from backwave_django.admin.schedule_form import ScheduleForm
from backwave_django.admin.schedule_page import page_context, row_of
from backwave_django.core.contract import ActionResult

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

    from backwave_django.core.contract import ScheduleAnswer
    from backwave_django.monitor import ScheduleView


class ScheduleAdmin(ReadOnlyAdmin):
    """One page with every schedule, a page for each, and forms for those made by people."""

    def get_urls(self) -> list[URLPattern]:
        """Put the questions and forms in front of Django's own pages."""
        wrap = self.admin_site.admin_view
        actions = [
            path(
                f"<path:name>/{name}/",
                wrap(self.action_view),
                {"action": name},
                name=f"backwave_schedule_{name}",
            )
            for name in BY_NAME
        ]
        edit = path("<path:name>/edit/", wrap(self.edit_view), name="backwave_schedule_edit")
        return [*actions, edit, *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may make schedules."""
        return self.has_view_permission(request) and may(request, "add_schedule")

    def may_do(self, request: HttpRequest, action: ScheduleAction) -> bool:
        """Tell whether the person has the right for an action."""
        return self.has_view_permission(request) and may(request, action.right)

    def may_edit(self, request: HttpRequest, view: ScheduleView) -> bool:
        """Tell whether the person may change this schedule: what code declares, nobody does."""
        return not view.of_code and may(request, "change_schedule")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show every schedule."""
        if not self.has_view_permission(request) or request.method == "POST":
            raise PermissionDenied
        clock = monitor.database_clock()
        rows = [
            (row_of(view, clock=clock), self._url("change", view))
            for view in monitor.schedule_views(clock=clock)
        ]
        context = {
            "title": _("Schedules"),
            "rows": rows,
            "may_add": self.has_add_permission(request),
            "clock": clock,
            **(extra_context or {}),
        }
        return self.page(request, "admin/backwave/schedule/list.html", context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one schedule. Nothing is sent to this address."""
        if not self.has_view_permission(request) or request.method not in {"GET", "HEAD"}:
            raise PermissionDenied
        clock = monitor.database_clock()
        view = self._found(object_id, clock=clock)
        context = {
            **page_context(view, clock=clock, sees_arguments=sees_sensitive(request)),
            "title": view.schedule.name,
            "runs": [self._run(job, clock) for job in monitor.past_runs(view.schedule.name)],
            "actions": [
                (action, self._url(action.name, view))
                for action in BY_NAME.values()
                if action.applies_to(view) and self.may_do(request, action)
            ],
            "edit_url": self._url("edit", view) if self.may_edit(request, view) else "",
            "history_url": self._url("history", view),
            "back": self.list_url(),
            "clock": clock,
        }
        return self.page(request, "admin/backwave/schedule/detail.html", context)

    @csrf_protected
    def action_view(self, request: HttpRequest, name: str, action: str) -> HttpResponse:
        """Ask, then do one thing to a schedule."""
        asked = BY_NAME[action]
        if not self.may_do(request, asked):
            raise PermissionDenied
        clock = monitor.database_clock()
        view = self._found(name, clock=clock)
        form = asked.form(request.POST if request.method == "POST" else None)
        if form.is_valid():
            actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
            answer = asked.run(view.schedule.name, actor=actor, now=clock)
            self._tell(request, asked, answer)
            gone = asked.name == "delete" and answer.result is ActionResult.DONE
            return HttpResponseRedirect(self.list_url() if gone else self._url("change", view))
        context = {
            "title": asked.title % {"schedule": view.schedule.name},
            "effect": asked.effect,
            "button": asked.button,
            "row": row_of(view, clock=clock),
            "form": form,
            "back": self._url("change", view),
        }
        return self.page(request, "admin/backwave/schedule/ask.html", context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django's own page asks about rows; ours asks about the schedule."""
        response: HttpResponse = self.action_view(request, object_id, "delete")
        return response

    @csrf_protected
    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Make a schedule of a job type that is open to people."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return self._form(request, None)

    @csrf_protected
    def edit_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Change a schedule that a person made."""
        view = self._found(name, clock=monitor.database_clock())
        if not self.has_view_permission(request) or not self.may_edit(request, view):
            raise PermissionDenied
        return self._form(request, view)

    def _form(self, request: HttpRequest, view: ScheduleView | None) -> HttpResponse:
        form = ScheduleForm(
            request.POST if request.method == "POST" else None,
            schedule=None if view is None else view.schedule,
            sees_arguments=sees_sensitive(request),
        )
        if form.is_valid():
            actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
            now = monitor.database_clock()
            answer = operations.save_schedule(form.spec, actor=actor, now=now)
            if answer.result is ActionResult.DONE:
                text = _("Schedule %(schedule)s is saved.") % {"schedule": answer.name}
                self.message_user(request, text, messages.SUCCESS)
                return HttpResponseRedirect(self._change_url(answer.name))
            form.add_error(None, answer.detail)
        title = _("Add a schedule")
        if view is not None:
            title = _("Change the schedule %(schedule)s") % {"schedule": view.schedule.name}
        context = {
            "title": title,
            "form": form,
            "back": self.list_url() if view is None else self._url("change", view),
            "none_open": not form.open_types,
        }
        return self.page(request, "admin/backwave/schedule/form.html", context)

    def _found(self, name: str, *, clock: datetime) -> ScheduleView:
        view = monitor.schedule_view(unquote(name), clock=clock)
        if view is None:
            raise Http404
        return view

    def _run(self, job: Any, clock: datetime) -> tuple[object, object, object]:
        url = reverse("admin:backwave_job_change", args=[job.pk], current_app=self.admin_site.name)
        link = format_html('<a href="{}">{}</a>', url, cells.exact(job.scheduled_for))
        badge = cells.state_badge(job.state, job.get_state_display())
        return link, badge, cells.instant(job.terminal_at, now=clock)

    def _tell(self, request: HttpRequest, action: ScheduleAction, answer: ScheduleAnswer) -> None:
        if answer.result is ActionResult.DONE:
            text = action.done % {"schedule": answer.name}
            self.message_user(request, text, messages.SUCCESS)
            return
        text = _("Nothing was changed: %(why)s.") % {"why": answer.detail or answer.result}
        self.message_user(request, text, messages.WARNING)

    def _url(self, page: str, view: ScheduleView) -> str:
        if page == "change":
            return self._change_url(view.schedule.name)
        name = f"admin:backwave_schedule_{page}"
        args = [quote(view.schedule.name)]
        return reverse(name, args=args, current_app=self.admin_site.name)

    def _change_url(self, name: str) -> str:
        url = "admin:backwave_schedule_change"
        return reverse(url, args=[quote(name)], current_app=self.admin_site.name)
