"""Every job type of this process, by wire name. The one thing here that declarations change."""

from __future__ import annotations

import difflib
import threading
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.apps import apps

from backwave_django.core.errors import DuplicateWireName, InvalidDeclaration, UnknownJobType
from backwave_django.core.retries import Retry, RetryTable
from backwave_django.jobs.job_type import JobType
from backwave_django.jobs.limits import LimitTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

AnyJobType: TypeAlias = JobType[Any, Any]


class Registry:
    """Finds job types by wire name or alias. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._by_name: dict[str, AnyJobType] = {}
        self._unnamed: list[AnyJobType] = []

    def add(self, job_type: AnyJobType) -> None:
        """Register a job type. A module that is loaded anew replaces what it declared before.

        A name that cannot be derived while Django starts is derived at the first look-up. Raises
        ``DuplicateWireName``, and ``InvalidDeclaration`` for a limit key with two numbers.
        """
        with self._lock:
            if job_type.is_named or apps.apps_ready:
                self._index(job_type)
            else:
                self._unnamed.append(job_type)

    def find(self, wire_name: str) -> AnyJobType | None:
        """Return the job type with this wire name or alias, or ``None``."""
        self._name_all()
        return self._by_name.get(wire_name)

    def get(self, wire_name: str) -> AnyJobType:
        """``find``, but raise ``UnknownJobType`` and name the nearest wire names."""
        found = self.find(wire_name)
        if found is None:
            near = difflib.get_close_matches(wire_name, self._by_name, n=3)
            raise UnknownJobType(wire_name, near)
        return found

    def all(self) -> tuple[AnyJobType, ...]:
        """Return every job type once, by wire name."""
        self._name_all()
        with self._lock:
            once = {job_type.wire_name: job_type for job_type in self._by_name.values()}
        return tuple(once[name] for name in sorted(once))

    def known(self) -> tuple[tuple[str, int], ...]:
        """Return each wire name and alias with the newest payload version that can be run."""
        return tuple((name, job_type.version) for name, job_type in self._named())

    def retry_table(self, default: Retry) -> RetryTable:
        """Return the retry policies by wire name and alias, over the group's ``default``."""
        own = {name: found.retry for name, found in self._named() if found.retry is not None}
        return RetryTable(default=default, own=own)

    def timeouts(self) -> Mapping[str, timedelta]:
        """Return the time-outs by wire name and alias, of the job types that have one."""
        return {name: found.timeout for name, found in self._named() if found.timeout is not None}

    def limits(self) -> LimitTable:
        """Return the declared limits: by key, and by wire name or alias for computed keys."""
        limited = [(name, found.limit) for name, found in self._named() if found.limit is not None]
        return LimitTable(
            by_key={limit.key: limit.cap for _, limit in limited if isinstance(limit.key, str)},
            by_type={name: limit.cap for name, limit in limited if callable(limit.key)},
        )

    def queues(self) -> frozenset[str]:
        """Return the queues that job types name as theirs."""
        return frozenset(found.queue for _, found in self._named())

    def _named(self) -> Iterator[tuple[str, AnyJobType]]:
        self._name_all()
        with self._lock:
            return iter(sorted(self._by_name.items()))

    def _name_all(self) -> None:
        if self._unnamed and apps.apps_ready:
            with self._lock:
                while self._unnamed:
                    self._index(self._unnamed[0])
                    self._unnamed.pop(0)

    def _index(self, job_type: AnyJobType) -> None:
        names = (job_type.wire_name, *job_type.aliases)
        for name in names:
            there = self._by_name.get(name)
            if there is not None and there.label != job_type.label:
                raise DuplicateWireName(name, there.label, job_type.label)
        self._refuse_other_cap(job_type)
        # A new dict, so that look-ups need no lock.
        self._by_name = {**self._by_name, **dict.fromkeys(names, job_type)}

    def _refuse_other_cap(self, job_type: AnyJobType) -> None:
        limit = job_type.limit
        if limit is None or callable(limit.key):
            return
        for other in self._by_name.values():
            if other.label == job_type.label or other.limit is None:
                continue
            if other.limit.key == limit.key and other.limit.cap != limit.cap:
                raise InvalidDeclaration(
                    f"limit key {limit.key!r} is declared with {other.limit.numbers} by "
                    f"{other.label} and with {limit.numbers} by {job_type.label}: write the same"
                )


registry: Final = Registry()
