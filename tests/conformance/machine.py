"""The rules by which a database's store and the reference are led through the same sequence.

Hypothesis chooses the rules and what goes into them; every choice means something whatever came
before, so that a sequence can be cut short and stay one.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import count
from typing import Any, ClassVar
from uuid import UUID

from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from backwave_django import models
from backwave_django.core.contract import ClaimRequest, Store, StoreSettings
from backwave_django.core.jobs import EdgeMode, IfDuplicate, NewJob
from backwave_django.core.leases import PumpHealth, PumpStatus
from backwave_django.core.limits import Cap
from backwave_django.core.outcomes import Unroutable
from backwave_django.core.queues import NO_DEFAULTS, QueueDefaults
from backwave_django.core.rates import Rate
from backwave_django.core.retries import Retry, RetryTable
from backwave_django.core.states import Cause
from backwave_django.store.executor import Executor
from tests import builders as b
from tests.conformance.rivals import MakeOutcome, Pair, Rivals, decided, swept

TICK = timedelta(microseconds=1)
SPANS = (TICK, b.SECOND, 10 * b.SECOND, 30 * b.SECOND, b.MINUTE, 5 * b.MINUTE, b.HOUR, 8 * b.DAY)
PUMPS = (b.PUMP, b.OTHER_PUMP)
RETRIES = RetryTable(
    default=Retry(max_attempts=2, initial=b.SECOND, multiplier=2.0, jitter=0.5),
    own={"shop.once": b.ONCE},
)

spans = st.sampled_from((timedelta(0), *SPANS))
maybe_spans = st.none() | spans
queues = st.sampled_from(("default", "mail"))
queue_lists = st.sampled_from((("default",), ("mail",), ("default", "mail"), ("mail", "default")))
keys = st.sampled_from((None, None, None, "Key", "key", "key:1"))
rates = st.none() | st.sampled_from(("1/second", "2/3 seconds", "7/minute")).map(Rate.parse)
limited = st.sampled_from(("Key", "key", "key:1", "key*", "k*"))
windows = st.none() | st.sampled_from(
    ("always", "00:00-00:01 UTC", "00:30-01:30 UTC", "Sun-Tue 23:00-12:00; Wed 01:00-02:00 UTC")
)
pumps = st.sampled_from(PUMPS)
choices = st.lists(st.integers(0, 30), max_size=4)
some = st.lists(st.integers(0, 30), min_size=1, max_size=3)
small_limits = st.sampled_from((1, 2, 100))
caps = st.none() | st.integers(0, 3)

new_jobs = st.fixed_dictionaries(
    {},
    optional={
        "wire_name": st.sampled_from(("shop.once", "shop.other")),
        "queue": queues,
        "priority": st.sampled_from((-100, -1, 1, 100)),
        "due_in": maybe_spans,
        "deadline_in": spans,
        "limit_key": keys,
        "unique_key": st.sampled_from(("Receipt", "receipt")),
        "if_duplicate": st.sampled_from(IfDuplicate),
        "parents": st.lists(st.tuples(st.integers(0, 30), st.sampled_from(EdgeMode)), max_size=2),
        "tags": st.sampled_from(('{"a":"1"}', '{"b":"é"}')),
        "payload_version": st.just(2),
        "workflow": st.just(b.uid(500)),
        "early_id": st.just(value=True),
    },
)
ends = st.sampled_from(
    (
        *("succeeded", "failed", "failed_for_good", "timed_out", "gave_up", "output_refused"),
        *("cancelled", "asked_to", "snoozed", "released", "undecodable"),
        *("unknown_type", "newer_version", "arguments"),
    )
)


def clear_tables() -> None:
    """Begin each sequence with nothing, cheaper than a flush does it."""
    for model in (
        *(models.Job, models.Lease, models.Outcome, models.Dependency, models.SettleQueue),
        *(models.Queue, models.Limit, models.Pump, models.OperatorAction),
        models.Schedule,
    ):
        model._default_manager.all()._raw_delete(connection.alias)


class RivalMachine(RuleBasedStateMachine):
    """Every rule is one operation on both stores; after each, all that is visible is compared."""

    make_executor: ClassVar[Callable[[], Executor]]

    def __init__(self) -> None:
        super().__init__()
        clear_tables()
        self.rivals = Rivals(type(self).make_executor(), StoreSettings())
        self.numbers = count(1)
        self.ids: list[UUID] = []

    def teardown(self) -> None:
        self.rivals.theirs.close()

    @invariant()
    def nothing_differs(self) -> None:
        self.rivals.compare()

    @property
    def now(self) -> datetime:
        return self.rivals.now

    def jobs(self, picks: list[int]) -> list[UUID]:
        """Ids of jobs that were enqueued, and one that never was."""
        known = [*self.ids, b.uid(404)]
        return [known[-1 - pick % len(known)] for pick in picks]

    def leases(self, picks: list[int]) -> list[Pair]:
        """Different leases, the latest first; some are gone."""
        pairs = self.rivals.pairs[::-1]
        return [pairs[index] for index in dict.fromkeys(pick % len(pairs) for pick in picks)]

    def take_up(self, job_ids: Iterable[UUID]) -> None:
        """Remember new jobs, as far as they were inserted."""
        self.ids += [job_id for job_id in job_ids if job_id in self.rivals.ours.tables.jobs]

    def endings(self, picks: list[int], kinds: list[str]) -> list[tuple[Pair, MakeOutcome]]:
        return [
            (pair, self.ending(kind)) for pair, kind in zip(self.leases(picks), kinds, strict=False)
        ]

    def ending(self, kind: str) -> MakeOutcome:
        at, later = self.now, self.now + b.SECOND
        if kind in set(Unroutable):
            return lambda job: b.unroutable(job, at=at, why=Unroutable(kind))
        makers: dict[str, MakeOutcome] = {
            "succeeded": lambda job: b.succeeded(job, at=at, output="[1]", tags='{"a":"2"}'),
            "failed": lambda job: b.failed(job, at=at, due_at=later, tags='{"c":"3"}', log="x"),
            "failed_for_good": lambda job: b.failed(job, at=at),
            "timed_out": lambda job: b.timed_out(job, at=at, due_at=later),
            "gave_up": lambda job: b.gave_up(job, at=at),
            "output_refused": lambda job: b.output_refused(job, at=at, output="[2]"),
            "cancelled": lambda job: b.cancelled(job, at=at),
            "asked_to": lambda job: b.cancelled(job, at=at, cause=Cause.OPERATOR),
            "snoozed": lambda job: b.snoozed(job, at=at, due_at=later),
            "released": lambda job: b.released(job, at=at),
            "undecodable": lambda job: b.undecodable(job, at=at),
        }
        return makers[kind]

    def request(self, pump: UUID, names: tuple[str, ...], limit: int) -> ClaimRequest:
        return b.claim_request(*names, pump_id=pump, limit=limit, retries=RETRIES)

    @rule(pump=pumps, names=queue_lists, limit=st.integers(1, 4))
    def claim(self, pump: UUID, names: tuple[str, ...], limit: int) -> None:
        self.claim_jobs(pump, names, limit)

    def claim_jobs(self, pump: UUID, names: tuple[str, ...], limit: int) -> None:
        self.rivals.claim(self.request(pump, names, limit))

    @precondition(lambda self: self.rivals.pairs)
    @rule(
        picks=choices, kinds=st.lists(ends, min_size=4, max_size=4), pump=pumps, names=queue_lists
    )
    def turn(self, picks: list[int], kinds: list[str], pump: UUID, names: tuple[str, ...]) -> None:
        self.rivals.turn(self.endings(picks, kinds), self.request(pump, names, 2))

    @rule(span=st.sampled_from(SPANS))
    def pass_time(self, span: timedelta) -> None:
        self.rivals.pass_time(span)

    @rule(picks=some)
    def cancel(self, picks: list[int]) -> None:
        ids = self.jobs(picks)
        self.rivals.both(lambda s: s.cancel(ids, actor=b.ACTOR, now=self.now), decided)

    @rule(limit=small_limits)
    def purge(self, limit: int) -> None:
        self.rivals.both(lambda store: store.purge(limit=limit, now=self.now), swept)


class Differential(RivalMachine):
    """Jobs, leases, pumps and operators: whatever does not come of schedules."""

    def new_job(self, options: dict[str, Any], siblings: list[UUID]) -> NewJob:
        values = dict(options)
        number = next(self.numbers)
        due_in, deadline_in = values.pop("due_in", timedelta(0)), values.pop("deadline_in", None)
        known = [*siblings, *self.ids[::-1], b.uid(404)]
        parents = [(known[n % len(known)], mode) for n, mode in values.pop("parents", ())]
        return b.new_job(
            10_000 - number if values.pop("early_id", False) else 10_000 + number,
            **values,
            due_at=None if due_in is None else self.now + due_in,
            deadline=None if deadline_in is None else self.now + deadline_in,
            parents=tuple(parents),
        )

    @initialize(batch=st.lists(new_jobs, min_size=2, max_size=6))
    def begin(self, batch: list[dict[str, Any]]) -> None:
        """There is something to do from the first step on."""
        self.enqueue_batch(batch)

    @rule(batch=st.lists(new_jobs, min_size=1, max_size=3))
    def enqueue(self, batch: list[dict[str, Any]]) -> None:
        self.enqueue_batch(batch)

    def enqueue_batch(self, batch: list[dict[str, Any]]) -> None:
        jobs: list[NewJob] = []
        for options in batch:
            jobs.append(self.new_job(options, [job.id for job in jobs]))
        self.rivals.enqueue(jobs)
        self.take_up(job.id for job in jobs)

    @rule(pump=pumps, names=queue_lists, limit=st.integers(1, 4))
    def claim_first(self, pump: UUID, names: tuple[str, ...], limit: int) -> None:
        """Claiming twice as often makes for more leases to do something with."""
        self.claim_jobs(pump, names, limit)

    @precondition(lambda self: self.rivals.pairs)
    @rule(picks=some, kinds=st.lists(ends, min_size=3, max_size=3))
    def report(self, picks: list[int], kinds: list[str]) -> None:
        self.rivals.report(self.endings(picks, kinds))

    @precondition(lambda self: self.rivals.pairs)
    @rule(pick=st.integers(0, 30), batch=st.lists(new_jobs, max_size=2))
    def commit(self, pick: int, batch: list[dict[str, Any]]) -> None:
        """An atomic body returns, having enqueued jobs of its own in its transaction."""
        (pair,) = self.leases([pick])
        jobs: list[NewJob] = []
        for options in batch:
            jobs.append(self.new_job(options, [job.id for job in jobs]))
        self.rivals.commit(pair, self.ending("succeeded"), jobs)
        self.take_up(job.id for job in jobs)

    @precondition(lambda self: self.rivals.pairs)
    @rule(pump=pumps, picks=choices, told=choices, health=st.sampled_from(PumpHealth))
    def heartbeat(self, pump: UUID, picks: list[int], told: list[int], health: PumpHealth) -> None:
        status = PumpStatus(health=health, executing=len(picks))
        beat = b.beat(pump_id=pump, status=status)
        self.rivals.heartbeat(beat, self.leases(picks), self.leases(told))

    @rule(pump=pumps, names=queue_lists, version=st.integers(1, 2))
    def register(self, pump: UUID, names: tuple[str, ...], version: int) -> None:
        info = b.pump_info(pump, queues=names, wire_names=(("shop.pack", version),))
        self.rivals.both(lambda store: store.register(info, now=self.now))

    @precondition(lambda self: self.rivals.pairs)
    @rule(pump=pumps, picks=choices)
    def recover(self, pump: UUID, picks: list[int]) -> None:
        self.rivals.recover(pump, self.leases(picks))

    @rule(dead=st.lists(pumps, max_size=2))
    def dispose(self, dead: list[UUID]) -> None:
        self.rivals.both(lambda store: store.dispose(pumps=dead, now=self.now), swept)

    @rule(limit=small_limits)
    def expire(self, limit: int) -> None:
        self.rivals.both(lambda store: store.expire_leases(limit=limit, now=self.now), swept)

    @rule()
    def settle(self) -> None:
        # How many entries of the queue had nothing left to do is nobody's business.
        self.rivals.both(lambda store: store.settle(limit=100, now=self.now), lambda a: a.full)

    @rule(picks=some)
    def requeue(self, picks: list[int]) -> None:
        ids = self.jobs(picks)
        self.rivals.both(lambda s: s.requeue(ids, actor=b.ACTOR, now=self.now), decided)

    @rule(picks=some)
    def run_now(self, picks: list[int]) -> None:
        ids = self.jobs(picks)
        self.rivals.both(lambda s: s.run_now(ids, actor=b.ACTOR, now=self.now), decided)

    @rule(which=st.integers(0, 5), queue=queues, key=limited, cap=caps, rate=rates)
    def cap(self, which: int, queue: str, key: str, cap: int | None, rate: Rate | None) -> None:
        """One rule for all limits, so that they do not crowd out the others."""
        audit: dict[str, Any] = {"actor": b.ACTOR, "now": self.now}
        acts: tuple[Callable[[Store], object], ...] = (
            lambda store: store.set_queue_limit(queue, cap, **audit),
            lambda store: store.set_limit(key, cap, **audit),
            lambda store: store.declare_limits({key: Cap(cap or 1), "other": Cap(2)}),
            lambda store: store.set_queue_rate(queue, rate, **audit),
            lambda store: store.set_rate(key, rate, **audit),
            lambda store: store.declare_limits({key: Cap(cap, rate)}),
        )
        self.rivals.both(acts[which])

    @rule(queue=queues, window=windows)
    def open(self, queue: str, window: str | None) -> None:
        audit: dict[str, Any] = {"actor": b.ACTOR, "now": self.now}
        self.rivals.both(lambda store: store.set_window(queue, window, **audit))

    @rule(queue=queues, cap=caps, rate=rates, window=windows)
    def declare(self, queue: str, cap: int | None, rate: Rate | None, window: str | None) -> None:
        """A pump starts whose settings say this of one queue and nothing of the other."""
        defaults = dict.fromkeys(("default", "mail"), NO_DEFAULTS)
        defaults[queue] = QueueDefaults(Cap(cap, rate), window)
        self.rivals.both(lambda store: store.declare_queues(defaults))

    @rule(which=st.integers(0, 3), queue=queues, span=maybe_spans, pump=pumps)
    def switch(self, which: int, queue: str, span: timedelta | None, pump: UUID) -> None:
        """What else operators and stopping pumps do."""
        until = None if span is None else self.now + span
        audit: dict[str, Any] = {"actor": b.ACTOR, "now": self.now}
        problem = "a bug" if queue == "mail" else ""
        acts: tuple[Callable[[Store], object], ...] = (
            lambda store: store.pause(queue, until=until, **audit),
            lambda store: store.resume(queue, **audit),
            lambda store: store.request_drain(pump, **audit),
            lambda store: store.retire(pump_id=pump, problem=problem, now=self.now),
        )
        self.rivals.both(acts[which])
