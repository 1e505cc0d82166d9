"""One round of a pump without threads: everything that is due at one virtual instant."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from backwave_django.conf import get_config
from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.bounds import SWEEP_BATCH
from backwave_django.core.dials import StopRule
from backwave_django.core.driver import Driver
from backwave_django.core.leases import PumpInfo, PumpStatus
from backwave_django.jobs.ids import new_id
from backwave_django.jobs.registry import registry
from backwave_django.pumps.exchange import Exchange, Turn, merged
from backwave_django.pumps.health import Vitals
from backwave_django.pumps.identity import this_process
from backwave_django.pumps.plans import driver_config
from backwave_django.pumps.progress import ProgressBoard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backwave_django.conf import GroupConfig
    from backwave_django.core.jobs import LeasedJob
    from backwave_django.store.adapter import DatabaseStore
    from backwave_django.testing.clock import VirtualClock

Run: TypeAlias = "Callable[[LeasedJob], e.AttemptEnded | None]"
_Errand: TypeAlias = "c.Command | Turn | e.Event"

#: More attempts than this without virtual time moving are a job that enqueues itself for ever.
MAX_ATTEMPTS_AT_ONCE = 10_000


def group_for(queues: tuple[str, ...]) -> GroupConfig:
    """Return the dials of the harness's pump: the first group's, serving ``queues``."""
    config = get_config()
    first = config.groups.get("default") or next(iter(config.groups.values()))
    return replace(first, queues=queues, weights=None)


class Round:
    """A pump that lives for one instant: it registers, works until nothing is due, and retires.

    ``run`` carries out one attempt; when it returns ``None`` the pump dies on the spot with all
    that it has claimed.
    """

    def __init__(
        self, *, store: DatabaseStore, clock: VirtualClock, queues: tuple[str, ...], run: Run
    ) -> None:
        group = group_for(queues)
        info = _info(group, clock=clock)
        config = driver_config(group, pump_id=info.id, stop=StopRule())
        # Time stands still while a body runs here, so it can never be over its time.
        self._driver = Driver(replace(config, timeouts={}), now=clock.now())
        self._exchange = Exchange(
            store=store,
            clock=clock,
            info=info,
            vitals=Vitals(name="harness", clock=clock, heartbeat_interval=timedelta(days=1)),
            status=PumpStatus,
            progress=ProgressBoard(),
        )
        self._store = store
        self._clock = clock
        self._run = run
        self._pending: deque[_Errand] = deque()
        self._attempts = 0
        self._dead = False

    def run(self) -> int:
        """Work; return how many attempts were begun."""
        self._exchange.register()
        # The driver would wait until its peers have had the time to renew; here there are none.
        while self._store.expire_leases(limit=SWEEP_BATCH, now=self._clock.now()).full:
            continue
        self._tell(e.InboxEmpty())
        while self._more():
            self._tell(e.InboxEmpty())
        if not self._dead:
            self._exchange.retire(problem="")
        return self._attempts

    def _more(self) -> bool:
        """Whether the driver wants to go on at this instant."""
        wake_at = self._driver.wake_at
        return not self._dead and wake_at is not None and wake_at <= self._clock.now()

    def _tell(self, event: e.Event) -> None:
        self._pending.append(event)
        while self._pending and not self._dead:
            self._obey(self._pending.popleft())

    def _obey(self, errand: _Errand) -> None:
        match errand:
            case Turn():
                first, second = self._exchange.turn(errand)
                if second is not None:
                    self._pending.appendleft(second)
                self._pending.appendleft(first)
            case c.Execute(jobs=jobs):
                self._execute(jobs)
            case c.Halt(reason=problem) | e.StoreFaulted(problem=problem):
                raise RuntimeError(f"the harness's pump cannot go on: {problem}")
            case c.SignalStopping() | c.SignalCancel() | c.Abandon() | c.ReplaceSlot() | c.Exit():
                raise AssertionError(f"{errand}: no body runs while the driver is asked")
            case _:
                self._pending.extendleft(reversed(self._answers(errand)))

    def _answers(self, errand: c.StoreCommand | e.Event) -> Sequence[_Errand]:
        if isinstance(errand, c.StoreCommand):
            return (self._exchange.ask(errand),)
        return merged(self._driver.step(errand, now=self._clock.now()))

    def _execute(self, jobs: tuple[LeasedJob, ...]) -> None:
        ended: list[_Errand] = []
        for job in jobs:
            self._attempts += 1
            if self._attempts > MAX_ATTEMPTS_AT_ONCE:
                raise RuntimeError(
                    f"over {MAX_ATTEMPTS_AT_ONCE:,} attempts and still no end: "
                    "a job enqueues itself, or one that enqueues it"
                )
            event = self._run(job)
            if event is None:
                self._dead = True
            else:
                ended.append(event)
        self._pending.extend(ended)


def _info(group: GroupConfig, *, clock: VirtualClock) -> PumpInfo:
    identity = this_process()
    return PumpInfo(
        id=new_id(),
        group=group.name,
        node="harness",
        hostname=identity.hostname,
        pid=identity.pid,
        boot_id="",
        pid_namespace="",
        version=identity.version,
        queues=group.queues,
        pool_size=group.pool_size,
        lease_duration=group.lease_duration,
        wire_names=registry.known(),
        started_at=clock.now(),
    )
