"""The database's clock, by which leases and heartbeats live."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connections
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from backwave_django.conf import get_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django_stubs_ext import StrPromise

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: From here on tenths of a second are noise.
WHOLE_FROM = 10

_UNITS: tuple[tuple[int, Callable[[int], str], int, StrPromise], ...] = (
    (
        DAY,
        lambda count: ngettext("%(count)d day", "%(count)d days", count),
        HOUR,
        gettext_lazy("%(count)d h"),
    ),
    (HOUR, lambda _count: _("%(count)d h"), MINUTE, gettext_lazy("%(count)d min")),
    (MINUTE, lambda _count: _("%(count)d min"), 1, gettext_lazy("%(count)d s")),
)
_READINGS = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())::float8",
    # To the millisecond, as due times are written: a day's fraction would come out below it.
    "sqlite": "SELECT strftime('%s', 'now') + strftime('%f', 'now') - strftime('%S', 'now')",
}


def connection() -> BaseDatabaseWrapper:
    """Return Django's connection to the database that jobs live in."""
    return connections[get_config().database]


def database_clock() -> datetime:
    """Return what time it is where the jobs are."""
    here = connection()
    with here.cursor() as cursor:
        cursor.execute(_READINGS[here.vendor])
        (seconds,) = cursor.fetchone()
    return datetime.fromtimestamp(seconds, tz=UTC)


def moment(at: datetime, *, now: datetime) -> str:
    """Return an instant as people read it: local, with how far away it is."""
    absolute = date_format(timezone.localtime(at), "DATETIME_FORMAT")
    distance = span(abs(at - now))
    if at > now:
        return _("%(time)s (in %(distance)s)") % {"time": absolute, "distance": distance}
    return _("%(time)s (%(distance)s ago)") % {"time": absolute, "distance": distance}


def span(length: timedelta) -> str:
    """Return a span in its two largest units, as people read it."""
    seconds = length.total_seconds()
    if seconds < MINUTE:
        whole = seconds >= WHOLE_FROM or seconds == int(seconds)
        return _("%(seconds)s s") % {"seconds": f"{seconds:.{0 if whole else 1}f}"}
    for size, large, part, small in _UNITS:
        if seconds >= size:
            count, rest = int(seconds // size), int(seconds % size // part)
            text = large(count) % {"count": count}
            return f"{text} {small % {'count': rest}}" if rest else text
    raise AssertionError("a minute is the smallest unit of the table")
