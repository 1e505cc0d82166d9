"""Jobs: a list that costs the same on any table, a page for each, and what may be done to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django import monitor
from backwave_django.admin import cells
from backwave_django.admin.acting import BY_NAME, MOST_AT_ONCE, ask_or_act, no_jobs_chosen
from backwave_django.admin.detail import job_page
from backwave_django.admin.filters import QueueFilter, TypeFilter, as_id, search, segments_of
from backwave_django.admin.lists import STATE, KeysetChangeList
from backwave_django.admin.rights import ReadOnlyAdmin, csrf_protected, may, unstored
from backwave_django.conf import get_config
from backwave_django.core.states import TERMINAL, JobState
from backwave_django.models import Job
from backwave_django.models.choices import STATE_CHOICES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

    from backwave_django.admin.keyset import Segment

#: What a row of the list shows; payloads and outputs stay in the database.
LISTED: Final = (
    "id",
    "wire_name",
    "queue",
    "state",
    "priority",
    "due_at",
    "limit_key",
    "run",
    "spent",
    "max_attempts",
    "cause",
    "terminal_at",
)
FILTERED_BY: Final = (QueueFilter.parameter_name, TypeFilter.parameter_name)


class Tab(NamedTuple):
    """One state to show, with how many jobs are in it."""

    label: str
    link: str
    number: monitor.Capped | None
    chosen: bool


class JobChangeList(KeysetChangeList):
    """Jobs of one state or of all, each in the order of an index."""

    @property
    def state(self) -> JobState | None:
        """The state that was asked for; none for all, and for a word that is no state."""
        asked = self.params.get(STATE)
        return JobState(asked) if asked in set(JobState) else None

    def segments(self) -> Sequence[Segment]:
        """Scheduled jobs in claim order, ended ones by when they ended, others newest first."""
        return segments_of(self.state)

    @property
    def tabs(self) -> list[Tab]:
        """A tab for each state, and one for all."""
        counts = monitor.job_counts()
        everything = Tab(_("All"), self._tab(None), None, self.state is None)
        return [
            everything,
            *(
                Tab(str(label), self._tab(state), counts[JobState(state)], self.state == state)
                for state, label in STATE_CHOICES
            ),
        ]

    @property
    def narrowed(self) -> bool:
        """Whether the list is narrowed by more than a state."""
        return bool(self.query) or any(map(self.params.get, FILTERED_BY))

    @property
    def cleared_link(self) -> str:
        """Return the URL of the same tab without filters."""
        return self.get_query_string(remove=["q", *FILTERED_BY])

    @property
    def order_note(self) -> str:
        """Return in which order the list is."""
        if self.state is JobState.SCHEDULED:
            return _("In the order in which pumps claim them.")
        if self.state in TERMINAL:
            return _("Those that ended last come first.")
        return _("Newest first.")

    def _tab(self, state: str | None) -> str:
        return self.get_query_string({STATE: state})


class JobAdmin(ReadOnlyAdmin):
    """The console for jobs."""

    change_list_template = "admin/backwave/job/change_list.html"
    list_display = (
        "short_id",
        "wire_name",
        "queue",
        "state_badge",
        "attempt",
        "due",
        "ended",
        "why",
    )
    list_display_links = ("short_id",)
    list_filter = (QueueFilter, TypeFilter)
    search_fields = ("id",)
    actions = ("requeue_jobs", "cancel_jobs", "run_jobs_now")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """Read what a row shows, and nothing that may be large or secret."""
        return super().get_queryset(request).only(*LISTED)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Read pages by key."""
        return JobChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        """Search by the beginning of an id, or by type."""
        return (queryset.filter(search(search_term)) if search_term.strip() else queryset), False

    @csrf_protected
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; a POST is an action."""
        if request.method == "POST":
            return self._act(request)
        job_id = as_id(request.GET.get("q", ""))
        if job_id is not None and self.get_queryset(request).filter(pk=job_id).exists():
            return HttpResponseRedirect(self._page_of(job_id))
        context = {"title": _("Jobs"), "horizon": _horizon(), **(extra_context or {})}
        return super().changelist_view(request, context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one job. Nothing is sent to this address."""
        if not self.has_view_permission(request) or request.method not in {"GET", "HEAD"}:
            raise PermissionDenied
        job_id = as_id(object_id)
        detail = None
        if job_id is not None and self.get_queryset(request).filter(pk=job_id).exists():
            detail = job_page(self, request, job_id)
        if detail is None:
            return self._gone(request, object_id)
        return unstored(detail)

    def _act(self, request: HttpRequest) -> HttpResponse:
        """Do what was posted, if it is known and allowed; a forged request is refused."""
        action = BY_NAME.get(request.POST.get("action", ""))
        if not self.has_view_permission(request):
            raise PermissionDenied
        if action is None:
            self.message_user(
                request, _("Choose an action. Nothing was changed."), messages.WARNING
            )
            return HttpResponseRedirect(request.get_full_path())
        if action.name not in self.get_actions(request):
            raise PermissionDenied
        chosen = {
            job_id
            for text in request.POST.getlist(ACTION_CHECKBOX_NAME)
            if (job_id := as_id(text)) is not None
        }
        if not 1 <= len(chosen) <= MOST_AT_ONCE:
            self.message_user(request, no_jobs_chosen(len(chosen)), messages.WARNING)
            return HttpResponseRedirect(request.get_full_path())
        queryset = self.get_queryset(request).filter(pk__in=chosen)
        response: HttpResponse = getattr(self, action.name)(request, queryset)
        return response

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        text = _(
            "Job %(id)s is gone: purged after its retention, rolled back, or never there. What "
            "people did to it is still in the operator log."
        )
        self.message_user(request, text % {"id": object_id}, messages.WARNING)
        name = "admin:backwave_job_changelist"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))

    def _page_of(self, job_id: object) -> str:
        name = "admin:backwave_job_change"
        return reverse(name, args=[job_id], current_app=self.admin_site.name)

    @admin.action(description=gettext_lazy("Requeue…"), permissions=["requeue"])
    def requeue_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse:
        """Bring ended jobs back."""
        return ask_or_act(self, request, list(queryset), BY_NAME["requeue_jobs"])

    @admin.action(description=gettext_lazy("Cancel…"), permissions=["cancel"])
    def cancel_jobs(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse:
        """Stop jobs that wait, and ask those that run to stop."""
        return ask_or_act(self, request, list(queryset), BY_NAME["cancel_jobs"])

    @admin.action(description=gettext_lazy("Run now…"), permissions=["run_now"])
    def run_jobs_now(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse:
        """Drop the delay of scheduled jobs."""
        return ask_or_act(self, request, list(queryset), BY_NAME["run_jobs_now"])

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may bring jobs back."""
        return may(request, "requeue_job")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may cancel jobs."""
        return may(request, "cancel_job")

    def has_run_now_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may drop a job's delay."""
        return may(request, "run_job_now")

    @admin.display(description=gettext_lazy("job"))
    def short_id(self, job: Job) -> SafeString:
        """Return both ends of the id: the beginning is the same for jobs of one minute."""
        text = str(job.pk)
        return format_html('<span class="bw-id" title="{}">{}…{}</span>', text, text[:8], text[-4:])

    @admin.display(description=gettext_lazy("state"))
    def state_badge(self, job: Job) -> SafeString:
        """Return the state as a word with its icon."""
        return cells.state_badge(job.state, job.get_state_display())

    @admin.display(description=gettext_lazy("attempt"))
    def attempt(self, job: Job) -> str:
        """Return which attempt the job is at."""
        return cells.attempt(job)

    @admin.display(description=gettext_lazy("due"))
    def due(self, job: Job) -> SafeString | str:
        """Return when the job is due, while that matters."""
        return cells.instant(job.due_at if job.state == JobState.SCHEDULED else None)

    @admin.display(description=gettext_lazy("ended"))
    def ended(self, job: Job) -> SafeString | str:
        """Return when the job ended."""
        return cells.instant(job.terminal_at)

    @admin.display(description=gettext_lazy("cause"))
    def why(self, job: Job) -> str:
        """Return why the job ended, unless it simply succeeded."""
        if job.cause is None or job.state == JobState.SUCCEEDED:
            return cells.NOTHING
        return monitor.cause_label(job.cause)


def _horizon() -> str:
    """Return how long jobs that succeeded can be looked at."""
    kept = get_config().retention.succeeded
    if kept is None:
        return _("Jobs that succeeded are kept for ever.")
    return _("Jobs that succeeded are kept for %(span)s.") % {"span": monitor.span(kept)}
