"""The schedules that this process's code declares, brought into the database."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from backwave_django.conf import get_config
from backwave_django.core.errors import UsageError
from backwave_django.core.schedule_answers import DeclareMode, DeclareResult
from backwave_django.jobs.registry import registry
from backwave_django.jobs.schedules import schedules
from backwave_django.store.executors import default_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.core.contract import Store
    from backwave_django.core.schedule_answers import DeclareRow
    from backwave_django.core.schedules import ScheduleSpec

logger = logging.getLogger("backwave.store")


def sync_schedules(
    *, owner: str | None = None, release: int | None = None, now: datetime
) -> tuple[DeclareRow, ...]:
    """Make, update and retire schedules, so that they are as the code declares them.

    ``owner`` and ``release`` are those of the settings unless given. Raises ``UsageError`` for a
    schedule that is declared wrongly; then nothing is changed.
    """
    config = get_config()
    specs = schedules.specs()
    store = default_store()
    _declare_limits(store, specs)
    return store.declare_schedules(
        specs,
        owner=config.schedule_owner if owner is None else owner,
        release=config.schedule_release if release is None else release,
        mode=DeclareMode.SYNC,
        now=now,
    )


def greet_with_schedules(store: Store, *, update: bool, now: datetime) -> None:
    """Make the schedules that are missing, as a starting pump; with ``update``, change the rest.

    What differs otherwise is logged: it is for the deploy to bring in line.
    """
    try:
        specs = schedules.specs()
    except UsageError:
        # A system check says so as well; what the pump runs otherwise is not to suffer for it.
        logger.exception("the schedules of this code are not declared")
        return
    if not specs:
        return
    config = get_config()
    _declare_limits(store, specs)
    rows = store.declare_schedules(
        specs,
        owner=config.schedule_owner,
        release=config.schedule_release,
        mode=DeclareMode.UPDATE if update else DeclareMode.CREATE,
        now=now,
    )
    for row in rows:
        _log(row)


def _declare_limits(store: Store, specs: Sequence[ScheduleSpec]) -> None:
    """Note the caps of the limit keys that minted jobs will have, as an enqueue would."""
    declared = registry.limits()
    caps = {
        spec.limit_key: declared.of(key=spec.limit_key, wire_name=spec.wire_name)
        for spec in specs
        if spec.limit_key is not None
    }
    store.declare_limits({key: cap for key, cap in caps.items() if cap is not None})


def _log(row: DeclareRow) -> None:
    if row.result in {DeclareResult.CREATED, DeclareResult.UPDATED}:
        logger.info("schedule %r is %s", row.name, row.result)
    elif row.result is DeclareResult.DRIFTED:
        logger.warning(
            "schedule %r is not as this code declares it (%s): run backwave_sync_schedules",
            row.name,
            row.detail,
        )
    elif row.result is DeclareResult.REFUSED:
        logger.warning("schedule %r is left as it is: %s", row.name, row.detail)
