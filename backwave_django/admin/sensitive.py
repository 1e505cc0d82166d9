"""What people may see of values that jobs carry: their shape, or the values less the secrets.

Nothing in here is HTML: templates escape what these functions return.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.debug import SafeExceptionReporterFilter

from backwave_django.core.errors import UndecodablePayload
from backwave_django.jobs.payload import decode

if TYPE_CHECKING:
    from collections.abc import Callable

MASK: Final = "********"
#: How much of a value one page shows.
MOST_CHARS: Final = 16_000
#: Shapes of larger collections are summed up.
MOST_ITEMS: Final = 50

_SECRET: Final = re.compile(
    SafeExceptionReporterFilter.hidden_settings.pattern + "|COOKIE|CREDENTIAL|PRIVATE", re.I
)


def is_secret(name: object) -> bool:
    """Tell whether a value under this name is likely to be a secret."""
    return isinstance(name, str) and _SECRET.search(name) is not None


def shape_of(text: str | None) -> str:
    """Return the keys, types and sizes of an encoded value, and none of its values."""
    return _rendered(text, _shape)


def values_of(text: str | None) -> str:
    """Return an encoded value for people who may see it, secrets masked, cut to what fits."""
    return _rendered(text, _masked)


def size_of(text: str | None) -> int:
    """Return how many bytes the encoded value takes."""
    return len((text or "").encode())


def _rendered(text: str | None, view: Callable[[object], object]) -> str:
    if text is None:
        return ""
    try:
        value = decode(text)
    except UndecodablePayload as error:
        return _("It cannot be decoded: %(problem)s") % {"problem": error.problem}
    shown = json.dumps(view(_plain(value)), indent=2, ensure_ascii=False, default=str)
    if len(shown) <= MOST_CHARS:
        return shown
    left_out = len(shown) - MOST_CHARS
    more = ngettext("… %(count)d more character", "… %(count)d more characters", left_out)
    return f"{shown[:MOST_CHARS]}\n{more % {'count': left_out}}"


def _plain(value: object) -> object:
    """Return a call whose arguments all have names as the dict of them."""
    if isinstance(value, dict) and value.keys() == {"args", "kwargs"} and not value["args"]:
        return value["kwargs"]
    return value


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {key: MASK if is_secret(key) else _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return value


def _shape(value: object) -> object:
    if isinstance(value, dict):
        shown = {key: _shape(item) for key, item in list(value.items())[:MOST_ITEMS]}
        if len(value) > MOST_ITEMS:
            shown["…"] = f"{len(value) - MOST_ITEMS} more"
        return shown
    if isinstance(value, list | tuple):
        kinds = sorted({type(item).__name__ for item in value})
        return f"{type(value).__name__}({len(value)}) of {', '.join(kinds) or 'nothing'}"
    if isinstance(value, str | bytes):
        return f"{type(value).__name__}({len(value)})"
    return type(value).__name__
