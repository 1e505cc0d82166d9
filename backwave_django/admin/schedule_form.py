"""The form of a schedule that belongs to the database, not to code."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django import monitor
from backwave_django.core import bounds
from backwave_django.core.cron import MAX_EXPRESSION_CHARS
from backwave_django.core.errors import InvalidOption, UnknownJobType, UsageError
from backwave_django.jobs.payload import decode_call
from backwave_django.jobs.registry import registry
from backwave_django.jobs.schedules import spec_for_person

if TYPE_CHECKING:
    from backwave_django.core.schedules import ScheduleSpec
    from backwave_django.models import Schedule

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
#: The field of the form that an option of a declaration is written in.
_FIELDS: Final = {"arguments": "arguments", "job": "arguments", "wire name": "wire_name"}


class ScheduleForm(forms.Form):
    """A job type that is open to people, its arguments, and when it is to run.

    ``spec`` is the schedule that was asked for, once the form is valid; ``open_types`` are the
    job types to choose from.
    """

    name = forms.CharField(label=gettext_lazy("Name"), max_length=bounds.MAX_SCHEDULE_CHARS)
    wire_name = forms.ChoiceField(
        label=gettext_lazy("Job type"),
        help_text=gettext_lazy("Job types that are declared with schedulable=True."),
    )
    arguments = forms.CharField(
        label=gettext_lazy("Arguments"),
        widget=forms.Textarea(attrs={"rows": 4, "cols": 60}),
        initial="{}",
        help_text=gettext_lazy('JSON: an object by name, {"days": 30}, or a list.'),
    )
    cron = forms.CharField(
        label=gettext_lazy("Cron expression"),
        required=False,
        max_length=MAX_EXPRESSION_CHARS,
        help_text=gettext_lazy(
            "Minute, hour, day of month, month, day of week. Where both days are restricted, "
            "either is enough; where one of them begins with *, both have to fit."
        ),
    )
    every = forms.CharField(
        label=gettext_lazy("Or an interval"),
        required=False,
        max_length=32,
        help_text=gettext_lazy("At least one second: 90, 15m, 4h, 1d."),
    )
    timezone = forms.CharField(
        label=gettext_lazy("Time zone"),
        max_length=64,
        help_text=gettext_lazy("The IANA name of the zone whose clocks the expression is about."),
    )
    catch_up = forms.ChoiceField(
        label=gettext_lazy("Missed ticks"),
        choices=[
            ("skip", gettext_lazy("skip them")),
            ("coalesce", gettext_lazy("make up for them with one job")),
        ],
    )
    no_overlap = forms.BooleanField(
        label=gettext_lazy("No overlap"),
        required=False,
        help_text=gettext_lazy("Skip a tick while an earlier job of the schedule is not over."),
    )
    queue = forms.CharField(
        label=gettext_lazy("Queue"),
        required=False,
        max_length=bounds.MAX_QUEUE_CHARS,
        help_text=gettext_lazy("The job type's own unless given."),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        required=False,
        help_text=gettext_lazy("-100 to 100, high first; the job type's own unless given."),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"), required=False, max_length=bounds.MAX_REASON_CHARS
    )

    spec: ScheduleSpec

    def __init__(self, data: Any, *, schedule: Schedule | None, sees_arguments: bool) -> None:
        super().__init__(data, initial=_initial(schedule))
        self._schedule = schedule
        self.open_types = [one.wire_name for one in registry.all() if one.schedulable]
        choice = self.fields["wire_name"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(name, name) for name in self.open_types]
        if schedule is not None:
            self.fields["name"].disabled = True
            if not sees_arguments:
                # Whoever may not see them leaves them as they are.
                del self.fields["arguments"]

    def clean_every(self) -> timedelta | None:
        """Return the interval, if one was written."""
        text = self.cleaned_data["every"].strip()
        if not text:
            return None
        found = _SPAN.fullmatch(text)
        if found is None:
            raise forms.ValidationError(_("Write a number of seconds, or 15m, 4h, 1d."))
        try:
            return timedelta(seconds=float(found[1]) * _UNITS[found[2]])
        except OverflowError:
            raise forms.ValidationError(_("That is too long.")) from None

    def clean_arguments(self) -> object:
        """Return what the JSON holds."""
        try:
            return json.loads(self.cleaned_data["arguments"])
        except (ValueError, RecursionError):
            raise forms.ValidationError(
                _('This is not JSON. Write {"days": 30}, for example.')
            ) from None

    def clean(self) -> dict[str, Any]:
        """Build the schedule, and put what is wrong with it beside the field that says it."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                self.spec = self._built(values)
            except UsageError as error:
                self._refuse(error)
        return values

    def _built(self, values: dict[str, Any]) -> ScheduleSpec:
        spec = spec_for_person(
            name=values["name"],
            wire_name=values["wire_name"],
            arguments=values["arguments"] if "arguments" in values else _kept(self._schedule),
            cron=values["cron"].strip() or None,
            every=values["every"],
            timezone=values["timezone"].strip(),
            queue=values["queue"].strip() or None,
            priority=values["priority"],
            catch_up=values["catch_up"],
            no_overlap=values["no_overlap"],
        )
        if self._schedule is None:
            taken = monitor.schedule_view(spec.name, clock=monitor.database_clock())
            if taken is not None:
                raise InvalidOption("name", spec.name, _("a schedule of this name is there"))
        elif "arguments" not in values:
            spec = replace(
                spec,
                payload=self._schedule.payload,
                payload_version=self._schedule.payload_version,
            )
        return spec

    def _refuse(self, error: UsageError) -> None:
        field, text = "arguments", str(error)
        if isinstance(error, InvalidOption):
            field, text = _FIELDS.get(error.option, error.option), error.hint
        elif isinstance(error, UnknownJobType):
            field = "wire_name"
        self.add_error(field if field in self.fields else None, text)


def _initial(schedule: Schedule | None) -> dict[str, Any]:
    if schedule is None:
        return {"timezone": settings.TIME_ZONE}
    every = schedule.every_seconds
    return {
        "name": schedule.name,
        "wire_name": schedule.wire_name,
        "arguments": json.dumps(_kept(schedule), ensure_ascii=False, default=str),
        "cron": schedule.cron or "",
        "every": "" if every is None else f"{every:.6f}".rstrip("0").rstrip("."),
        "timezone": schedule.timezone,
        "catch_up": schedule.catch_up,
        "no_overlap": schedule.no_overlap,
        "queue": schedule.queue,
        "priority": schedule.priority,
    }


def _kept(schedule: Schedule | None) -> object:
    """Return the stored arguments as somebody would write them."""
    if schedule is None:
        return {}
    try:
        args, kwargs = decode_call(schedule.payload)
    except ValueError:
        return {}
    return list(args) if args else kwargs
