"""How a button on jobs becomes an operator action: ask, act, and say honestly what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from backwave_django import monitor, operations
from backwave_django.core import bounds
from backwave_django.core.contract import ActionResult
from backwave_django.core.states import REQUEUEABLE, TERMINAL, JobState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest, HttpResponse
    from django_stubs_ext import StrPromise

    from backwave_django.core.contract import ActionAnswer
    from backwave_django.models import Job

#: More than a page shows cannot be ticked; the rest would be a forged request.
MOST_AT_ONCE: Final = bounds.MAX_BATCH
#: Jobs that the confirmation page lists by name.
MOST_LISTED: Final = 20
CONFIRMED: Final = "confirmed"
FROM_JOB: Final = "from_job"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAction:
    """One action on jobs: its right, the states it applies to, and its words.

    ``done`` and the texts in ``other`` are plural forms that take ``count``.
    """

    name: str
    right: str
    command: str
    states: frozenset[JobState]
    title: StrPromise
    effect: StrPromise
    verb: StrPromise
    button: StrPromise
    done: StrPromise
    run: Callable[..., tuple[ActionAnswer, ...]]
    destructive: bool = False

    def applies_to(self, job: Job) -> bool:
        """Tell whether the job is in a state that the action changes."""
        return JobState(job.state) in self.states


ACTIONS: Final = (
    JobAction(
        name="requeue_jobs",
        right="requeue_job",
        command="backwave_requeue",
        states=REQUEUEABLE,
        title=gettext_lazy("Requeue jobs"),
        effect=gettext_lazy(
            "They become due now, with all their attempts, under the id that they have. What they "
            "did before stays on record."
        ),
        verb=gettext_lazy("Requeue"),
        button=gettext_lazy("Requeue"),
        done=ngettext_lazy("%(count)d job requeued", "%(count)d jobs requeued", "count"),
        run=operations.requeue,
    ),
    JobAction(
        name="cancel_jobs",
        right="cancel_job",
        command="backwave_cancel",
        states=frozenset(JobState) - TERMINAL,
        title=gettext_lazy("Cancel jobs"),
        effect=gettext_lazy(
            "Those that wait never start. Those that run are asked to stop: their bodies decide "
            "when, and one that succeeds before it notices has succeeded."
        ),
        verb=gettext_lazy("Cancel"),
        button=gettext_lazy("Cancel jobs"),
        done=ngettext_lazy("%(count)d job cancelled", "%(count)d jobs cancelled", "count"),
        run=operations.cancel,
        destructive=True,
    ),
    JobAction(
        name="run_jobs_now",
        right="run_job_now",
        command="",
        states=frozenset({JobState.SCHEDULED}),
        title=gettext_lazy("Run jobs now"),
        effect=gettext_lazy(
            "Their delay is dropped: they are due now and are claimed in their turn. A paused "
            "queue stays paused."
        ),
        verb=gettext_lazy("Run now"),
        button=gettext_lazy("Run now"),
        done=ngettext_lazy("%(count)d job is due now", "%(count)d jobs are due now", "count"),
        run=operations.run_now,
    ),
)
BY_NAME: Final = {action.name: action for action in ACTIONS}

_OTHER: Final[dict[ActionResult, StrPromise]] = {
    ActionResult.REQUESTED: ngettext_lazy(
        "%(count)d running job asked to stop", "%(count)d running jobs asked to stop", "count"
    ),
    ActionResult.REFUSED: ngettext_lazy(
        "%(count)d had already changed", "%(count)d had already changed", "count"
    ),
    ActionResult.CONFLICT: ngettext_lazy(
        "%(count)d skipped, because another live job holds its unique key",
        "%(count)d skipped, because other live jobs hold their unique keys",
        "count",
    ),
    ActionResult.GONE: ngettext_lazy("%(count)d is gone", "%(count)d are gone", "count"),
}
_CHANGED: Final = frozenset({ActionResult.DONE, ActionResult.REQUESTED})


class ReasonForm(forms.Form):
    """Why the person does it, for the operator log."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=bounds.MAX_REASON_CHARS,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text=gettext_lazy("It is kept in the operator log, with your name."),
    )


