"""Atomic bodies, as their workers see them: statements that leave, and answers that may not come.

A worker does what ``core.commits`` makes of an answer, as that of a pump does. It may lose its
session without hearing of it, and its session may lose it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from backwave_django.core import commits
from backwave_django.core import events as e
from backwave_django.core.commands import CancelReason
from backwave_django.core.outcomes import Outcome, Reported
from tests.simulation.statements import REFUSAL, Act, Statement

if TYPE_CHECKING:
    from tests.simulation.bodies import Body
    from tests.simulation.nodes import Node
    from tests.simulation.world import World

#: Of the sessions whose node was cut off, the share that lives on.
SURVIVES = 0.5
UNDONE = {
    e.AttemptReleased: "abandoned",
    e.AttemptCancelled: "cancelled",
    e.AttemptSnoozed: "snoozed",
}


def begin(world: "World", node: "Node", body: "Body", span: float) -> float:
    """Begin the transaction of an atomic body, if it is one; return how long the body takes."""
    if body.job.wire_name not in world.plan.atomic or not body.began:
        return span
    nth = node.trips["Begin"]
    node.trips["Begin"] += 1
    refused = world.weather.trip(node.number, "Begin", nth) == "before"
    if refused or world.weather.is_cut_off(node.number, world.time):
        # To who runs a body this is an exception like any other.
        world.reached("atomic: could not begin")
        body.kind = "raise"
        return REFUSAL
    body.transaction = Transaction(world, node, body)
    return span


class Transaction:
    """What the worker of an atomic body says to the database, from the body's end on."""

    def __init__(self, world: "World", node: "Node", body: "Body") -> None:
        self._world = world
        self._node = node
        self._body = body
        self._life = node.life
        self._session = world.sessions.begin(body.job)
        self._commit: Statement | None = None
        self._stalled: Callable[[], object] | None = None
        #: The body has ended; what is still to come is said by its worker.
        self.ending = False

    def body_ended(self) -> None:
        """The body has returned or raised: apply its outcome, or undo what it wrote."""
        body, world, now = self._body, self._world, self._node.now()
        self.ending = True
        ended = body.ends(now=now)
        timed_out = body.asked is CancelReason.TIMEOUT
        outcome = commits.after_body(
            ended, job=body.job, counts=not (body.void or timed_out), now=now
        )
        if not isinstance(outcome, Outcome):
            how = "timed out" if timed_out else UNDONE.get(type(outcome), "failed")
            world.reached(f"atomic: {how}, rolled back")
            self._undone(outcome)
            return
        world.watch.body_ended(body, ended)
        fence = partial(self._session.fence, outcome, patience=world.patience)
        self._statement("Fence", fence, partial(self._fenced, outcome)).leave()

    def _fenced(self, outcome: Outcome, row: Reported | None) -> None:
        if row is None:
            self._world.reached("atomic: given back unapplied")
            self._undone(commits.after_fault(outcome))
            return
        undone = commits.after_fence(outcome, row)
        if undone is not None:
            self._world.reached("atomic: stale, rolled back")
            self._undone(undone)
            return
        commit = partial(self._session.commit, node=self._node, now=self._node.now())
        self._commit = self._statement("Commit", commit, self._answered)
        self._commit.leave()

    def _answered(self, answer: bool | None) -> None:  # noqa: FBT001 - an answer, not an option
        if answer:
            self._tell(e.AttemptCommitted(lease_id=self._body.job.lease_id), known=True)
        else:
            self._look()

    def _look(self) -> None:
        """Ask, on another connection, what became of the commit."""
        job = self._body.job
        ask = partial(self._world.store.is_recorded, job_id=job.job_id, run=job.run)
        look = Statement(
            self._world,
            self._node,
            "Look",
            lambda reply: reply(ask()),
            hear=partial(self._hear, self._looked),
            drop=lambda: None,
            is_lost=lambda: False,
        )
        look.leave()

    def _looked(self, recorded: bool | None) -> None:  # noqa: FBT001 - as above
        seen = {None: "not seen", True: "committed", False: "not committed"}[recorded]
        self._world.reached(f"atomic: answer lost, {seen}")
        known, lease_id = bool(recorded), self._body.job.lease_id
        ended = commits.after_silence(lease_id, started_at=self._body.started_at, recorded=known)
        self._tell(ended, known=known)

    def _undone(self, ended: e.AttemptReported) -> None:
        self._sever()
        self._world.watch.body_ended(self._body, ended)
        self._tell(ended, known=False)

    def _tell(self, ended: e.AttemptEnded, *, known: bool) -> None:
        """Let the pump know; ``known`` says that it is known to be committed."""
        lease_id = self._body.job.lease_id
        if known:
            self._node.notes.committed.add(lease_id)
            if self._body.asked is CancelReason.TIMEOUT:
                self._world.reached("atomic: committed past its time-out")
        del self._node.bodies[lease_id]
        self._node.tell(ended)

    # Its process and its session

    def die(self) -> None:
        """The process of the worker is gone."""
        # A commit that was sent may take effect all the same.
        if self._commit is None or not self._commit.has_left:
            self._world.reached("atomic: killed before its commit")
            self._sever()

    def thaw(self) -> None:
        """The process goes on, and hears what was said meanwhile."""
        heard, self._stalled = self._stalled, None
        if heard is not None:
            heard()

    def _statement(self, what: str, act: Act, heard: Callable[[Any], object]) -> Statement:
        return Statement(
            self._world,
            self._node,
            what,
            act,
            hear=partial(self._hear, heard),
            drop=self._sever,
            is_lost=self._session_is_lost,
        )

    def _hear(self, heard: Callable[[Any], object], answer: Any) -> None:
        if self._life != self._node.life:
            return
        if self._node.frozen:
            self._stalled = partial(heard, answer)
        else:
            heard(answer)

    def _session_is_lost(self) -> bool:
        """Whether the database has ended the session, or the network has lost it."""
        world, number, since = self._world, self._node.number, self._session.began_at
        cut = world.weather.was_cut_off(number, begins=since, ends=world.time)
        if cut and world.plan.share("session", number, since) >= SURVIVES:
            self._session.roll_back()
        if self._session.over:
            world.reached("atomic: session lost")
        return self._session.over

    def _sever(self) -> None:
        """The database sees that nobody is there any more: at once, or when it has waited."""
        world = self._world
        if world.weather.is_cut_off(self._node.number, world.time):
            world.after(world.patience, self._session.roll_back)
        else:
            self._session.roll_back()
