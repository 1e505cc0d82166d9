"""Why a job ended, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from backwave_django.core.outcomes import OutcomeKind
from backwave_django.core.states import Cause
from backwave_django.models.choices import STATE_CHOICES

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from backwave_django.models import Job, Outcome

CAUSE_LABELS: dict[Cause, StrPromise] = {
    Cause.RETURNED: gettext_lazy("its body returned"),
    Cause.ATTEMPTS: gettext_lazy("no attempts left"),
    Cause.GAVE_UP: gettext_lazy("its body gave up"),
    Cause.TIMEOUT: gettext_lazy("timed out, no attempts left"),
    Cause.OUTPUT: gettext_lazy("its output could not be stored"),
    Cause.DEADLINE: gettext_lazy("its deadline passed"),
    Cause.UNDECODABLE: gettext_lazy("its payload cannot be decoded"),
    Cause.UNROUTABLE: gettext_lazy("no pump knows its type, or its arguments do not fit"),
    Cause.OPERATOR: gettext_lazy("cancelled by a person"),
    Cause.PARENT: gettext_lazy("a parent did not succeed"),
    Cause.SUPERSEDED: gettext_lazy("superseded by a job with the same unique key"),
    Cause.JOB: gettext_lazy("cancelled by its own body"),
}

KIND_LABELS: dict[OutcomeKind, StrPromise] = {
    OutcomeKind.SUCCEEDED: gettext_lazy("succeeded"),
    OutcomeKind.FAILED: gettext_lazy("failed"),
    OutcomeKind.TIMED_OUT: gettext_lazy("timed out"),
    OutcomeKind.GAVE_UP: gettext_lazy("gave up"),
    OutcomeKind.LAPSED: gettext_lazy("lease lost"),
    OutcomeKind.OUTPUT_REFUSED: gettext_lazy("output refused"),
    OutcomeKind.CANCELLED: gettext_lazy("cancelled"),
    OutcomeKind.SNOOZED: gettext_lazy("put off"),
    OutcomeKind.RELEASED: gettext_lazy("handed back at shutdown"),
    OutcomeKind.UNROUTABLE: gettext_lazy("handed back, not routable"),
    OutcomeKind.UNDECODABLE: gettext_lazy("payload not decodable"),
    OutcomeKind.EXPIRED: gettext_lazy("deadline passed"),
}


def outcome_label(outcome: Outcome) -> str:
    """Return what happened and what the job became, in words."""
    kind = outcome.kind
    happened = str(KIND_LABELS[OutcomeKind(kind)]) if kind in set(OutcomeKind) else kind
    became = dict(STATE_CHOICES).get(outcome.state, outcome.state)
    return happened if happened == str(became) else f"{happened} → {became}"


def cause_label(cause: str | None) -> str:
    """Return the words for a cause; for one that this version does not know, the cause."""
    if not cause:
        return ""
    return str(CAUSE_LABELS[Cause(cause)]) if cause in set(Cause) else cause


def ending(job: Job, last: Outcome | None) -> str:
    """Return one sentence that says how a terminal job ended."""
    if job.state == "succeeded":
        return _("It succeeded at attempt %(attempt)d.") % {"attempt": job.spent + 1}
    words = {
        "state": job.get_state_display(),
        "cause": cause_label(job.cause),
        "error": last.error_class if last is not None else None,
        "spent": job.spent,
    }
    if job.cause in {Cause.ATTEMPTS, Cause.TIMEOUT}:
        text = ngettext(
            "It is %(state)s after %(spent)d attempt: %(cause)s.",
            "It is %(state)s after %(spent)d attempts: %(cause)s.",
            job.spent,
        )
    else:
        text = _("It is %(state)s: %(cause)s.")
    if words["error"]:
        text = _("%(text)s The last attempt raised %%(error)s.") % {"text": text}
    return text % words
