"""Workflows: which there are, what each of their jobs waits for, and what may be done to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django import monitor
from backwave_django.admin import cells
from backwave_django.admin.filters import as_id
from backwave_django.admin.lists import KeysetChangeList
from backwave_django.admin.rights import ReadOnlyAdmin, csrf_protected, may
from backwave_django.admin.workflow_actions import ACTIONS, told
from backwave_django.core.workflows import status_of
from backwave_django.models.choices import STATE_CHOICES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    from backwave_django.core.states import JobState
    from backwave_django.models import Workflow

_STATE_LABELS = dict(STATE_CHOICES)


class WorkflowChangeList(KeysetChangeList):
    """Newest first; the members of the workflows on the page are counted at once."""

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and what the members of its workflows are doing."""
        super().get_results(request)
        counts = monitor.member_counts([row.pk for row in self.page.rows])
        for row in self.page.rows:
            row.counts = counts.get(row.pk, {})


class WorkflowAdmin(ReadOnlyAdmin):
    """A list, a page for each, and a question before each action."""

    change_list_template = "admin/backwave/workflow/change_list.html"
    list_display = ("name", "status", "jobs", "begun")
    list_display_links = ("name",)
    search_fields = ("id",)
    actions = None

    def get_urls(self) -> list[URLPattern]:
        """Put the questions in front of Django's own pages."""
        wrap = self.admin_site.admin_view
        questions = [
            path(
                f"<uuid:workflow_id>/{name}/",
                wrap(self.ask_view),
                {"name": name},
                name=f"backwave_workflow_{name}",
            )
            for name in ACTIONS
        ]
        return [*questions, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Read pages by key."""
        return WorkflowChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Workflow], search_term: str
    ) -> tuple[QuerySet[Workflow], bool]:
        """Search for an id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        wanted = as_id(term)
        return (queryset.none() if wanted is None else queryset.filter(pk=wanted)), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list."""
        if request.method == "POST":
            raise PermissionDenied
        return super().changelist_view(request, {"title": _("Workflows"), **(extra_context or {})})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one workflow. Nothing is sent to this address."""
        if not self.has_view_permission(request) or request.method not in {"GET", "HEAD"}:
            raise PermissionDenied
        workflow_id = as_id(object_id)
        found = None if workflow_id is None else monitor.workflow_detail(workflow_id)
        if found is None:
            return self._gone(request, object_id)
        clock = monitor.database_clock()
        sees_jobs, sees_log = may(request, "view_job"), may(request, "view_operatoraction")
        context = {
            "title": found.record.name,
            "detail": found,
            "record": found.record,
            "status": monitor.status_label(found.status),
            "counts": _badges(found.record.counts),
            "begun": cells.instant(found.record.created_at, now=clock),
            "members": [
                (member, cells.state_badge(member.job.state, member.job.get_state_display()))
                for member in found.members
            ],
            "sees_jobs": sees_jobs,
            "log": [(cells.instant(e.at, now=clock), e) for e in found.actions if sees_log],
            "actions": [
                (action, self._url(name, found.record.id))
                for name, action in ACTIONS.items()
                if may(request, action.right) and action.applies_to(found)
            ],
        }
        return self.page(request, "admin/backwave/workflow/detail.html", context)

    @csrf_protected
    def ask_view(self, request: HttpRequest, workflow_id: UUID, name: str) -> HttpResponse:
        """Ask for a reason, then act."""
        action = ACTIONS[name]
        if not self.has_view_permission(request) or not may(request, action.right):
            raise PermissionDenied
        found = monitor.workflow_detail(workflow_id)
        if found is None:
            return self._gone(request, workflow_id)
        form = action.form(request.POST if request.method == "POST" else None)
        if form.is_valid():
            answer = action.act(request, workflow_id, form.cleaned_data)
            level = messages.SUCCESS if answer.jobs else messages.WARNING
            self.message_user(request, told(action, answer), level)
            shown = answer.restarted_as or workflow_id
            return HttpResponseRedirect(self._url("change", shown))
        context = {
            "title": _("%(verb)s the workflow %(name)s")
            % {"verb": action.verb, "name": found.record.name},
            "effect": action.effect,
            "button": action.verb,
            "counts": _badges(found.record.counts),
            "form": form,
            "back": self._url("change", workflow_id),
        }
        return self.page(request, "admin/backwave/workflow/ask.html", context)

    @admin.display(description=gettext_lazy("status"))
    def status(self, workflow: Workflow) -> str:
        """Return what the states of its jobs add up to."""
        return monitor.status_label(status_of(_counts(workflow)))

    @admin.display(description=gettext_lazy("jobs"))
    def jobs(self, workflow: Workflow) -> SafeString | str:
        """Return how many of its jobs are in each state."""
        return _badges(_counts(workflow)) or cells.NOTHING

    @admin.display(description=gettext_lazy("begun"))
    def begun(self, workflow: Workflow) -> SafeString | str:
        """Return when it was inserted."""
        return cells.instant(workflow.created_at)

    def _gone(self, request: HttpRequest, workflow_id: object) -> HttpResponse:
        text = _("Workflow %(id)s is gone: purged with its last job, rolled back, or never there.")
        self.message_user(request, text % {"id": workflow_id}, messages.WARNING)
        return HttpResponseRedirect(self._url("changelist"))

    def _url(self, page: str, *args: object) -> str:
        name = f"admin:backwave_workflow_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)


def _counts(workflow: Workflow) -> Mapping[JobState, int]:
    counts: Mapping[JobState, int] = getattr(workflow, "counts", {})
    return counts


def _badges(counts: Mapping[JobState, int]) -> SafeString:
    """Return each state that has members, with their number."""
    shown = (
        (cells.state_badge(state, str(_STATE_LABELS[state])), f"{count:,}")
        for state, count in counts.items()
    )
    return format_html_join(" ", "{} {}", shown)
