"""What limits a queue or a key: caps, rates and windows, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django.conf import get_config
from backwave_django.core.errors import InvalidOption
from backwave_django.core.limits import OPERATOR, PATTERN, UNLIMITED, Cap, governing
from backwave_django.core.queues import in_force
from backwave_django.core.rates import rate_or_none
from backwave_django.core.windows import Window
from backwave_django.models import Lease, Limit
from backwave_django.monitor.clock import moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.core.rates import Rate
    from backwave_django.models import Queue


#: What operators and settings may give to a queue, and how it is called.
BOUNDS: Final = ("limit", "rate", "window")
_NAMES: Final = {
    "limit": gettext_lazy("limit"),
    "rate": gettext_lazy("rate"),
    "window": gettext_lazy("window"),
}
#: Who says what holds, beside ``OPERATOR``.
SETTINGS: Final = "settings"


class KeyLimits(NamedTuple):
    """What holds for one limit key, the key or pattern that says so, and its bucket."""

    cap: Cap
    said_by: str
    full_at: datetime | None


class KeyView(NamedTuple):
    """What holds for one limit key, how many jobs run under it, and when the next may start.

    ``next_token`` is ``None`` unless its rate is used up.
    """

    cap: Cap
    said_by: str
    running: int
    next_token: datetime | None


def cap_of(queue: Queue) -> Cap:
    """Return what limits a queue: of number and rate each an operator's, else the settings'."""
    own, default = (queue.limit, queue.rate), (queue.limit_default, queue.rate_default)
    return in_force(*(Cap(number, rate_or_none(rate)) for number, rate in (own, default)))


def window_of(queue: Queue) -> str | None:
    """Return the window of a queue as it is written: an operator's, else that of the settings."""
    return queue.window or queue.window_default


def opens_at(queue: Queue, *, now: datetime) -> datetime | None:
    """Return when a queue opens that is outside its window; ``None`` for one that is not."""
    window = window_of(queue)
    try:
        return None if window is None else Window.parse(window).opens_at(now)
    except InvalidOption:
        return None  # this machine does not know the time zone; those that do claim by it


def next_token(
    rate: Rate | str | None, full_at: datetime | None, *, now: datetime
) -> datetime | None:
    """Return when a used-up rate lets the next job start; ``None`` while one may start."""
    known = rate_or_none(rate) if isinstance(rate, str | None) else rate
    at = now if known is None else known.next_token(full_at, now=now)
    return at if at > now else None


def token_of(queue: Queue, *, now: datetime) -> datetime | None:
    """Return when a queue's used-up rate lets its next job start; ``None`` while one may."""
    return next_token(cap_of(queue).rate, queue.rate_full_at, now=now)


def sources_of(queue: Queue) -> dict[str, str]:
    """Return who says what holds for a queue: of ``limit``, ``rate`` and ``window`` those it has.

    An ``operator`` goes before the ``settings``.
    """
    sources = {}
    for name in BOUNDS:
        if getattr(queue, name) is not None:
            sources[name] = OPERATOR
        elif getattr(queue, f"{name}_default") is not None:
            sources[name] = SETTINGS
    return sources


def limits_of_key(key: str) -> KeyLimits | None:
    """Return what holds for a limit key: its own row, or the longest pattern that it matches."""
    limits = _limits_of([key])[key]
    return None if limits.cap == UNLIMITED else limits


def key_views(keys: Sequence[str], *, clock: datetime) -> dict[str, KeyView]:
    """Return what holds for each limit key or pattern, and how far it is used, by key."""
    leases = Lease.objects.using(get_config().database).filter(limit_key__in=keys)
    running = dict(leases.order_by().values_list("limit_key").annotate(count=Count("pk")))
    return {
        key: KeyView(
            cap=limits.cap,
            said_by=limits.said_by,
            running=running.get(key, 0),
            next_token=next_token(limits.cap.rate, limits.full_at, now=clock),
        )
        for key, limits in _limits_of(keys).items()
    }


def _limits_of(keys: Sequence[str]) -> dict[str, KeyLimits]:
    """Read the keys with the patterns, which are few."""
    rows = Limit.objects.using(get_config().database).filter(Q(pk__in=keys) | Q(source=PATTERN))
    found = {row.pk: row for row in rows}
    caps = {key: Cap(row.limit, rate_or_none(row.rate)) for key, row in found.items()}
    patterns = {key: cap for key, cap in caps.items() if found[key].source == PATTERN}
    limits = {}
    for key in keys:
        row = found.get(key)
        own = None if row is None else (caps[key], row.source)
        cap, said_by = governing(key, own=own, patterns=patterns)
        limits[key] = KeyLimits(cap, said_by, None if row is None else row.rate_full_at)
    return limits


def origin_text(queue: Queue, bound: str) -> str:
    """Return a sentence that says who set a ``limit``, ``rate`` or ``window`` that holds."""
    by_operator = sources_of(queue)[bound] == OPERATOR
    return _("An operator says so.") if by_operator else _("The settings say so.")


def bound_texts(queue: Queue) -> dict[str, str]:
    """Return what bounds a queue, each in words, with who says so and what else there is."""
    texts = {}
    for bound in sources_of(queue):
        own, default = getattr(queue, bound), getattr(queue, f"{bound}_default")
        words = {
            "what": _NAMES[bound],
            "value": default if own is None else own,
            "default": default,
            "origin": origin_text(queue, bound),
        }
        text = _("Its %(what)s: %(value)s. %(origin)s")
        if own is not None and default is not None:
            text = _("Its %(what)s: %(value)s. %(origin)s The settings say %(default)s.")
        texts[bound] = text % words
    return texts


def window_text(queue: Queue, opening: datetime, *, clock: datetime) -> str:
    """Return a sentence that says that a queue is closed, and until when."""
    text = _(
        "The queue %(queue)s is outside its window, %(window)s. It opens at %(time)s. %(origin)s"
    )
    words = {"queue": queue.name, "window": window_of(queue)}
    origin = origin_text(queue, "window")
    return text % {**words, "time": moment(opening, now=clock), "origin": origin}


def queue_rate_text(queue: Queue, what: str, token: datetime, *, clock: datetime) -> str:
    """Return a sentence like ``rate_text`` of a queue, and who set its rate."""
    text = rate_text(what, str(cap_of(queue).rate), token, clock=clock)
    return f"{text} {origin_text(queue, 'rate')}"


def rate_text(what: str, rate: str, token: datetime, *, clock: datetime) -> str:
    """Return a sentence that says that a rate is used up, and until when."""
    text = _("%(what)s is used up: %(rate)s. The next token comes at %(time)s.")
    return text % {"what": what, "rate": rate, "time": moment(token, now=clock)}
