"""What the list of jobs can be narrowed by. The choices come from the settings, the registry and
the pumps, never from a walk over the jobs.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib.admin import SimpleListFilter
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from backwave_django import monitor
from backwave_django.admin.keyset import Segment
from backwave_django.core.states import JobState
from backwave_django.jobs.registry import registry
from backwave_django.models import Dependency
from backwave_django.monitor.terminal import HAS_ENDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.admin import ModelAdmin
    from django.db.models import QuerySet
    from django.http import HttpRequest

#: Fewer digits of an id name too many jobs to be a search.
SHORTEST_ID: Final = 6
_ID_DIGITS: Final = 32
#: More types than this make a drop-down useless; the search box still finds them.
MOST_CHOICES: Final = 500

_CLAIM: Final = ("queue", "priority", "due_at", "id")
_CLAIM_KEYED: Final = ("queue", "limit_key", "priority", "due_at", "id")


def segments_of(state: JobState | None) -> Sequence[Segment]:
    """Return the order of the list under a state's tab: the one that an index has.

    Conditions repeat those of the partial indexes, word for word: SQLite wants it so.
    """
    if state is None or state is JobState.LEASED:
        condition = Q() if state is None else Q(state=state.value)
        return (Segment(columns=("id",), descending=True, condition=condition),)
    if state is JobState.AWAITING:
        waiting = Dependency.objects.filter(settled=False).values("child_id")
        condition = Q(state=state.value, pk__in=waiting)
        return (Segment(columns=("id",), descending=True, condition=condition),)
    if state is JobState.SCHEDULED:
        return (
            Segment(columns=_CLAIM, condition=Q(state=state.value, limit_key__isnull=True)),
            Segment(columns=_CLAIM_KEYED, condition=Q(state=state.value, limit_key__isnull=False)),
        )
    ended = HAS_ENDED & Q(state=state.value)
    return (Segment(columns=("terminal_at", "id"), descending=True, condition=ended),)


class ChoiceFilter(SimpleListFilter):
    """A drop-down of known names; a name that is not known any more can still be asked for."""

    column: str

    def names(self) -> set[str]:
        """Return the names to choose from."""
        raise AssertionError("a subclass says which")

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:
        """Return the names, with the chosen one whether it is known or not."""
        chosen = self.value()
        names = sorted(self.names() | ({chosen} if chosen else set()))
        return [(name, name) for name in names[:MOST_CHOICES]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow the list to the chosen name."""
        value = self.value()
        return queryset.filter(**{self.column: value}) if value else queryset


class QueueFilter(ChoiceFilter):
    """One queue."""

    title = _("queue")
    parameter_name = "queue"
    column = "queue"

    def names(self) -> set[str]:
        """Return the queues that anybody speaks of."""
        return monitor.known_queues(_live_pumps())


class TypeFilter(ChoiceFilter):
    """One job type."""

    title = _("type")
    parameter_name = "type"
    column = "wire_name"

    def names(self) -> set[str]:
        """Return the wire names that this process or a live pump knows."""
        return monitor.known_wire_names(_live_pumps())


def _live_pumps() -> Sequence[monitor.PumpView]:
    return monitor.pump_views(clock=monitor.database_clock(), gone=False)


def as_id(text: str) -> UUID | None:
    """Return the id that ``text`` is, or ``None``."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def search(term: str) -> Q:
    """Return the condition for a search: the beginning of an id, or part of a type's name.

    Names are looked up among the registered types, so that the table is asked for equality only.
    """
    digits = term.strip().lower().replace("-", "")
    if SHORTEST_ID <= len(digits) < _ID_DIGITS and set(digits) <= set("0123456789abcdef"):
        first = UUID(hex=digits.ljust(_ID_DIGITS, "0"))
        last = UUID(hex=digits.ljust(_ID_DIGITS, "f"))
        return Q(pk__gte=first, pk__lte=last)
    words = term.lower().split()
    names = {name for name, _version in registry.known()}
    found = {name for name in names if all(word.strip("*") in name.lower() for word in words)}
    exact = [Q(wire_name=name) for name in sorted(found | {term.strip()})]
    return reduce(or_, exact[:MOST_CHOICES])
