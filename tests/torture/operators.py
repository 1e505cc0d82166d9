"""A person at the admin, who never rests."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from backwave_django import operations
from backwave_django.core.contract import ActionAnswer, Actor
from backwave_django.core.states import REQUEUEABLE, TERMINAL
from backwave_django.models import Job, Pump
from backwave_django.monitor import database_clock
from tests.torture.enqueuers import has_room
from tests.torture.journal import Journal
from tests.torture.loops import EXPECTED, Random, Stop, choose, rounds

PAUSABLE = ("plain", "swing", "lazy")
TENANTS = ("torture.tenant-0", "torture.tenant-1", "torture.tenant-2")
#: So that a row of the operator log can be told by it.
TORTURER = "torturer"


class Operator:
    """One person. Each action carries a reason that is used once, and is journalled."""

    def __init__(self, name: str, rng: Random, *, backlog: int) -> None:
        self._name = name
        self._rng = rng
        self._backlog = backlog
        self._journal = Journal.current()
        self._number = 0
        self._ways: dict[Callable[[], None], float] = {
            self.cancel: 30,
            self.requeue: 25,
            self.run_now: 10,
            self.pause_and_resume: 12,
            self.limit_queue: 8,
            self.limit_key: 8,
            self.drain: 2,
            self.many: 5,
        }

    def run(self, stop: Stop) -> None:
        """Act until told to stop."""
        self._stop = stop
        for _ in rounds(stop, self._rng, longest=0.25):
            self._label = ""
            try:
                choose(self._rng, self._ways)()
            except EXPECTED as error:
                self._failed(error)
            except Exception as error:
                self._failed(error)
                self._journal.write("operator.broke", error=repr(error))

    def _failed(self, error: Exception) -> None:
        if self._label:
            self._journal.write("operator.failed", label=self._label, error=repr(error))
        connection.close()

    def _act(self, action: str, targets: Sequence[object], act: Callable[[Actor, Any], Any]) -> Any:
        """Do one thing, and write down what was asked and what was heard."""
        self._number += 1
        self._label = f"{self._name}-{self._number}"
        actor = Actor(name=TORTURER, source="code", reason=self._label)
        now = database_clock()
        names = [str(target) for target in targets]
        self._journal.write("operator.asked", label=self._label, action=action, targets=names)
        answer = act(actor, now)
        results = [each.result.value for each in answer] if isinstance(answer, tuple) else []
        self._journal.write(
            "operator.answered", label=self._label, action=action, targets=names, results=results
        )
        return answer

    def _pick(self, rows: "QuerySet[Job]", most: int) -> list[UUID]:
        ids = list(rows.order_by("-id").values_list("id", flat=True)[:300])
        return self._rng.sample(ids, min(len(ids), self._rng.randrange(1, most + 1)))

    def _on_jobs(
        self,
        action: str,
        ids: Sequence[UUID],
        act: Callable[..., tuple[ActionAnswer, ...]],
    ) -> None:
        if ids:
            self._act(action, ids, lambda actor, now: act(ids, actor=actor, now=now))

    def cancel(self) -> None:
        """Cancel some that live; some will have ended by then."""
        ids = self._pick(Job.objects.exclude(state__in=TERMINAL), 10)
        self._on_jobs("cancel", ids, operations.cancel)

    def requeue(self) -> None:
        """Bring some back."""
        if has_room(self._backlog):
            ids = self._pick(Job.objects.filter(state__in=REQUEUEABLE), 8)
            self._on_jobs("requeue", ids, operations.requeue)

    def run_now(self) -> None:
        """Make some due."""
        ids = self._pick(Job.objects.filter(state="scheduled"), 8)
        self._on_jobs("run_now", ids, operations.run_now)

    def many(self) -> None:
        """Cancel or requeue whatever there is, like somebody who selects all."""
        ids = self._pick(Job.objects.all(), 200)
        if has_room(self._backlog) and self._rng.random() < 0.5:
            self._on_jobs("requeue", ids, operations.requeue)
        else:
            self._on_jobs("cancel", ids, operations.cancel)

    def pause_and_resume(self) -> None:
        """Pause a queue for a moment."""
        queue = self._rng.choice(PAUSABLE)
        self._act("pause", [queue], lambda a, now: operations.pause(queue, actor=a, now=now))
        self._stop.pause(self._rng.uniform(0.2, 1.2))
        self._act("resume", [queue], lambda a, now: operations.resume(queue, actor=a, now=now))

    def limit_queue(self) -> None:
        """Change how many of a queue may run."""
        limit = self._rng.choice((None, 0, 1, 2, 5))
        self._act(
            "set_limit",
            ["swing"],
            lambda a, now: operations.limit_queue("swing", limit, actor=a, now=now),
        )

    def limit_key(self) -> None:
        """Change how many may run under a key."""
        key, limit = self._rng.choice(TENANTS), self._rng.choice((None, 1, 3))
        self._act(
            "set_limit", [key], lambda a, now: operations.limit_key(key, limit, actor=a, now=now)
        )

    def drain(self) -> None:
        """Let a pump come to its end."""
        ids = list(Pump.objects.filter(stopped_at=None).values_list("id", flat=True))
        if ids:
            pump = self._rng.choice(ids)
            self._act("drain", [pump], lambda a, now: operations.drain(pump, actor=a, now=now))
