"""A ChangeList that reads pages by key: no COUNT, no OFFSET, no DISTINCT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.templatetags import admin_list
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.utils.safestring import mark_safe

from backwave_django.admin.keyset import Cursor, Page, Segment, read_page
from backwave_django.monitor.patience import TookTooLong, patience

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet
    from django.db.models.expressions import Combinable
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

AFTER: Final = "after"
BEFORE: Final = "before"
SIZE: Final = "per"
STATE: Final = "state"
#: Parameters of the URL that are ours, and no lookups.
OURS: Final = (AFTER, BEFORE, SIZE, STATE)
_HEAD: Final = re.compile("^<th")
SIZES: Final = (50, 100, 200)
NEWEST_FIRST: Final = (Segment(columns=("id",), descending=True),)


class KeysetChangeList(ChangeList):
    """Newer and older pages instead of numbered ones. ``segments`` says in which order."""

    timed_out = False
    page: Page

    def segments(self) -> Sequence[Segment]:
        """Return the order of the list; newest first unless a subclass knows better."""
        return NEWEST_FIRST

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Keep our own parameters away from the lookups."""
        found: dict[str, Any] = super().get_filters_params(params)
        return {key: value for key, value in found.items() if key not in OURS}

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        """Order by nothing here: each segment has its own order."""
        return []

    def get_results(self, request: HttpRequest) -> None:
        """Read one page and set what Django's templates ask for."""
        self.page_size = self._page_size()
        try:
            with patience():
                self.page = read_page(
                    self.queryset,
                    self.segments(),
                    after=self._cursor(AFTER),
                    before=self._cursor(BEFORE),
                    size=self.page_size,
                )
        except TookTooLong:
            self.timed_out = True
            self.page = Page([], None, None)
        self.result_list = self.page.rows
        self.result_count = len(self.page.rows)
        self.full_result_count = self.result_count
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = False
        self.multi_page = False
        self.paginator = Paginator(self.page.rows, self.page_size)

    def get_query_string(self, new_params: Any = None, remove: Iterable[str] | None = None) -> str:
        """Return this list's URL with changes. Unless it is given a place, it begins at the top."""
        text: str = super().get_query_string(new_params, [*(remove or ()), AFTER, BEFORE])
        return text

    @property
    def headers(self) -> list[Any]:
        """Return the column heads, as Django's own template takes them."""
        return list(admin_list.result_headers(self))

    @property
    def rows(self) -> list[list[SafeString]]:
        """Return the cells, where the one that names the row says so to screen readers."""
        return [
            [mark_safe(_HEAD.sub('<th scope="row"', cell, count=1)) for cell in row]  # noqa: S308 - Django escaped it
            for row in admin_list.results(self)
        ]

    @property
    def newer_link(self) -> str | None:
        """Where the page before this one is, if there is one."""
        return self.page.newer and self.get_query_string({BEFORE: self.page.newer})

    @property
    def older_link(self) -> str | None:
        """Where the page after this one is, if there is one."""
        return self.page.older and self.get_query_string({AFTER: self.page.older})

    @property
    def size_links(self) -> list[tuple[int, str, bool]]:
        """The page sizes to choose from, with the one that is chosen."""
        return [
            (size, self.get_query_string({SIZE: size}), size == self.page_size) for size in SIZES
        ]

    def _page_size(self) -> int:
        asked = self.params.get(SIZE, "")
        return int(asked) if asked in map(str, SIZES) else self.list_per_page

    def _cursor(self, parameter: str) -> Cursor | None:
        text = self.params.get(parameter)
        if not text:
            return None
        return Cursor.decode(text, model=self.model, segments=self.segments())
