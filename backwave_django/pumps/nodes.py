"""A node: one process and its pumps, from the first hello to the exit code."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import connections
from django.db.utils import Error as DatabaseError
from django.utils.module_loading import import_string

from backwave_django.conf import get_config
from backwave_django.core.errors import ConfigurationError
from backwave_django.core.events import DeadPumpsFound
from backwave_django.core.leases import PumpInfo
from backwave_django.jobs import services
from backwave_django.jobs.ids import new_id
from backwave_django.jobs.registry import registry
from backwave_django.pumps.atomic import Transactions
from backwave_django.pumps.attempts import Attempts
from backwave_django.pumps.clock import SystemClock
from backwave_django.pumps.deaths import dead_pumps
from backwave_django.pumps.health import HealthFile
from backwave_django.pumps.hints import HintSource
from backwave_django.pumps.identity import this_process
from backwave_django.pumps.inbox import Inbox
from backwave_django.pumps.joblog import keep_log_lines
from backwave_django.pumps.plans import driver_config
from backwave_django.pumps.progress import ProgressBoard
from backwave_django.pumps.pump import Pump
from backwave_django.pumps.scope import Scopes
from backwave_django.pumps.shutdown import ABANDONED, DRAINED, HALTED, StopSignals
from backwave_django.store.declarations import greet_with_schedules
from backwave_django.store.executors import default_store, observed, open_pump_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backwave_django.conf import Config, GroupConfig
    from backwave_django.pumps.exchange import PumpStore
    from backwave_django.pumps.identity import Identity
    from backwave_django.pumps.plans import NodePlan

logger = logging.getLogger("backwave.pump")

#: How often the main thread looks after the health file when nothing happens.
_LOOK_SECONDS: Final = 1.0
_JOIN_SECONDS: Final = 5.0


class Node:
    """The pumps of one process. ``run`` once, from the main thread if signals are to be heard."""

    def __init__(self, plan: NodePlan, *, config: Config) -> None:
        self._plan = plan
        self._config = config
        self._identity = this_process()
        self._news: SimpleQueue[Pump] = SimpleQueue()
        self._middleware = load_middleware(config.middleware)
        self.pumps = tuple(
            self._pump(group, number, first=(group is plan.groups[0] and number == 1))
            for group in plan.groups
            for number in range(1, group.pumps + 1)
        )

    def drain(self, _signum: int = 0) -> None:
        """Ask all pumps to finish what they run and to end. Safe in a signal handler."""
        for pump in self.pumps:
            pump.drain()

    def run(self, *, ends_process: bool = False) -> int:
        """Run until all pumps have ended; return the exit code.

        With ``ends_process`` no signal is heard after that: the caller ends with this code.
        """
        keep_log_lines()
        self._find_dead_pumps()
        health = self._plan.health_file and HealthFile(self._plan.health_file)
        vitals = [pump.vitals for pump in self.pumps]
        with ExitStack() as stack:
            signals = StopSignals(first=self.drain, ends_process=ends_process)
            stack.enter_context(signals)
            if self._config.hints:
                stack.enter_context(HintSource(self._config, self.pumps))
            for pump in self.pumps:
                pump.start()
            left = set(self.pumps)
            while left:
                try:
                    left.discard(self._news.get(timeout=_LOOK_SECONDS))
                except Empty:
                    if health:
                        health.update(vitals)
            signals.ignore()
            for pump in self.pumps:
                pump.join(seconds=_JOIN_SECONDS)
        return self._exit_code()

    def _exit_code(self) -> int:
        endings = [pump.ending for pump in self.pumps if pump.ending is not None]
        if len(endings) < len(self.pumps) or any(ending.problem for ending in endings):
            return HALTED
        if any(ending.abandoned or ending.unrecorded for ending in endings):
            return ABANDONED
        return DRAINED

    def _pump(self, group: GroupConfig, number: int, *, first: bool) -> Pump:
        clock, inbox, progress = SystemClock(), Inbox(), ProgressBoard()
        if self._config.services is not None:
            services.registry()  # what is wrong with it ends the command, not the first job
        scopes = Scopes(
            new_container=services.new_container,
            reuse_connections=group.connections == "reuse",
        )
        info = _info(group, self._identity, clock=clock)
        return Pump(
            name=f"backwave-{group.name}-{number}",
            config=driver_config(group, pump_id=info.id, stop=self._plan.stop),
            info=info,
            open_store=lambda: self._store(group),
            clock=clock,
            attempts=Attempts(
                clock=clock,
                scopes=scopes,
                progress=progress,
                transactions=Transactions(
                    open_store=partial(default_store, self._config.database, config=self._config),
                    clock=clock,
                    patience=group.lease_duration / 6,
                ),
                middleware=self._middleware,
            ),
            inbox=inbox,
            progress=progress,
            ended=self._news.put,
            greeting=_greet if first else _declare,
        )

    def _store(self, group: GroupConfig) -> PumpStore:
        return open_pump_store(
            self._config.database,
            observed(self._config.store_settings),
            application_name=f"backwave:{group.name}:{os.getpid()}",
            lease_duration=group.lease_duration,
        )

    def _find_dead_pumps(self) -> None:
        """Tell the first pump of those of this host whose process is gone."""
        try:
            dead = dead_pumps(using=self._config.database)
        except DatabaseError as error:
            # Their leases lapse in any case; here it would only have gone faster.
            logger.warning("could not look for dead pumps of this host: %s", error)
            return
        finally:
            # Whoever looked has a connection open that nobody will use again.
            connections.close_all()
        if dead:
            logger.warning("%d pumps of this host are gone: their jobs are recovered", len(dead))
            self.pumps[0].inbox.put(DeadPumpsFound(pumps=dead))


def load_middleware(paths: Sequence[str]) -> tuple[Any, ...]:
    """Return the middleware at ``paths``. Raises ``ConfigurationError`` for one that is not."""
    loaded = []
    for path in paths:
        try:
            loaded.append(import_string(path))
        except ImportError as error:
            raise ConfigurationError(
                f'BACKWAVE["MIDDLEWARE"] names {path!r}, which cannot be imported: {error}.',
                "Write the dotted path of a function that takes and returns a handler.",
            ) from error
    return tuple(loaded)


def _declare(store: PumpStore, _now: datetime) -> None:
    """Note what code and settings say of limits.

    Each pump does, before its first claim: it would not wait for another of its process.
    """
    store.declare_limits(registry.limits().by_key)
    store.declare_queues(get_config().declared_queues)


def _greet(store: PumpStore, now: datetime) -> None:
    """Bring into the database what this code declares and what is missing there."""
    _declare(store, now)
    greet_with_schedules(store, update=settings.DEBUG, now=now)


def _info(group: GroupConfig, identity: Identity, *, clock: SystemClock) -> PumpInfo:
    return PumpInfo(
        id=new_id(),
        group=group.name,
        node=identity.node,
        hostname=identity.hostname,
        pid=identity.pid,
        boot_id=identity.boot_id,
        pid_namespace=identity.pid_namespace,
        version=identity.version,
        queues=group.queues,
        pool_size=group.pool_size,
        lease_duration=group.lease_duration,
        wire_names=registry.known(),
        started_at=clock.now(),
    )
