"""The operator log: what people asked for, to read only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django.admin import cells
from backwave_django.admin.lists import KeysetChangeList
from backwave_django.admin.rights import ReadOnlyAdmin

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

    from backwave_django.models import OperatorAction


class OperatorActionAdmin(ReadOnlyAdmin):
    """Newest first. The search is for one target: a job's id, a queue's name."""

    change_list_template = "admin/backwave/operatoraction/change_list.html"
    list_display = ("at_text", "actor_name", "source", "action", "what", "reason", "result")
    list_display_links = ("at_text",)
    search_fields = ("target",)
    actions = None
    fields = (
        "at",
        "actor_name",
        "source",
        "action",
        "target_kind",
        "target",
        "reason",
        "result",
        "before",
        "after",
    )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Read pages by key."""
        return KeysetChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[OperatorAction], search_term: str
    ) -> tuple[QuerySet[OperatorAction], bool]:
        """Search for a target, in the way an index can answer."""
        term = search_term.strip()
        if not term:
            return queryset, False
        kinds = ("job", "queue", "pump", "limit_key", "schedule", "workflow")
        return queryset.filter(target_kind__in=kinds, target=term), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the log."""
        if request.method == "POST":
            raise PermissionDenied
        context = {"title": _("Operator log"), **(extra_context or {})}
        return super().changelist_view(request, context)

    @admin.display(description=gettext_lazy("when"))
    def at_text(self, entry: OperatorAction) -> SafeString | str:
        """Return when it was."""
        return cells.instant(entry.at)

    @admin.display(description=gettext_lazy("target"))
    def what(self, entry: OperatorAction) -> SafeString | str:
        """Return the target; a job's is a link."""
        if entry.target_kind != "job":
            return f"{entry.target_kind} {entry.target}"
        name = "admin:backwave_job_change"
        url = reverse(name, args=[entry.target], current_app=self.admin_site.name)
        return format_html('<a href="{}">{} {}</a>', url, _("job"), entry.target)
