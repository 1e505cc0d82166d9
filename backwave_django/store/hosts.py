"""The registry as one host sees it: which pumps were started here and never said good-bye."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from backwave_django.models import Pump

if TYPE_CHECKING:
    from uuid import UUID


class HostPump(NamedTuple):
    """A pump of this host, and the process that it ran in."""

    id: UUID
    pid: int


def pumps_of_host(*, using: str, boot_id: str, pid_namespace: str) -> tuple[HostPump, ...]:
    """Return the pumps registered under one boot of one host that have not stopped.

    Nothing when the host cannot be told from others.
    """
    if not boot_id or not pid_namespace:
        return ()
    rows = Pump.objects.using(using).filter(
        boot_id=boot_id, pid_namespace=pid_namespace, stopped_at__isnull=True
    )
    return tuple(HostPump(pump_id, pid) for pump_id, pid in rows.values_list("id", "pid"))
