"""How a button on a workflow becomes an operator action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from backwave_django import monitor, operations
from backwave_django.admin.acting import RequiredReasonForm
from backwave_django.core.contract import ActionResult
from backwave_django.core.workflows import RetryScope, WorkflowStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from django.http import HttpRequest
    from django_stubs_ext import StrPromise

    from backwave_django.core.contract import WorkflowAnswer

_LIVE: Final = frozenset({WorkflowStatus.RUNNING, WorkflowStatus.FAILING})


class RetryForm(RequiredReasonForm):
    """What a retry brings back, and why."""

    scope = forms.ChoiceField(
        label=gettext_lazy("Run again"),
        choices=[
            (RetryScope.FAILED.value, gettext_lazy("what failed, and what was cancelled by it")),
            (
                RetryScope.FAILED_AND_BELOW.value,
                gettext_lazy("what failed and everything after it, successes included"),
            ),
        ],
        widget=forms.RadioSelect,
        initial=RetryScope.FAILED.value,
    )
    field_order = ("scope", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAction:
    """One action on workflows: its right, the statuses it applies to, and its words."""

    right: str
    statuses: frozenset[WorkflowStatus]
    verb: StrPromise
    effect: StrPromise
    done: StrPromise
    run: Callable[..., WorkflowAnswer]
    form: type[RequiredReasonForm] = RequiredReasonForm
    destructive: bool = False

    def applies_to(self, found: monitor.WorkflowDetail) -> bool:
        """Tell whether the workflow is in a status that the action changes."""
        return found.status in self.statuses

    def act(
        self, request: HttpRequest, workflow_id: UUID, values: Mapping[str, Any]
    ) -> WorkflowAnswer:
        """Do it, in the name of the person."""
        actor = operations.actor_for(request.user, reason=values["reason"])
        more = {"scope": RetryScope(values["scope"])} if "scope" in values else {}
        return self.run(workflow_id, actor=actor, now=monitor.database_clock(), **more)


ACTIONS: Final = {
    "retry": WorkflowAction(
        right="retry_workflow",
        statuses=frozenset({WorkflowStatus.FAILED, WorkflowStatus.FAILING}),
        verb=gettext_lazy("Retry"),
        effect=gettext_lazy(
            "Failed jobs come back under the ids that they have, with all their attempts, and wait "
            "for each other again. Those that succeeded are not run again unless you ask for it."
        ),
        done=ngettext_lazy("%(count)d job came back.", "%(count)d jobs came back.", "count"),
        run=operations.retry_workflow,
        form=RetryForm,
    ),
    "restart": WorkflowAction(
        right="restart_workflow",
        statuses=frozenset(WorkflowStatus) - _LIVE,
        verb=gettext_lazy("Restart"),
        effect=gettext_lazy(
            "The whole graph is enqueued once more, as a workflow of its own with new jobs. This "
            "one stays as it is."
        ),
        done=ngettext_lazy("%(count)d job enqueued.", "%(count)d jobs enqueued.", "count"),
        run=operations.restart_workflow,
    ),
    "cancel": WorkflowAction(
        right="cancel_workflow",
        statuses=_LIVE,
        verb=gettext_lazy("Cancel"),
        effect=gettext_lazy(
            "Jobs that wait never start. Those that run are asked to stop: their bodies decide "
            "when. Those that have ended stay as they are."
        ),
        done=ngettext_lazy(
            "%(count)d job cancelled or asked to stop.",
            "%(count)d jobs cancelled or asked to stop.",
            "count",
        ),
        run=operations.cancel_workflow,
        destructive=True,
    ),
}


def told(action: WorkflowAction, answer: WorkflowAnswer) -> str:
    """Return what came of the action."""
    if answer.jobs:
        return str(action.done % {"count": len(answer.jobs)})
    if answer.result is ActionResult.GONE:
        return _("The workflow is gone. Nothing was changed.")
    return _("Nothing was changed: %(why)s.") % {"why": answer.detail}
