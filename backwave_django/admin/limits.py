"""Limits of keys and patterns: what holds, who says so, and the form to change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q
from django.http import HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django import monitor, operations
from backwave_django.admin import cells
from backwave_django.admin.keyset import Segment
from backwave_django.admin.limit_forms import KeyLimitForm
from backwave_django.admin.lists import KeysetChangeList
from backwave_django.admin.rights import ListOnlyAdmin, csrf_protected, may
from backwave_django.conf import get_config
from backwave_django.core.limits import PATTERN, UNLIMITED, Cap
from backwave_django.core.rates import rate_or_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    from backwave_django.models import Limit

#: Patterns are few and govern the rest, so they stand above it.
_PATTERNS_FIRST: Final = (
    Segment(columns=("key",), condition=Q(source=PATTERN)),
    Segment(columns=("key",), condition=~Q(source=PATTERN)),
)


class LimitChangeList(KeysetChangeList):
    """Patterns, then keys; what holds for them is read for the whole page at once."""

    def segments(self) -> Sequence[Segment]:
        """Return the order of the list."""
        return _PATTERNS_FIRST

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and what the rows of it do not say themselves."""
        super().get_results(request)
        clock = monitor.database_clock()
        views = monitor.key_views([row.pk for row in self.page.rows], clock=clock)
        for row in self.page.rows:
            row.view, row.clock = views[row.pk], clock
            row.may_set = may(request, "set_limit")


class LimitAdmin(ListOnlyAdmin):
    """A list of what limits keys, and a page that asks before it is changed."""

    change_list_template = "admin/backwave/limit/change_list.html"
    list_display = ("key_text", "number", "running", "rate_text", "source_text")
    search_fields = ("key",)
    #: The cells have links of their own: not everybody may follow them.
    list_display_links = None
    actions = None

    def get_urls(self) -> list[URLPattern]:
        """Put the question in front of Django's own pages."""
        view = self.admin_site.admin_view(self.set_view)
        return [path("set/", view, name="backwave_limit_set"), *super().get_urls()]

    def has_set_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may change limits of keys."""
        return self.has_view_permission(request) and may(request, "set_limit")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Read pages by key."""
        return LimitChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Limit], search_term: str
    ) -> tuple[QuerySet[Limit], bool]:
        """Search for the beginning of a key, in the way an index can answer."""
        term = search_term.strip().removesuffix("*")
        return (queryset.filter(pk__startswith=term) if term else queryset), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list."""
        if request.method == "POST":
            raise PermissionDenied
        context = {
            "title": _("Limits of keys"),
            "may_set": self.has_set_permission(request),
            "set_url": self._set_url(),
            **(extra_context or {}),
        }
        return super().changelist_view(request, context)

    @csrf_protected
    def set_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for numbers and a reason, then set what differs from what is there."""
        if not self.has_set_permission(request):
            raise PermissionDenied
        key = request.POST.get("key") or request.GET.get("key", "")
        row = self.get_queryset(request).filter(pk=key).first()
        own = {} if row is None else {"number": row.limit, "rate": row.rate or ""}
        asked = request.POST if request.method == "POST" else None
        form = KeyLimitForm(asked, initial={"key": key, **own})
        if form.is_valid() and form.cap == UNLIMITED and row is None:
            form.add_error(None, _("Give a number, a rate, or both."))
        elif form.is_valid():
            self._set(request, form, row)
            text = _("The limit of %(key)s is set.") % {"key": form.cleaned_data["key"]}
            self.message_user(request, text, messages.SUCCESS)
            return HttpResponseRedirect(self.list_url())
        context = {
            "media": self.media + form.media,
            "title": _("Limit a key"),
            "effect": _(
                "It holds for claims from now on, whatever the code declares. Jobs that run go "
                "on. With both fields empty the key is as the code, or a pattern, says."
            ),
            "button": _("Set the limit"),
            "form": form,
            "back": self.list_url(),
        }
        return self.page(request, "admin/backwave/ask.html", context)

    def _set(self, request: HttpRequest, form: KeyLimitForm, row: Limit | None) -> None:
        """Carry it out, all or nothing. What code declares becomes a choice by being confirmed."""
        key, (number, rate) = form.cleaned_data["key"], form.cap
        actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
        now = monitor.database_clock()
        had = UNLIMITED if row is None else Cap(row.limit, rate_or_none(row.rate))
        with transaction.atomic(using=get_config().database):
            if had.number is not None or number is not None:
                operations.limit_key(key, number, actor=actor, now=now)
            if had.rate is not None or rate is not None:
                operations.rate_key(key, rate, actor=actor, now=now)

    @admin.display(description=gettext_lazy("key"))
    def key_text(self, row: Limit) -> SafeString | str:
        """Return the key, as a link for those who may change it."""
        mark = f" ({_('pattern')})" if row.source == PATTERN else ""
        if not row.may_set:  # type: ignore[attr-defined]  # set by the list
            return f"{row.pk}{mark}"
        url = f"{self._set_url()}?{urlencode({'key': row.pk})}"
        return format_html('<a href="{}">{}</a>{}', url, row.pk, mark)

    @admin.display(description=gettext_lazy("at once"))
    def number(self, row: Limit) -> str:
        """Return how many jobs may run at once."""
        found = self._view(row).cap.number
        return cells.NOTHING if found is None else str(found)

    @admin.display(description=gettext_lazy("running"))
    def running(self, row: Limit) -> str:
        """Return how many run; those of a pattern are with its keys."""
        return cells.NOTHING if row.source == PATTERN else str(self._view(row).running)

    @admin.display(description=gettext_lazy("rate"))
    def rate_text(self, row: Limit) -> SafeString | str:
        """Return the rate, and when its next token comes if there is none."""
        view = self._view(row)
        if view.cap.rate is None:
            return cells.NOTHING
        if view.next_token is None:
            return str(view.cap.rate)
        token = cells.instant(view.next_token, now=row.clock)  # type: ignore[attr-defined]  # set by the list
        return format_html("{} ({} {})", view.cap.rate, _("next token"), token)

    @admin.display(description=gettext_lazy("set by"))
    def source_text(self, row: Limit) -> str:
        """Return who says so."""
        said_by = self._view(row).said_by
        if said_by != row.pk:
            return _("the pattern %(pattern)s") % {"pattern": said_by}
        return str(row.get_source_display())

    def _view(self, row: Limit) -> monitor.KeyView:
        view: monitor.KeyView = row.view  # type: ignore[attr-defined]  # set by the list
        return view

    def _set_url(self) -> str:
        return reverse("admin:backwave_limit_set", current_app=self.admin_site.name)
