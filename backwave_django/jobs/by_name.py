"""Enqueueing by wire name, where the code of the job type is not to be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backwave_django.jobs.registry import registry

if TYPE_CHECKING:
    from backwave_django.jobs.handle import JobHandle


def enqueue(wire_name: str, /, *args: Any, **kwargs: Any) -> JobHandle:
    """Insert one job of the type that is registered as ``wire_name``; see ``JobType.enqueue``.

    Raises ``UnknownJobType`` too, naming the nearest wire names.
    """
    return registry.get(wire_name).enqueue(*args, **kwargs)


async def aenqueue(wire_name: str, /, *args: Any, **kwargs: Any) -> JobHandle:
    """``enqueue`` for async code."""
    return await registry.get(wire_name).aenqueue(*args, **kwargs)
