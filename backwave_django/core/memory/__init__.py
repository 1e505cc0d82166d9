"""The reference store: the contract over dictionaries, for one thread.

It is what the others are compared with, and what a simulation runs on. Nothing here is fast,
and nothing is durable; everything is as plain as the contract allows.
"""

from backwave_django.core.memory.rows import Snapshot
from backwave_django.core.memory.store import MemoryStore

__all__ = ["MemoryStore", "Snapshot"]
