"""The questions before a limit, a rate or a window is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django.admin.acting import RequiredReasonForm
from backwave_django.core import bounds
from backwave_django.core.errors import InvalidOption
from backwave_django.core.limits import Cap
from backwave_django.core.rates import Rate
from backwave_django.core.windows import Window

if TYPE_CHECKING:
    from collections.abc import Callable


class LimitForm(RequiredReasonForm):
    """How many jobs run at once, how many start in a period, and why."""

    number = forms.IntegerField(
        label=gettext_lazy("At once"),
        required=False,
        min_value=0,
        max_value=bounds.MAX_CAP,
        help_text=gettext_lazy("How many jobs run at once, anywhere. Empty: as many as there are."),
    )
    rate = forms.CharField(
        label=gettext_lazy("Rate"),
        required=False,
        max_length=bounds.MAX_RATE_CHARS,
        help_text=gettext_lazy(
            "How many jobs start in a period, retries included: 10/second, 100/minute, "
            "1/30 seconds. Empty: no limit."
        ),
    )
    field_order = ("key", "number", "rate", "reason")

    def clean_rate(self) -> Rate | None:
        """Return the rate. Raises ``ValidationError`` that says what to write."""
        text: str = self.cleaned_data["rate"].strip()
        return Rate.parse(text) if _fits(Rate.parse, text) else None

    @property
    def cap(self) -> Cap:
        """What was asked for."""
        return Cap(self.cleaned_data["number"], self.cleaned_data["rate"])


class QueueLimitForm(LimitForm):
    """The same of a queue, which may have defaults."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["number"].help_text = _(
            "How many jobs run at once, anywhere. Empty: as the settings say, else as many as "
            "there are."
        )
        self.fields["rate"].help_text = _(
            "How many jobs start in a period, retries included: 10/second, 100/minute, "
            "1/30 seconds. Empty: as the settings say, else no limit."
        )


class KeyLimitForm(LimitForm):
    """The same, with the limit key or the pattern that it is for."""

    key = forms.CharField(
        label=gettext_lazy("Limit key"),
        max_length=bounds.MAX_LIMIT_KEY_CHARS,
        strip=False,
        help_text=gettext_lazy(
            "As the code writes it. With a * at its end it stands for each key that begins so and "
            "that has no limit of its own: tenant:*"
        ),
    )


class WindowForm(RequiredReasonForm):
    """When a queue is served, and why."""

    window = forms.CharField(
        label=gettext_lazy("Window"),
        required=False,
        max_length=bounds.MAX_WINDOW_CHARS,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        help_text=gettext_lazy(
            "Local times and a time zone: 20:00-06:00 Europe/Zurich, or "
            "Mon-Fri 08:00-12:00; Sat 09:00-11:00 UTC, or always. Empty: as the settings say."
        ),
    )
    field_order = ("window", "reason")

    def clean_window(self) -> str | None:
        """Return the window, or ``None``. Raises ``ValidationError`` that says what to write."""
        text: str = self.cleaned_data["window"].strip()
        return text if _fits(Window.parse, text) else None


def _fits(parse: Callable[[str], Any], text: str) -> bool:
    """Tell whether there is a text. Raises ``ValidationError`` for one that cannot be."""
    if not text:
        return False
    try:
        parse(text)
    except InvalidOption as error:
        raise ValidationError(
            _("“%(value)s” cannot be: %(hint)s."), params={"value": text, "hint": error.hint}
        ) from error
    return True
