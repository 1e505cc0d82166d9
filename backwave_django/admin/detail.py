"""The page of one job: what it is, why it stands where it stands, and what happened to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from backwave_django import monitor
from backwave_django.admin import cells, sensitive
from backwave_django.admin.acting import ACTIONS, FROM_JOB, JobAction
from backwave_django.admin.rights import may, sees_sensitive
from backwave_django.conf import get_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse

    from backwave_django.models import Job

Fact: TypeAlias = "tuple[str, object]"


class Value(NamedTuple):
    """A payload or an output as the person may see it."""

    text: str
    size: int
    hidden: bool


class AttemptRow(NamedTuple):
    """One outcome. What the person may not see is empty, and was not read."""

    number: int
    what: str
    at: object
    ran: str
    pump: object
    error_class: str
    next_due: object
    message: str
    traceback: str
    log: str


class RelativeRow(NamedTuple):
    """A parent or a child, with a link as long as it is there."""

    name: str
    url: str | None
    badge: object
    open: bool


class JobPage:
    """Gathers what the page of one job shows to one person."""

    def __init__(
        self, model_admin: ModelAdmin[Job], request: HttpRequest, found: monitor.JobDetail
    ) -> None:
        self._admin = model_admin
        self._request = request
        self._found = found
        self._open = sees_sensitive(request)

    def context(self, *, clock: datetime) -> dict[str, Any]:
        """Return the variables of the template."""
        found, job = self._found, self._found.job
        return {
            "title": f"{job.wire_name} {job.pk}",
            "detail": found,
            "job": job,
            "badge": cells.state_badge(job.state, job.get_state_display()),
            "facts": tuple(self._facts(job, clock)),
            "lease_facts": tuple(self._lease_facts(clock)),
            "attempts": [self._attempt(each, clock) for each in found.attempts],
            "created": cells.instant(job.created_at, now=clock),
            "relations": self._relations(),
            "log": self._log(clock),
            "open": self._open,
            "actions": self._actions(job),
            "actions_url": self._url("changelist"),
            "history_url": self._url("history", job.pk),
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "from_job_name": FROM_JOB,
            **self._values(job),
        }

    def _facts(self, job: Job, clock: datetime) -> Iterator[Fact]:
        yield _("Id"), format_html("<code>{}</code>", job.pk)
        yield _("Queue"), self._queue_link(job.queue)
        yield _("Priority"), -job.priority
        yield _("Attempt"), cells.attempt(job)
        yield (
            _("Claimed"),
            ngettext("%(count)d time", "%(count)d times", job.run) % {"count": job.run},
        )
        yield _("Enqueued"), cells.instant(job.created_at, now=clock)
        yield _("Due"), cells.instant(job.due_at, now=clock)
        if job.deadline is not None:
            yield _("Deadline"), cells.instant(job.deadline, now=clock)
        if job.terminal_at is not None:
            yield _("Ended"), cells.instant(job.terminal_at, now=clock)
            yield _("Cause"), monitor.cause_label(job.cause)
        yield from _present(
            (_("Unique key"), job.unique_key),
            (_("Limit key"), job.limit_key),
            (_("Schedule"), job.schedule),
            (_("Workflow"), self._workflow_link(job.workflow)),
        )
        yield from ((_("Tag %(tag)s") % {"tag": key}, job.tags[key]) for key in sorted(job.tags))

    def _lease_facts(self, clock: datetime) -> Iterator[Fact]:
        lease, pump = self._found.lease, self._found.pump
        if lease is None:
            return
        yield _("Pump"), lease.pump_id if pump is None else f"{pump.pump} ({pump.label})"
        yield _("Since"), cells.instant(lease.acquired_at, now=clock)
        yield _("Ends, unless renewed"), cells.instant(lease.expires_at, now=clock)
        if lease.progress_done is not None:
            total = "" if lease.progress_total is None else f"/{lease.progress_total:,}"
            message = lease.progress_message or ""
            yield _("Progress"), f"{lease.progress_done:,}{total} {message}".strip()

    def _attempt(self, each: monitor.Attempt, clock: datetime) -> AttemptRow:
        outcome = each.outcome
        ran = each.ran_for
        return AttemptRow(
            number=outcome.attempt,
            what=monitor.outcome_label(outcome),
            at=cells.instant(outcome.finished_at, now=clock),
            ran=cells.NOTHING if ran is None else monitor.span(ran),
            pump=each.pump or outcome.pump_id or cells.NOTHING,
            error_class=outcome.error_class or "",
            next_due=outcome.next_due_at and cells.instant(outcome.next_due_at, now=clock),
            message=(outcome.message or "") if self._open else "",
            traceback=(outcome.traceback or "") if self._open else "",
            log=(outcome.log or "") if self._open else "",
        )

    def _relations(self) -> list[tuple[str, list[RelativeRow]]]:
        return [
            (_("Waits for"), [self._relative(each) for each in self._found.parents]),
            (_("Waited for by"), [self._relative(each) for each in self._found.children]),
        ]

    def _relative(self, each: monitor.Relative) -> RelativeRow:
        if each.job is None:
            return RelativeRow(f"{each.id} ({_('gone')})", None, "", not each.settled)
        return RelativeRow(
            name=f"{each.job.wire_name} {each.id}",
            url=self._url("change", each.id),
            badge=cells.state_badge(each.job.state, each.job.get_state_display()),
            open=not each.settled,
        )

    def _log(self, clock: datetime) -> list[tuple[object, object]]:
        if not may(self._request, "view_operatoraction"):
            return []
        return [(cells.instant(entry.at, now=clock), entry) for entry in self._found.actions]

    def _actions(self, job: Job) -> list[JobAction]:
        """Return the actions that the person may take and that would change this job."""
        return [
            action
            for action in ACTIONS
            if may(self._request, action.right) and action.applies_to(job)
        ]

    def _values(self, job: Job) -> dict[str, Value | None]:
        if not get_config().expose_sensitive:
            return {"payload": None, "output": None}
        view = sensitive.values_of if self._open else sensitive.shape_of
        return {
            name: None
            if text is None
            else Value(view(text), sensitive.size_of(text), hidden=not self._open)
            for name, text in (("payload", job.payload), ("output", job.output))
        }

    def _queue_link(self, queue: str) -> object:
        query = urlencode({"queue": queue})
        return format_html('<a href="{}?{}">{}</a>', self._url("changelist"), query, queue)

    def _workflow_link(self, workflow_id: UUID | None) -> object:
        if workflow_id is None or not may(self._request, "view_workflow"):
            return workflow_id
        url = reverse(
            "admin:backwave_workflow_change",
            args=[workflow_id],
            current_app=self._admin.admin_site.name,
        )
        return format_html('<a href="{}">{}</a>', url, workflow_id)

    def _url(self, page: str, *args: object) -> str:
        name = f"admin:backwave_job_{page}"
        return reverse(name, args=args, current_app=self._admin.admin_site.name)


def job_page(
    model_admin: ModelAdmin[Job], request: HttpRequest, job_id: UUID
) -> HttpResponse | None:
    """Return the page, or ``None`` when the job is gone."""
    clock = monitor.database_clock()
    found = monitor.read_job(
        job_id,
        clock=clock,
        failures=sees_sensitive(request),
        values=get_config().expose_sensitive,
    )
    if found is None:
        return None
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "original": found.job,
        **JobPage(model_admin, request, found).context(clock=clock),
    }
    request.current_app = model_admin.admin_site.name
    return TemplateResponse(request, "admin/backwave/job/detail.html", context)


def _present(*facts: Fact) -> Sequence[Fact]:
    return [(label, value) for label, value in facts if value is not None]
