"""The slots of a pump: threads that run bodies."""

from __future__ import annotations

import logging
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from django.db import connections

from backwave_django.pumps.attempts import Assignment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from backwave_django.core.commands import CancelReason
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.pumps.attempts import Attempts
    from backwave_django.pumps.inbox import Inbox

logger = logging.getLogger("backwave.pump")

#: Threads without a body end at once; this only bounds a wait that should not be one.
_JOIN_SECONDS: Final = 2.0
#: How long a worker without work keeps what it may reuse.
_REST_SECONDS: Final = 5.0
#: How many ended bodies a slot remembers: more than outcomes can wait for the store.
_REMEMBERED: Final = 8


class Workers:
    """Threads that take jobs from one queue, started as they are needed, daemons all.

    All methods are for the pump's thread. The driver hands out no more jobs than there are slots,
    so that a job never waits behind another. Threads are daemons because a body that never ends
    must not keep the process.
    """

    def __init__(self, *, name: str, size: int, attempts: Attempts, inbox: Inbox) -> None:
        self._name = name
        self._size = size
        self._attempts = attempts
        self._inbox = inbox
        self._queue: SimpleQueue[Assignment | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._started = 0
        self._running: dict[UUID, Assignment] = {}
        self._replaced: dict[UUID, Assignment] = {}
        self._ended: deque[LeasedJob] = deque(maxlen=_REMEMBERED * size)
        # Held for a moment when a body ends and when its slot is given away: either the thread
        # sees that it was replaced, or the pump sees that the body has ended.
        self._ending = threading.Lock()

    @property
    def executing(self) -> int:
        """How many bodies hold a slot."""
        return len(self._running)

    @property
    def abandoned(self) -> int:
        """How many bodies run whose end counts for nothing any more."""
        void = sum(1 for each in tuple(self._running.values()) if each.void)
        return void + len(self._replaced)

    def execute(self, jobs: Sequence[LeasedJob]) -> None:
        """Give each job to a worker; each is answered by one event in the inbox."""
        for job in jobs:
            assignment = Assignment(job)
            self._running[job.lease_id] = assignment
            self._queue.put(assignment)
        while len(self._threads) < min(self._size, len(self._running)):
            if not self._start():
                break

    def job_of(self, lease_id: UUID) -> LeasedJob | None:
        """Return the job whose body runs under a lease, or ``None`` when none does."""
        assignment = self._running.get(lease_id)
        return None if assignment is None else assignment.job

    def ended_job(self, lease_id: UUID) -> LeasedJob | None:
        """Return the job whose body has lately ended under a lease, if its end still counted."""
        return next((job for job in tuple(self._ended) if job.lease_id == lease_id), None)

    def stop_all(self) -> None:
        """Let every running body see that the pump drains."""
        for assignment in self._all():
            assignment.signals.stop()

    def cancel(self, lease_id: UUID, reason: CancelReason) -> None:
        """Ask one body to stop."""
        assignment = self._running.get(lease_id)
        if assignment is not None:
            assignment.signals.cancel(reason)

    def cancel_all(self, reason: CancelReason) -> None:
        """Ask every body to stop."""
        for assignment in self._all():
            assignment.signals.cancel(reason)

    def abandon(self, lease_id: UUID) -> None:
        """Note that the lease of a body is lost."""
        assignment = self._running.get(lease_id)
        if assignment is not None:
            assignment.void = True

    def replace(self, lease_id: UUID) -> None:
        """Give the slot of a body that does not end to a new thread; the old one ends with it."""
        with self._ending:
            assignment = self._running.pop(lease_id, None)
            if assignment is None:
                return  # it ended just now
            assignment.replaced = True
            self._replaced[lease_id] = assignment
        if assignment.thread in self._threads:
            self._threads.remove(assignment.thread)

    def close(self) -> None:
        """Let all threads end, and wait for those that run no body."""
        busy = {assignment.thread for assignment in self._all()}
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            if thread not in busy:
                thread.join(_JOIN_SECONDS)

    def _all(self) -> Iterator[Assignment]:
        yield from tuple(self._running.values())
        yield from tuple(self._replaced.values())

    def _start(self) -> bool:
        self._started += 1
        thread = threading.Thread(
            target=self._work, name=f"{self._name}-{self._started}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise
            logger.warning("%s: no more threads to be had", self._name, exc_info=True)
            return False
        self._threads.append(thread)
        return True

    def _next(self) -> Assignment | None:
        try:
            return self._queue.get(timeout=_REST_SECONDS)
        except Empty:
            connections.close_all()
            return self._queue.get()

    def _work(self) -> None:
        thread = threading.current_thread()
        get, run, put = self._next, self._attempts.run, self._inbox.put
        try:
            self._attempts.warm()
            while (assignment := get()) is not None:
                assignment.thread = thread
                lease_id = assignment.job.lease_id
                event = run(assignment)
                with self._ending:
                    self._running.pop(lease_id, None)
                    self._replaced.pop(lease_id, None)
                if not assignment.void:
                    self._ended.append(assignment.job)
                put(event)
                if assignment.replaced:
                    return
                # A finished assignment must not keep what its body held until the next one.
                del assignment, event
        finally:
            # A thread that dies without this leaks its place in Django's connection pool.
            connections.close_all()
