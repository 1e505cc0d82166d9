"""Who may see and do what: rows are never edited here, and every action has its own right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_protect

from backwave_django.conf import get_config

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse

APP = "backwave"
csrf_protected = method_decorator(csrf_protect)


def may(request: HttpRequest, right: str) -> bool:
    """Tell whether the person has the right ``right``, ``cancel_job`` for example."""
    return request.user.has_perm(f"{APP}.{right}")


def sees_sensitive(request: HttpRequest) -> bool:
    """Tell whether the person may see payloads, outputs, messages and tracebacks."""
    return get_config().expose_sensitive and may(request, "view_job_sensitive")


class ReadOnlyAdmin(admin.ModelAdmin):
    """Rows to look at. Not even a superuser adds, changes or deletes one: that is the store's."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    list_per_page = 100

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Read from the database that jobs live in, whatever a router says."""
        model: type[Model] = self.model
        return model._default_manager.using(get_config().database).order_by("-pk")  # noqa: SLF001 - documented

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: actions change rows, each with a right of its own."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: a purge deletes what is past its retention."""
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Refuse lookups by URL: they would let people probe columns that they may not see.

        The parameters of the list's own filters are no lookups.
        """
        return lookup in {getattr(each, "parameter_name", None) for each in self.list_filter}

    def page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        """Return a page of ours, with what Django's own pages have."""
        shown = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            **context,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, shown)

    def list_url(self) -> str:
        """Return the address of the list, on the site that this is on."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return reverse(name, current_app=self.admin_site.name)


class ListOnlyAdmin(ReadOnlyAdmin):
    """A list that shows all there is to say about each of its rows."""

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(self.list_url())


def unstored(response: HttpResponse) -> HttpResponse:
    """Keep a page that may show secrets out of every cache."""
    add_never_cache_headers(response)
    return response
