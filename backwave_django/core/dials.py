"""The dials of one pump, as its driver sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from backwave_django.core.bounds import MAX_BATCH
from backwave_django.core.retries import RetryTable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """When a pump ends by itself; all bodies it began are waited for.

    ``when_idle``: once nothing is due and nothing runs. ``once``: after one claim.
    ``max_jobs``: after that many attempts were begun.
    """

    when_idle: bool = False
    once: bool = False
    max_jobs: int | None = None

    def __post_init__(self) -> None:
        assert self.max_jobs is None or self.max_jobs >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverConfig:
    """What one driver needs to know. ``weights`` of ``None`` means strict order of ``queues``.

    ``max_poll_interval`` of ``None`` switches idle backoff off. ``timeouts`` maps wire names to
    how long a body may run. ``mints`` maps the wire names of the job types that this pump mints
    jobs of schedules for to the newest payload version of each; ``None``: it mints none.
    """

    pump_id: UUID
    queues: tuple[str, ...]
    weights: Mapping[str, int] | None = None
    pool_size: int = 20
    max_claim_batch: int = 32
    max_outcome_batch: int = 32
    poll_interval: timedelta = timedelta(seconds=1)
    max_poll_interval: timedelta | None = None
    maintenance_interval: timedelta = timedelta(seconds=5)
    lease_duration: timedelta = timedelta(seconds=60)
    heartbeat_interval: timedelta = timedelta(seconds=20)
    shutdown_timeout: timedelta = timedelta(seconds=30)
    retries: RetryTable = field(default_factory=RetryTable)
    timeouts: Mapping[str, timedelta] = field(default_factory=dict)
    purge: bool = True
    mints: Mapping[str, int] | None = None
    stop: StopRule = field(default_factory=StopRule)

    def __post_init__(self) -> None:
        assert self.queues, "a pump serves at least one queue"
        assert self.pool_size >= 1
        assert 1 <= self.max_claim_batch <= MAX_BATCH
        assert 1 <= self.max_outcome_batch <= MAX_BATCH
        assert timedelta(0) < self.heartbeat_interval < self.lease_duration
        assert self.poll_interval > timedelta(0)
        assert self.weights is None or set(self.weights) == set(self.queues)