class RequiredReasonForm(ReasonForm):
    """The same, for what others will ask about."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = True


def ask_or_act(
    model_admin: ModelAdmin[Job], request: HttpRequest, jobs: Sequence[Job], action: JobAction
) -> HttpResponse:
    """Show the confirmation page; once that was sent, act and go back to where it began."""
    form = ReasonForm(request.POST if CONFIRMED in request.POST else None)
    if form.is_valid():
        return _act(model_admin, request, jobs, action, reason=form.cleaned_data["reason"])
    applicable = [job for job in jobs if action.applies_to(job)]
    context = {
        **model_admin.admin_site.each_context(request),
        "title": action.title,
        "opts": model_admin.opts,
        "media": model_admin.media,
        "action": action,
        "form": form,
        "jobs": jobs[:MOST_LISTED],
        "unlisted": max(len(jobs) - MOST_LISTED, 0),
        "ids": [job.pk for job in jobs],
        "applicable": len(applicable),
        "inapplicable": len(jobs) - len(applicable),
        "running": sum(job.state == JobState.LEASED for job in applicable),
        "checkbox_name": ACTION_CHECKBOX_NAME,
        "confirmed_name": CONFIRMED,
        "from_job": request.POST.get(FROM_JOB, ""),
        "command": _command(action, jobs),
        "back": _back(model_admin, request, jobs),
    }
    return TemplateResponse(request, "admin/backwave/job/confirm.html", context)


def _act(
    model_admin: ModelAdmin[Job],
    request: HttpRequest,
    jobs: Sequence[Job],
    action: JobAction,
    *,
    reason: str,
) -> HttpResponse:
    actor = operations.actor_for(request.user, reason=reason)
    answers = action.run([job.pk for job in jobs], actor=actor, now=monitor.database_clock())
    level = messages.SUCCESS if any(a.result in _CHANGED for a in answers) else messages.WARNING
    model_admin.message_user(request, told(action, answers), level)
    if len(answers) == 1 and answers[0].result in _CHANGED:
        model_admin.log_change(request, jobs[0], str(action.verb))
    return HttpResponseRedirect(_back(model_admin, request, jobs))


def told(action: JobAction, answers: Sequence[ActionAnswer]) -> str:
    """Return what came of the action, each result with its count."""
    counts = operations.tally(answers)
    done = counts.pop(ActionResult.DONE, 0)
    parts = [action.done % {"count": done}] if done or not counts else []
    parts += [str(_OTHER[result] % {"count": count}) for result, count in counts.items()]
    text = ", ".join(map(str, parts))
    if len(answers) == 1 and answers[0].detail and not done:
        return f"{text}. {answers[0].detail}"
    return f"{text}."


def _command(action: JobAction, jobs: Sequence[Job]) -> str:
    if not action.command:
        return ""
    listed = " ".join(str(job.pk) for job in jobs[:MOST_LISTED])
    more = " …" if len(jobs) > MOST_LISTED else ""
    return f"python manage.py {action.command} {listed}{more}"


def _back(model_admin: ModelAdmin[Job], request: HttpRequest, jobs: Sequence[Job]) -> str:
    """Return the page of the job that the button was on, or the list with its filters."""
    if FROM_JOB in request.POST and request.POST[FROM_JOB] and len(jobs) == 1:
        name = "admin:backwave_job_change"
        return reverse(name, args=[jobs[0].pk], current_app=model_admin.admin_site.name)
    return request.get_full_path()


def no_jobs_chosen(count: int) -> str:
    """Return what to tell somebody who chose none, or too many."""
    if not count:
        return _("Choose at least one job. Nothing was changed.")
    return ngettext(
        "Choose at most %(most)d job at once. Nothing was changed.",
        "Choose at most %(most)d jobs at once. Nothing was changed.",
        MOST_AT_ONCE,
    ) % {"most": MOST_AT_ONCE}
