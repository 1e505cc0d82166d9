"""Statements of a worker: on their way to the database, and what comes back of them.

Anything can get lost on the way. A statement without an answer has failed after a while, whether
or not it did something; some do it only after that.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tests.simulation.nodes import Node
    from tests.simulation.world import World

Reply = Callable[[Any], object]
#: How long it takes until a connection is refused, and until a process is there again.
REFUSAL = 0.02
RESTART = 1.0


class Act(Protocol):
    """What a statement does there. It replies once, at once or later; ``None`` is no answer."""

    def __call__(self, *, reply: Reply) -> object: ...


class Statement:
    """One statement under way.

    ``hear`` takes its answer, or ``None``; ``drop`` is called when the database can see that
    nobody waits for one any more; ``is_lost`` tells whether the connection is gone.
    """

    def __init__(
        self,
        world: "World",
        node: "Node",
        what: str,
        act: Act,
        *,
        hear: Reply,
        drop: Callable[[], object],
        is_lost: Callable[[], bool],
    ) -> None:
        self._world = world
        self._node = node
        self._act = act
        self._hear = hear
        self._drop = drop
        self._is_lost = is_lost
        self.has_left, self._sent = False, world.time
        self._address = (node.number, what, node.trips[what])
        node.trips[what] += 1
        self._fate = world.weather.trip(*self._address)

    def leave(self) -> None:
        """Go, if there is a connection for it."""
        if self._fate == "freeze":
            self._freeze()
            return
        world, lost = self._world, self._is_lost()
        self.has_left, self._sent = True, world.time
        if lost or self._is_cut_off():
            quick = lost or world.plan.share("refused", *self._address) < 0.5
            self._fail_in(REFUSAL if quick else world.patience)
        elif self._fate == "before":
            self._fail_in(REFUSAL)
        elif self._fate == "late":
            self._fail_in(world.patience)
            delay = world.plan.share("late", *self._address) * 2 * world.patience
            world.after(world.patience + delay, self._arrive_late)
        else:
            world.after(self._latency("there"), self._arrive)
            if self._fate == "crash":
                self._node.crash()
                world.after(RESTART, self._node.start)

    def _freeze(self) -> None:
        """The process is stopped just before this is said, and says it when it goes on."""
        node, world = self._node, self._world
        life, span = node.life, world.plan.lease * (0.5 + 2 * world.plan.share(*self._address))
        self._fate = ""
        node.freeze()
        world.after(span, lambda: node.thaw(life=life, clock_stood_for=0.0))
        world.after(span, lambda: self._go_on(life))

    def _go_on(self, life: int) -> None:
        if self._node.life == life and self._node.frozen:
            self._world.after(RESTART, lambda: self._go_on(life))
        elif self._node.life == life:
            self.leave()

    def _is_cut_off(self) -> bool:
        return self._world.weather.is_cut_off(self._node.number, self._world.time)

    def _latency(self, way: str) -> float:
        span = 0.001 + 0.02 * self._world.plan.share(way, *self._address)
        return span + 0.4 * self._world.patience if self._fate == "slow" else span

    def _arrive(self) -> None:
        if self._is_cut_off():
            self._fail_in(self._sent + self._world.patience - self._world.time)
        else:
            self._act(reply=self._answer)

    def _arrive_late(self) -> None:
        if self._is_cut_off():
            self._drop()
        else:
            self._act(reply=lambda _: None)

    def _answer(self, answer: Any) -> None:
        self._world.after(self._latency("back"), lambda: self._arrived(answer))

    def _arrived(self, answer: Any) -> None:
        if self._fate == "after" or self._is_cut_off():
            self._world.reached(f"answer lost: {self._address[1]}")
            self._fail_in(self._sent + self._world.patience - self._world.time)
        else:
            self._hear(answer)

    def _fail_in(self, span: float) -> None:
        self._world.after(max(span, 0.0), self._fail)

    def _fail(self) -> None:
        if self._fate != "late":
            self._drop()
        self._hear(None)
