"""How values of the contract are written and read. psycopg does it all itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


class Values:
    """The values of PostgreSQL: psycopg knows identifiers, instants and arrays."""

    def bound(self, parameters: Mapping[str, object]) -> Mapping[str, Any]:
        """Return ``parameters`` as the driver wants them."""
        return parameters

    def uuid(self, value: Any) -> UUID:
        """Return a stored identifier."""
        found: UUID = value
        return found

    def instant(self, value: Any) -> datetime:
        """Return a stored instant, in UTC."""
        found: datetime = value
        # Without USE_TZ Django reads instants without a zone; its connection's zone is UTC then
        # only if the project says so, which a system check asks for.
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

    def instant_or_none(self, value: Any) -> datetime | None:
        """Return a stored instant, or ``None`` for NULL."""
        return None if value is None else self.instant(value)

    def uuid_or_none(self, value: Any) -> UUID | None:
        """Return a stored identifier, or ``None`` for NULL."""
        return None if value is None else self.uuid(value)
