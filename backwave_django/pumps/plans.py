"""What one process is to run: the settings and the command line, put together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backwave_django.core.dials import DriverConfig, StopRule
from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs.registry import registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from uuid import UUID

    from backwave_django.conf import Config, GroupConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """The groups that a process runs, in the order given, and when it ends by itself."""

    groups: tuple[GroupConfig, ...]
    stop: StopRule = field(default_factory=StopRule)
    health_file: Path | None = None

    @property
    def slots(self) -> int:
        """How many bodies may run at once."""
        return sum(group.pumps * group.pool_size for group in self.groups)


def plan_node(
    config: Config,
    *,
    groups: Sequence[str],
    queues: Sequence[str] | None = None,
    stop: StopRule | None = None,
    health_file: Path | None = None,
) -> NodePlan:
    """Return the plan for ``groups``; with ``queues``, only for those of their queues.

    Raises ``ConfigurationError`` for a group or queue that is not there, or a group given twice.
    """
    twice = sorted({name for name in groups if groups.count(name) > 1})
    if twice:
        raise ConfigurationError(
            f"--group {twice[0]} is given twice.",
            f'Give it once; for more pumps set BACKWAVE["GROUPS"]["{twice[0]}"]["PUMPS"].',
        )
    chosen = [config.group(name) for name in groups]
    if queues is not None:
        chosen = _narrowed(chosen, queues)
    return NodePlan(groups=tuple(chosen), stop=stop or StopRule(), health_file=health_file)


def driver_config(group: GroupConfig, *, pump_id: UUID, stop: StopRule) -> DriverConfig:
    """Return the dials for one driver of ``group``."""
    return DriverConfig(
        pump_id=pump_id,
        queues=group.queues,
        weights=group.weights,
        pool_size=group.pool_size,
        max_claim_batch=group.max_claim_batch,
        max_outcome_batch=group.max_outcome_batch,
        poll_interval=group.poll_interval,
        max_poll_interval=group.max_poll_interval,
        maintenance_interval=group.maintenance_interval,
        lease_duration=group.lease_duration,
        heartbeat_interval=group.heartbeat_interval,
        shutdown_timeout=group.shutdown_timeout,
        retries=registry.retry_table(group.retry),
        timeouts=registry.timeouts(),
        purge=group.purge,
        mints=dict(registry.known()),
        stop=stop,
    )


def drain_seconds(plan: NodePlan) -> float:
    """Return how long a drain may take at most, in seconds."""
    longest = max((group.shutdown_timeout for group in plan.groups), default=timedelta(0))
    return longest.total_seconds()


def _narrowed(groups: Sequence[GroupConfig], queues: Sequence[str]) -> list[GroupConfig]:
    served = {queue for group in groups for queue in group.queues}
    unknown = [queue for queue in queues if queue not in served]
    if unknown or not queues:
        names = ", ".join(repr(name) for name in unknown) or "nothing"
        which = ", ".join(group.name for group in groups)
        raise ConfigurationError(
            f"--queues names {names}, which no chosen group serves.",
            f"Served by {which}: {', '.join(sorted(served))}.",
        )
    kept = set(queues)
    return [_only(group, kept) for group in groups if kept & set(group.queues)]


def _only(group: GroupConfig, kept: set[str]) -> GroupConfig:
    weights: Mapping[str, int] | None = None
    if group.weights is not None:
        weights = {queue: weight for queue, weight in group.weights.items() if queue in kept}
    queues = tuple(queue for queue in group.queues if queue in kept)
    return replace(group, queues=queues, weights=weights)
