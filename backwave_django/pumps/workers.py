"""The slots of a pump: threads that run bodies."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from django.db import connections

from backwave_django.pumps.attempts import Assignment
from backwave_django.pumps.handover import Handover

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
#: Bodies that take longer on average are not waited for, and never run in a row: their slots would
#: stand empty meanwhile.
_BRISK_SECONDS: Final = 0.000_3
_PATIENCE_SECONDS: Final = 0.000_5
_MOST_PATIENCE_SECONDS: Final = 0.005
#: How much of the average the latest body makes up.
_WEIGHT: Final = 0.05


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
        self._handover: Handover[Assignment | None] = Handover()
        self._threads: list[threading.Thread] = []
        self._started = 0
        self._running: dict[UUID, Assignment] = {}
        self._replaced: dict[UUID, Assignment] = {}
        self._ended: deque[LeasedJob] = deque(maxlen=_REMEMBERED * size)
        self._latest: tuple[UUID, ...] = ()
        self._settled_at = 0.0
        self._mean_seconds = _BRISK_SECONDS
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

    @property
    def _brisk(self) -> bool:
        return self._mean_seconds <= _BRISK_SECONDS

    def execute(self, jobs: Sequence[LeasedJob]) -> None:
        """Give each job to a worker; each is answered by one event in the inbox.

        Brisk bodies are run by one worker in a row, until ``spread``.
        """
        self._latest = tuple(job.lease_id for job in jobs)
        patience = _PATIENCE_SECONDS + 2 * self._mean_seconds * len(jobs)
        self._settled_at = time.perf_counter() + min(patience, _MOST_PATIENCE_SECONDS)
        assignments = [Assignment(job) for job in jobs]
        self._running.update(zip(self._latest, assignments, strict=True))
        self._handover.give(assignments, in_a_row=self._brisk)
        while len(self._threads) < min(self._size, len(self._running)):
            if not self._start():
                break

    def spread(self) -> None:
        """Let all workers at what is left; to be called before the pump waits for anything else."""
        self._handover.spread()

    def settling(self) -> tuple[int, float]:
        """Return how many bodies are about to end, and how many seconds to give them.

        Outcomes are cheaper by the dozen. A batch of brisk bodies that was handed out a moment ago
        will have ended a moment later: what ends first waits for the others, never for long, and
        never when bodies take a while.
        """
        if not self._brisk:
            return 0, 0.0
        running = self._running
        left = sum(lease_id in running for lease_id in self._latest)
        return left, (self._settled_at - time.perf_counter()) if left else 0.0

    def job_of(self, lease_id: UUID) -> LeasedJob | None:
        """Return the job whose body runs under a lease, or ``None`` when none does any more."""
        assignment = self._running.get(lease_id)
        return None if assignment is None or assignment.committing else assignment.job

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
        self._handover.give([None] * len(self._threads))
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

    def _work(self) -> None:
        thread = threading.current_thread()
        run, slip, clock = self._attempts.run, self._inbox.slip, time.perf_counter
        take = self._handover.taker(rest_seconds=_REST_SECONDS, rested=connections.close_all)
        try:
            self._attempts.warm()
            while (assignment := take()) is not None:
                assignment.thread = thread
                lease_id = assignment.job.lease_id
                began = clock()
                event = run(assignment)
                self._mean_seconds += (clock() - began - self._mean_seconds) * _WEIGHT
                with self._ending:
                    self._running.pop(lease_id, None)
                    self._replaced.pop(lease_id, None)
                if not (assignment.void or assignment.committing):
                    self._ended.append(assignment.job)
                slip(event)
                if assignment.replaced:
                    return
                # A finished assignment must not keep what its body held until the next one.
                del assignment, event
        finally:
            # A thread that dies without this leaks its place in Django's connection pool.
            connections.close_all()
