"""Several drivers, one store, clocks that differ, answers that get lost, people who interfere."""

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random  # noqa: TID251 - seeded by the test
from uuid import UUID

import pytest

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.contract import Actor
from backwave_django.core.dials import DriverConfig
from backwave_django.core.driver import Driver
from backwave_django.core.leases import Beat, PumpInfo
from backwave_django.core.memory import MemoryStore
from backwave_django.core.schedule_answers import DeclareMode, MintResult
from backwave_django.core.schedules import Rule, ScheduleSpec
from backwave_django.core.states import TERMINAL

START = datetime(2027, 10, 31, 0, 30, tzinfo=UTC)  # clocks are set back in Berlin at one
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=60)
PEOPLE = Actor(name="people")
LASTS = 900

SPECS = (
    ScheduleSpec(
        name="often", rule=Rule(every_seconds=3.0), wire_name="a", queue="q", payload="{}"
    ),
    ScheduleSpec(
        name="alone",
        rule=Rule(every_seconds=5.0),
        wire_name="a",
        queue="q",
        payload="{}",
        no_overlap=True,
    ),
    ScheduleSpec(
        name="berlin",
        rule=Rule(cron="*/5 * * * *", timezone="Europe/Berlin"),
        wire_name="a",
        queue="q",
        payload="{}",
        catch_up="coalesce",
    ),
    ScheduleSpec(name="bad", rule=Rule(cron="61 * * * *"), wire_name="a", queue="q", payload="{}"),
)


