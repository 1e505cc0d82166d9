"""What people may do to a schedule, each with a right and words of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy

from backwave_django import operations
from backwave_django.admin.acting import ReasonForm, RequiredReasonForm
from backwave_django.monitor import Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from django import forms
    from django_stubs_ext import StrPromise

    from backwave_django.core.contract import ScheduleAnswer
    from backwave_django.monitor import ScheduleView


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAction:
    """One action: its right, when it makes sense, and its words."""

    name: str
    right: str
    title: StrPromise
    effect: StrPromise
    button: StrPromise
    done: StrPromise
    run: Callable[..., ScheduleAnswer]
    form: type[forms.Form]
    applies_to: Callable[[ScheduleView], bool]
    destructive: bool = False


def _is_on(view: ScheduleView) -> bool:
    return view.standing not in {Standing.PAUSED, Standing.RETIRED}


def _is_paused(view: ScheduleView) -> bool:
    return view.standing is Standing.PAUSED


def _is_in_service(view: ScheduleView) -> bool:
    return view.standing is not Standing.RETIRED


def _is_deletable(view: ScheduleView) -> bool:
    return not view.of_code or view.standing is Standing.RETIRED


BY_NAME: Final = {
    action.name: action
    for action in (
        ScheduleAction(
            name="pause",
            right="pause_schedule",
            title=gettext_lazy("Pause the schedule %(schedule)s"),
            effect=gettext_lazy(
                "It makes no jobs until somebody resumes it. Jobs that it made go on."
            ),
            button=gettext_lazy("Pause"),
            done=gettext_lazy("Schedule %(schedule)s is paused."),
            run=operations.pause_schedule,
            form=RequiredReasonForm,
            applies_to=_is_on,
        ),
        ScheduleAction(
            name="resume",
            right="pause_schedule",
            title=gettext_lazy("Resume the schedule %(schedule)s"),
            effect=gettext_lazy(
                "It begins anew from now: the ticks of the pause are not made up for."
            ),
            button=gettext_lazy("Resume"),
            done=gettext_lazy("Schedule %(schedule)s is resumed."),
            run=operations.resume_schedule,
            form=RequiredReasonForm,
            applies_to=_is_paused,
        ),
        ScheduleAction(
            name="run",
            right="trigger_schedule",
            title=gettext_lazy("Run the schedule %(schedule)s now"),
            effect=gettext_lazy("It makes one job that is due now. Its ticks stay as they are."),
            button=gettext_lazy("Run now"),
            done=gettext_lazy("Schedule %(schedule)s has made a job."),
            run=operations.trigger_schedule,
            form=ReasonForm,
            applies_to=_is_in_service,
        ),
        ScheduleAction(
            name="delete",
            right="delete_schedule",
            title=gettext_lazy("Delete the schedule %(schedule)s"),
            effect=gettext_lazy("It is gone for good. Jobs that it made stay."),
            button=gettext_lazy("Delete"),
            done=gettext_lazy("Schedule %(schedule)s is deleted."),
            run=operations.delete_schedule,
            form=ReasonForm,
            applies_to=_is_deletable,
            destructive=True,
        ),
    )
}
