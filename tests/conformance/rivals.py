"""Two stores side by side: each verb goes to both, and their answers must be the same.

Lease ids are each store's own, so a lease is a pair here; everything else is compared as it is.
The clock of an answer and the cursor over limit keys are advice, and not compared.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

from backwave_django.core.contract import ClaimRequest, ScheduleAnswer, Store, StoreSettings
from backwave_django.core.errors import UsageError
from backwave_django.core.jobs import LeasedJob, NewJob
from backwave_django.core.leases import Beat, Progress
from backwave_django.core.memory import MemoryStore, Snapshot
from backwave_django.core.memory.rows import ActionRow
from backwave_django.core.outcomes import Outcome, Reported, Verdict
from backwave_django.core.schedules import Decision
from backwave_django.store.adapter import DatabaseStore
from backwave_django.store.executor import Executor
from tests.builders import T0, uid
from tests.conformance.observing import observe_database

MakeOutcome = Callable[[LeasedJob], Outcome]


class RolledBack(Exception):
    """The outcome of an atomic body was not applied."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One lease as the reference and as its rival know it."""

    ours: LeasedJob
    theirs: LeasedJob


class Rivals:
    """The reference and a database's store, with one clock between them."""

    def __init__(self, executor: Executor, settings: StoreSettings) -> None:
        leases = count(10**30)
        self.now = T0
        self._given: deque[UUID] = deque()
        self.ours = MemoryStore(
            clock=lambda: self.now,
            ids=lambda: self._given.popleft() if self._given else uid(next(leases)),
            settings=settings,
        )
        self.theirs = DatabaseStore(executor, settings, exact=True, fixed_clock=lambda: self.now)
        self.pairs: list[Pair] = []
        self.cursor = ""

    def compare(self) -> None:
        """Compare the whole visible state."""
        assert differences(observe_database(), self.ours.snapshot()) == {}

    def pass_time(self, span: timedelta) -> None:
        """Let the common clock go on."""
        self.now += span

    def both(self, act: Callable[[Store], Any], seen: Callable[[Any], object] = lambda a: a) -> Any:
        """Do one thing to both; compare what is ``seen`` of the answers, refusals included."""
        ours, theirs = attempt(act, self.ours), attempt(act, self.theirs)
        assert seen(theirs) == seen(ours)
        return ours

    def enqueue(self, jobs: Sequence[NewJob]) -> None:
        """Enqueue in both."""
        self.both(lambda store: store.enqueue(jobs))

    def claim(self, request: ClaimRequest) -> None:
        """Claim from both, and remember the leases as pairs."""
        asked = replace(request, key_cursor=self.cursor)
        ours = self.ours.claim(asked, now=self.now)
        theirs = self.theirs.claim(asked, now=self.now)
        self._take(ours, theirs)

    def _take(self, ours: Any, theirs: Any) -> None:
        assert [anonymous(job) for job in theirs.jobs] == [anonymous(job) for job in ours.jobs]
        assert (theirs.short, theirs.next_due) == (ours.short, ours.next_due)
        self.cursor = ours.key_cursor
        self.pairs += map(Pair, ours.jobs, theirs.jobs)

    def report(self, ends: Sequence[tuple[Pair, MakeOutcome]]) -> None:
        """Report to both."""
        ours = self.ours.report([make(pair.ours) for pair, make in ends], now=self.now)
        theirs = self.theirs.report([make(pair.theirs) for pair, make in ends], now=self.now)
        assert list(map(verdict, theirs.rows)) == list(map(verdict, ours.rows))

    def commit(self, pair: Pair, make: MakeOutcome, writes: Sequence[NewJob]) -> None:
        """End an atomic body that enqueued jobs: they come with its success, or not at all."""
        written, row = self._committed(pair, make, writes)
        if row.verdict is Verdict.APPLIED:
            assert attempt(lambda store: store.enqueue(writes), self.ours) == written
        ours = self.ours.report_inside(make(pair.ours), patience=None, now=self.now)
        assert verdict(row) == verdict(ours)
        job_id, run = pair.ours.job_id, pair.ours.run
        self.both(lambda store: store.is_recorded(job_id=job_id, run=run))

    def _committed(
        self, pair: Pair, make: MakeOutcome, writes: Sequence[NewJob]
    ) -> tuple[Any, Reported]:
        answers: list[Any] = []
        with suppress(RolledBack), self.theirs.executor.transaction():
            answers.append(attempt(lambda store: store.enqueue(writes), self.theirs))
            row = self.theirs.report_inside(make(pair.theirs), patience=None, now=self.now)
            answers.append(row)
            if row.verdict is not Verdict.APPLIED:
                raise RolledBack
        written, row = answers
        return written, row

    def turn(self, ends: Sequence[tuple[Pair, MakeOutcome]], request: ClaimRequest) -> None:
        """Report to both and claim from both."""
        asked = replace(request, key_cursor=self.cursor)
        ours = self.ours.turn([make(pair.ours) for pair, make in ends], asked, now=self.now)
        theirs = self.theirs.turn([make(pair.theirs) for pair, make in ends], asked, now=self.now)
        assert list(map(verdict, theirs[0].rows)) == list(map(verdict, ours[0].rows))
        self._take(ours[1], theirs[1])

    def heartbeat(self, beat: Beat, listed: Sequence[Pair], told: Sequence[Pair]) -> None:
        """Renew the ``listed`` leases in both; ``told`` are those with progress."""

        def of(ids: Callable[[Pair], UUID]) -> Beat:
            progress = [Progress(lease_id=ids(pair), done=pair.ours.run, total=9) for pair in told]
            return replace(beat, leases=tuple(map(ids, listed)), progress=tuple(progress))

        ours = self.ours.heartbeat(of(lambda pair: pair.ours.lease_id), now=self.now)
        theirs = self.theirs.heartbeat(of(lambda pair: pair.theirs.lease_id), now=self.now)
        for answer in (ours, theirs):
            assert len(answer.renewals) == len(listed)
        assert [row[1:] for row in theirs.renewals] == [row[1:] for row in ours.renewals]
        known = {pair.theirs.lease_id: pair.ours.lease_id for pair in self.pairs}
        assert {known[lease_id] for lease_id in theirs.unlisted} == set(ours.unlisted)
        news = [(answer.drain_requested, answer.registered) for answer in (ours, theirs)]
        assert news[0] == news[1]

    def recover(self, pump_id: UUID, held: Sequence[Pair]) -> None:
        """Recover in both."""
        ours = [pair.ours.lease_id for pair in held]
        theirs = [pair.theirs.lease_id for pair in held]
        expected = self.ours.recover(pump_id=pump_id, held=ours, now=self.now)
        answer = self.theirs.recover(pump_id=pump_id, held=theirs, now=self.now)
        assert (answer.count, answer.full) == (expected.count, expected.full)

    def mint(self, decisions: Sequence[Decision]) -> list[UUID]:
        """Mint in both; return the jobs that came of it, which have the ids that theirs drew."""
        theirs = self.theirs.mint(decisions, now=self.now)
        made = [row.job_id for row in theirs.rows if row.job_id is not None]
        with self._giving(made):
            ours = self.ours.mint(decisions, now=self.now)
        assert theirs.rows == ours.rows
        return made

    def operate_schedule(self, act: Callable[[Store], ScheduleAnswer]) -> list[UUID]:
        """Do one thing to a schedule in both; return the job that came of it, if any."""
        theirs = act(self.theirs)
        made = [] if theirs.job_id is None else [theirs.job_id]
        with self._giving(made):
            ours = act(self.ours)
        assert theirs == ours
        return made

    @contextmanager
    def _giving(self, ids: Sequence[UUID]) -> Iterator[None]:
        """Let the reference draw these ids, all of them."""
        self._given.extend(ids)
        yield
        assert not self._given