class Storm:
    """Events of all pumps in one random order. ``random`` decides everything that may differ."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - the seed is the test's
        self.now = START
        numbers = count(1_000)
        self.store = MemoryStore(clock=lambda: self.now, ids=lambda: UUID(int=next(numbers)))
        self.store.declare_schedules(
            SPECS, owner="shop", release=None, mode=DeclareMode.CREATE, now=START
        )
        self.pumps = [Pump(self, number) for number in range(3)]
        self.minted: set[tuple[str, datetime]] = set()

    def run(self) -> None:
        while self.now < START + LASTS * SECOND:
            self.now += self.random.choice((0.0, 0.01, 0.2, 1.0, 1.0, 4.0)) * SECOND
            self.interfere()
            self.random.choice(self.pumps).go_on()

    def interfere(self) -> None:
        name = self.random.choice(("often", "alone", "berlin"))
        what = self.random.randrange(400)
        if what == 0:
            self.store.pause_schedule(name, actor=PEOPLE, now=self.now)
        elif what < 40:
            self.store.resume_schedule(name, actor=PEOPLE, now=self.now)
        elif what == 40:
            self.check_overlap("alone", lambda: self.store.trigger_schedule(
                "alone", actor=PEOPLE, now=self.now
            ))  # fmt: skip

    def mint(self, command: c.Mint, *, now: datetime) -> e.Minted:
        alone_is_busy = self.is_busy("alone")
        answer = self.store.mint(command.decisions, now=now)
        for decision, row in zip(command.decisions, answer.rows, strict=True):
            if row.result is MintResult.MINTED:
                assert decision.tick is not None
                assert (row.name, decision.tick) not in self.minted, "tick-minted-once"
                assert not (row.name == "alone" and alone_is_busy), "no-overlap-at-mint"
                assert self.store.tables.schedules[row.name].enabled
                self.minted.add((row.name, decision.tick))
        return e.Minted(answer=answer)

    def check_overlap(self, name: str, act: Callable[[], object]) -> None:
        busy, jobs = self.is_busy(name), len(self.store.tables.jobs)
        act()
        assert not busy or len(self.store.tables.jobs) == jobs, "no-overlap-at-mint"

    def is_busy(self, name: str) -> bool:
        jobs = self.store.tables.jobs.values()
        return any(job.new.schedule == name and job.state not in TERMINAL for job in jobs)


class Pump:
    """One driver whose store commands wait in a queue until the storm goes on with it."""

    def __init__(self, storm: Storm, number: int) -> None:
        self.storm = storm
        self.id = UUID(int=number + 1)
        self.offset = storm.random.uniform(-1.5, 1.5) * SECOND
        self.driver = Driver(
            DriverConfig(
                pump_id=self.id,
                queues=("q",),
                maintenance_interval=5 * SECOND,
                lease_duration=LEASE,
                heartbeat_interval=LEASE / 3,
                mints={"a": 1},
            ),
            now=self.clock(),
        )
        self.pending: deque[c.Command] = deque()
        self.bodies: list[UUID] = []
        storm.store.register(_info(self.id, now=storm.now), now=storm.now)

    def clock(self) -> datetime:
        return self.storm.now + self.offset

    def go_on(self) -> None:
        """Carry out one command, end one body, or look at the clock."""
        random = self.storm.random
        if self.pending:
            self.obey(self.pending.popleft())
        elif self.bodies and random.random() < 0.5:
            lease = self.bodies.pop(random.randrange(len(self.bodies)))
            self.tell(e.AttemptSucceeded(lease, self.clock(), self.clock()))
        else:
            self.tell(e.InboxEmpty())

    def tell(self, event: e.Event) -> None:
        self.pending.extend(self.driver.step(event, now=self.clock()))

    def obey(self, command: c.Command) -> None:
        if isinstance(command, c.Execute):
            self.bodies += [job.lease_id for job in command.jobs]
            return
        fate = self.storm.random.random()
        if fate < 0.03:
            self.fault(command)
            return
        event = self.answered(command)
        if fate < 0.05 and isinstance(command, c.LoadSchedules | c.Mint):
            self.fault(command)  # it was done, and nobody was told
        else:
            self.tell(event)

    def fault(self, command: c.Command) -> None:
        rest = tuple(one for one in self.pending if not isinstance(one, c.Execute))
        self.pending = deque(one for one in self.pending if isinstance(one, c.Execute))
        self.tell(e.StoreFaulted(commands=(command, *rest), problem="lost"))

    def answered(self, command: c.Command) -> e.Event:
        store, now = self.storm.store, self.clock()
        match command:
            case c.Claim(request=request):
                return e.Claimed(answer=store.claim(request, now=now))
            case c.Report(outcomes=outcomes):
                return e.ReportReturned(answer=store.report(outcomes, now=now))
            case c.Heartbeat(leases=leases):
                beat = Beat(pump_id=self.id, leases=leases, lease_duration=LEASE)
                return e.HeartbeatReturned(answer=store.heartbeat(beat, now=now))
            case c.LoadSchedules(after=after, limit=limit):
                return e.SchedulesLoaded(answer=store.load_schedules(after=after, limit=limit))
            case c.Mint():
                return self.storm.mint(command, now=now)
            case _:
                return self.swept(command)

    def swept(self, command: c.Command) -> e.Event:
        store, now = self.storm.store, self.clock()
        match command:
            case c.Recover(held=held):
                return e.Recovered(answer=store.recover(pump_id=self.id, held=held, now=now))
            case c.ExpireLeases(limit=limit):
                return e.Expired(answer=store.expire_leases(limit=limit, now=now))
            case c.Settle(limit=limit):
                return e.Settled(answer=store.settle(limit=limit, now=now))
            case _:
                assert isinstance(command, c.Purge)
                return e.Purged(answer=store.purge(limit=command.limit, now=now))


def _info(pump_id: UUID, *, now: datetime) -> PumpInfo:
    return PumpInfo(
        id=pump_id,
        group="g",
        node="n",
        hostname="h",
        pid=1,
        boot_id="b",
        pid_namespace="p",
        version="1",
        queues=("q",),
        pool_size=20,
        lease_duration=LEASE,
        wire_names=(("a", 1),),
        started_at=now,
    )


@pytest.mark.parametrize("seed", range(25))
def test_ticks_are_decided_about_once_whatever_happens(seed: int) -> None:
    storm = Storm(seed)
    storm.run()
    rows = storm.store.tables.schedules
    for name in ("often", "alone", "berlin"):
        timetable = rows[name].spec.rule.timetable(anchor=START)
        ticks = sorted(tick for schedule, tick in storm.minted if schedule == name)
        assert ticks or rows[name].skipped, f"{name} never ticked"
        assert all(timetable.next_after(tick - SECOND) == tick for tick in ticks)
        due = timetable.count(since=START, before=storm.now + 2 * SECOND, most=10_000)
        # Pauses swallow ticks that nobody counts; apart from them each is minted or counted.
        assert len(ticks) + rows[name].skipped <= due
        assert rows[name].problem == ""
    assert "the minute field" in rows["bad"].problem
    assert rows["alone"].last_skip_reason in {None, "overlap", "missed"}
