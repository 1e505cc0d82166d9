"""Pumps: who runs where, how they are, and the switch to let one finish and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.urls import path
from django.utils.translation import gettext as _

from backwave_django import monitor, operations
from backwave_django.admin import cells
from backwave_django.admin.acting import RequiredReasonForm
from backwave_django.admin.rights import ListOnlyAdmin, csrf_protected, may

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern


class PumpAdmin(ListOnlyAdmin):
    """One page with every pump, and a page to ask before one is drained."""

    def get_urls(self) -> list[URLPattern]:
        """Put the question in front of Django's own pages."""
        wrap = self.admin_site.admin_view
        drain = path("<uuid:pump_id>/drain/", wrap(self.drain_view), name="backwave_pump_drain")
        return [drain, *super().get_urls()]

    def has_drain_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may drain pumps."""
        return self.has_view_permission(request) and may(request, "drain_pump")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show every pump, those that live first."""
        if not self.has_view_permission(request) or request.method == "POST":
            raise PermissionDenied
        clock = monitor.database_clock()
        views = sorted(monitor.pump_views(clock=clock), key=lambda view: not view.claims)
        claiming = [view for view in views if view.claims]
        context = {
            "title": _("Pumps"),
            "pumps": [
                (
                    view,
                    cells.pulse_badge(view),
                    cells.instant(view.pump.seen_at, now=clock),
                    cells.instant(view.lapses_at, now=clock),
                    cells.instant(view.pump.started_at, now=clock),
                    f"{view.pump.succeeded:,}",
                    f"{view.pump.failed:,}",
                )
                for view in views
            ],
            "live": len(claiming),
            "executing": sum(view.pump.executing for view in claiming),
            "slots": sum(view.pump.pool_size for view in claiming),
            "may_drain": self.has_drain_permission(request),
            "clock": clock,
            **(extra_context or {}),
        }
        return self.page(request, "admin/backwave/pump/list.html", context)

    @csrf_protected
    def drain_view(self, request: HttpRequest, pump_id: UUID) -> HttpResponse:
        """Ask for a reason, then ask the pump to drain."""
        if not self.has_drain_permission(request):
            raise PermissionDenied
        clock = monitor.database_clock()
        view = monitor.pump_of(pump_id, clock=clock)
        if view is None:
            raise Http404
        form = RequiredReasonForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            actor = operations.actor_for(request.user, reason=form.cleaned_data["reason"])
            self._tell(request, view, asked=operations.drain(pump_id, actor=actor, now=clock))
            return HttpResponseRedirect(self.list_url())
        context = {
            "title": _("Drain the pump %(pump)s") % {"pump": view.pump},
            "effect": _(
                "It claims no more jobs, lets those that run end within its shutdown timeout, "
                "hands back what is left without spending an attempt, and stops. What started it "
                "may start it again."
            ),
            "button": _("Drain"),
            "view": view,
            "badge": cells.pulse_badge(view),
            "seen": cells.instant(view.pump.seen_at, now=clock),
            "form": form,
            "back": self.list_url(),
        }
        return self.page(request, "admin/backwave/pump/drain.html", context)

    def _tell(self, request: HttpRequest, view: monitor.PumpView, *, asked: bool) -> None:
        words = {"pump": view.pump}
        if asked:
            text = _("Pump %(pump)s is asked to drain; it hears so at its next heartbeat.")
            self.message_user(request, text % words, messages.SUCCESS)
        else:
            text = _("Pump %(pump)s is not alive any more. Nothing was changed.")
            self.message_user(request, text % words, messages.WARNING)
