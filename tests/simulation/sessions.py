"""Open transactions, as the database sees them: what was written in them, and what they lock.

The rows of an outcome that was applied in a transaction are locked until its end, and look to all
others as they did before. What a body wrote goes into the ledger at the commit, or nowhere.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from backwave_django.core.contract import ReportAnswer
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.outcomes import Outcome, Reported, Verdict

if TYPE_CHECKING:
    from tests.simulation.nodes import Node
    from tests.simulation.world import World

#: How often a statement that waits for a row looks at it, in seconds.
LOCK_TRIED_EVERY = 0.1


class Sessions:
    """The transactions of atomic bodies that are open, and the rows that they lock."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._open: dict[int, Session] = {}
        self.locked: set[UUID] = set()

    def begin(self, job: LeasedJob) -> "Session":
        session = Session(self._world, job)
        self._open[id(session)] = session
        return session

    def closed(self, session: "Session") -> None:
        self._open.pop(id(session), None)

    def end_all(self) -> None:
        """The database stops: whatever is open comes to nothing."""
        for session in tuple(self._open.values()):
            session.roll_back()


class Session:
    """One transaction. The body has written in it before anything else is said there."""

    def __init__(self, world: "World", job: LeasedJob) -> None:
        self._world = world
        self._rows: tuple[UUID, ...] = ()
        self._locked_at = 0.0
        self._held_before: tuple[float, ...] = ()
        self.began_at = world.time
        self.job_id, self.lease_id = job.job_id, job.lease_id
        self._run = job.run
        self.outcomes: tuple[Outcome, ...] = ()
        self.over = False

    def fence(
        self, outcome: Outcome, *, patience: float, reply: Callable[[Reported | None], object]
    ) -> None:
        """Apply an outcome; reply with what came of it, or ``None`` if it was waited too long."""
        world = self._world
        lease = world.store.tables.leases.get(outcome.lease_id)
        if self.over or patience < 0:
            reply(None)
        elif lease is None:
            reply(Reported(outcome.lease_id, Verdict.STALE))
        elif world.store.tables.is_held(lease.id, lease.job_id):
            left = patience - LOCK_TRIED_EVERY
            world.reached("atomic: waited for a lock")
            world.after(LOCK_TRIED_EVERY, lambda: self.fence(outcome, patience=left, reply=reply))
        else:
            self.outcomes = (outcome,)
            self._lock(lease.id, lease.job_id)
            reply(Reported(outcome.lease_id, Verdict.APPLIED, outcome.state))

    def commit(
        self, *, node: "Node", now: datetime, reply: Callable[[bool | None], object]
    ) -> None:
        """All of it becomes true at once."""
        if self.over:
            reply(None)
            return
        self._end()
        self._world.watch.perform(
            "Commit", lambda: self._committed(now), now=now, node=node, request=self
        )
        reply(True)  # noqa: FBT003 - an answer, not an option

    def _committed(self, now: datetime) -> ReportAnswer:
        store = self._world.store
        self._world.watch.ledger[self.job_id][self._run] += 1
        rows = [store.report_inside(one, patience=None, now=now) for one in self.outcomes]
        return ReportAnswer(rows=tuple(rows), clock=self._world.database_clock())

    def roll_back(self) -> None:
        """None of it was ever there."""
        if not self.over:
            self._end()

    def _end(self) -> None:
        self.over = True
        self._world.sessions.closed(self)
        self._unlock()

    def _lock(self, *rows: UUID) -> None:
        watch = self._world.watch
        self._rows, self._locked_at = rows, self._world.time
        self._held_before = tuple(watch.held_until.get(row, -1e9) for row in rows)
        for row in rows:
            self._world.store.hold(row)
            watch.held_until[row] = float("inf")
        self._world.sessions.locked.update(rows)

    def _unlock(self) -> None:
        world = self._world
        # A lock excuses others for what they did not get done, but not one that is over at once.
        long = world.time - self._locked_at > world.patience
        for row, before in zip(self._rows, self._held_before, strict=True):
            world.store.release(row)
            world.watch.held_until[row] = world.time if long else before
        world.sessions.locked.difference_update(self._rows)
        self._rows, self._held_before = (), ()
