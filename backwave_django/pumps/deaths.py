"""Pumps of this host whose process is gone, and what becomes of their leases.

Whoever knows that a process is dead need not wait for its leases to lapse. A wrong guess does no
harm: the lease is the fence, and the outcome of a body that runs on after all is refused.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from django.db import connections
from django.db.utils import Error as DatabaseError

from backwave_django.core.errors import StoreError
from backwave_django.monitor.clock import database_clock
from backwave_django.pumps.identity import is_gone, this_process
from backwave_django.store.executors import default_store
from backwave_django.store.hosts import pumps_of_host

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

logger = logging.getLogger("backwave.pump")

#: What the registry says of a pump that could not say good-bye.
GONE: Final = "its process is gone"


def dead_pumps(*, using: str, gone: Callable[[int], bool] = is_gone) -> tuple[UUID, ...]:
    """Return the pumps of this host that never stopped and whose process is gone."""
    here = this_process()
    found = pumps_of_host(using=using, boot_id=here.boot_id, pid_namespace=here.pid_namespace)
    return tuple(pump.id for pump in found if gone(pump.pid))


def bury(pid: int, *, using: str) -> None:
    """End the leases of a process that this one has seen dying. Raises nothing.

    Jobs are tried again as after a lapse, without waiting for it. Leaves no connection open.
    """
    try:
        pumps = dead_pumps(using=using, gone=pid.__eq__)
        if not pumps:
            return  # it said good-bye, or had not yet begun
        store, now = default_store(using), database_clock()
        count = store.dispose(pumps=pumps, now=now).count
        for pump_id in pumps:
            # Only now: as long as their leases stand, the next node must find them as well.
            store.retire(pump_id=pump_id, problem=GONE, now=now)
        logger.warning("%d jobs of process %d are free again", count, pid)
    except (DatabaseError, StoreError) as error:
        logger.warning("the jobs of process %d have to wait for a pump: %s", pid, error)
    finally:
        connections.close_all()