def attempt(act: Callable[[Store], Any], store: Store) -> Any:
    """What came of it: the answer, or the kind of refusal."""
    try:
        return act(store)
    except UsageError as refusal:
        return type(refusal)


def anonymous(job: LeasedJob) -> tuple[object, ...]:
    """A leased job without the id of its lease, its tags as a value."""
    return (job._replace(lease_id=uid(0), tags=""), json.loads(job.tags))


def verdict(row: Reported) -> tuple[object, ...]:
    """A verdict without the id of its lease."""
    return row[1:]


def swept(answer: Any) -> tuple[object, ...]:
    """What a sweep did, without the clock."""
    return (answer.count, answer.full)


def decided(answers: Any) -> list[tuple[object, ...]]:
    """What came of an operator action, without the sentence for a person."""
    return [(answer.job_id, answer.result, answer.state) for answer in answers]


def differences(theirs: Snapshot, ours: Snapshot) -> dict[str, object]:
    """What is not the same in two snapshots, by table and row: theirs, then ours."""
    found: dict[str, object] = {}
    for table in fields(Snapshot):
        left, right = (getattr(each, table.name) for each in (theirs, ours))
        if table.name == "actions":
            # Rows of one action have no order among themselves.
            left, right = sorted(left, key=in_order), sorted(right, key=in_order)
        if isinstance(left, Mapping):
            rows = {key: (left.get(key), right.get(key)) for key in {*left, *right}}
            found |= {f"{table.name} {key}": row for key, row in rows.items() if row[0] != row[1]}
        elif left != right:
            found[table.name] = (left, right)
    return found


def in_order(action: ActionRow) -> str:
    """A place for an action that does not depend on how a database orders keys."""
    return json.dumps(action, sort_keys=True, default=str)
