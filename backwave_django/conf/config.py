"""What the settings say, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from backwave_django.core.contract import History, StoreSettings
from backwave_django.core.errors import ConfigurationError
from backwave_django.core.limits import UNLIMITED
from backwave_django.core.queues import QueueDefaults

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from backwave_django.core.limits import Cap
    from backwave_django.core.retention import Retention
    from backwave_django.core.retries import Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The dials of one worker group. ``weights`` is ``None`` when the order is strict."""

    name: str
    queues: tuple[str, ...]
    weights: Mapping[str, int] | None
    pool_size: int
    pumps: int
    max_claim_batch: int
    max_outcome_batch: int
    poll_interval: timedelta
    max_poll_interval: timedelta | None
    maintenance_interval: timedelta
    lease_duration: timedelta
    heartbeat_interval: timedelta
    shutdown_timeout: timedelta
    retry: Retry
    purge: bool
    connections: str


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything ``settings.BACKWAVE`` says, with defaults filled in."""

    database: str
    groups: Mapping[str, GroupConfig]
    retry: Retry
    retention: Retention
    services: str | None
    middleware: tuple[str, ...]
    unroutable_grace: timedelta
    history: History
    pooler: str | None
    direct_url: str | None
    hints: bool
    expose_sensitive: bool
    schedule_owner: str
    schedule_release: int | None
    limits: Mapping[str, Cap]
    windows: Mapping[str, str]

    @cached_property
    def store_settings(self) -> StoreSettings:
        """The part of it that a store needs."""
        return StoreSettings(
            unroutable_grace=self.unroutable_grace,
            retention=self.retention,
            history=self.history,
        )

    @property
    def queues(self) -> frozenset[str]:
        """Every queue that some group serves."""
        return frozenset(queue for group in self.groups.values() for queue in group.queues)

    @property
    def declared_queues(self) -> Mapping[str, QueueDefaults]:
        """What the settings say of every queue that they name: of some, nothing."""
        return {
            queue: QueueDefaults(self.limits.get(queue, UNLIMITED), self.windows.get(queue))
            for queue in {*self.queues, *self.limits, *self.windows}
        }

    def group(self, name: str) -> GroupConfig:
        """Return the group ``name``. Raises ``ConfigurationError`` that lists the groups."""
        found = self.groups.get(name)
        if found is None:
            raise ConfigurationError(
                f"There is no group {name!r}.",
                f'BACKWAVE["GROUPS"] has: {", ".join(sorted(self.groups))}.',
            )
        return found
