"""A driver and the reference store over weeks of virtual time: every tick on its second."""

from datetime import UTC, datetime, timedelta
from itertools import count, takewhile
from uuid import UUID

import pytest

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.cron import Cron
from backwave_django.core.dials import DriverConfig
from backwave_django.core.driver import Driver
from backwave_django.core.leases import Beat, PumpInfo
from backwave_django.core.memory import MemoryStore
from backwave_django.core.schedule_answers import DeclareMode
from backwave_django.core.schedules import Rule, ScheduleSpec

PUMP = UUID(int=7)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class World:
    """One pump that runs no job, its store, and a clock that jumps from wake to wake."""

    def __init__(self, start: datetime, *specs: ScheduleSpec) -> None:
        self.now = start
        numbers = count(1_000)
        self.store = MemoryStore(clock=lambda: self.now, ids=lambda: UUID(int=next(numbers)))
        config = DriverConfig(
            pump_id=PUMP,
            queues=("elsewhere",),
            poll_interval=DAY,
            maintenance_interval=DAY,
            lease_duration=3 * DAY,
            heartbeat_interval=DAY,
            mints={"shop.pack": 1},
            purge=False,
        )
        self.store.declare_schedules(
            specs, owner="shop", release=None, mode=DeclareMode.CREATE, now=start
        )
        self.driver = Driver(config, now=start)
        self.minted_at: dict[tuple[str, datetime], datetime] = {}
        self.store.register(_info(start), now=start)

    def run_until(self, end: datetime) -> None:
        self.tell(e.Ticked())
        while (wake_at := self.driver.wake_at) is not None and wake_at <= end:
            self.now = max(self.now, wake_at)
            self.tell(e.Ticked())

    def tell(self, event: e.Event) -> None:
        for command in self.driver.step(event, now=self.now):
            self.tell(self.answer(command))

    def answer(self, command: c.Command) -> e.Event:
        store, now = self.store, self.now
        match command:
            case c.Claim(request=request):
                return e.Claimed(answer=store.claim(request, now=now))
            case c.Heartbeat(leases=leases):
                beat = Beat(pump_id=PUMP, leases=leases, lease_duration=3 * DAY)
                return e.HeartbeatReturned(answer=store.heartbeat(beat, now=now))
            case c.ExpireLeases(limit=limit):
                return e.Expired(answer=store.expire_leases(limit=limit, now=now))
            case c.Settle(limit=limit):
                return e.Settled(answer=store.settle(limit=limit, now=now))
            case c.LoadSchedules(after=after, limit=limit):
                return e.SchedulesLoaded(answer=store.load_schedules(after=after, limit=limit))
            case _:
                assert isinstance(command, c.Mint)
                return self.mint(command)

    def mint(self, command: c.Mint) -> e.Minted:
        answer = self.store.mint(command.decisions, now=self.now)
        for decision, row in zip(command.decisions, answer.rows, strict=True):
            if row.job_id is not None and decision.tick is not None:
                key = (row.name, decision.tick)
                assert key not in self.minted_at, "tick-minted-once"
                self.minted_at[key] = self.now
        return e.Minted(answer=answer)

    def ticks(self, name: str) -> list[datetime]:
        return [tick for (schedule, tick) in self.minted_at if schedule == name]


def _info(now: datetime) -> PumpInfo:
    return PumpInfo(
        id=PUMP,
        group="g",
        node="n",
        hostname="h",
        pid=1,
        boot_id="b",
        pid_namespace="p",
        version="1",
        queues=("elsewhere",),
        pool_size=20,
        lease_duration=3 * DAY,
        wire_names=(("shop.pack", 1),),
        started_at=now,
    )


def spec(name: str, rule: Rule) -> ScheduleSpec:
    return ScheduleSpec(
        name=name, rule=rule, wire_name="shop.pack", queue="default", payload='{"args":[]}'
    )


@pytest.mark.parametrize(
    "start", [datetime(2027, 3, 10, tzinfo=UTC), datetime(2027, 10, 1, tzinfo=UTC)]
)
def test_schedules_of_five_zones_tick_on_the_second(start: datetime) -> None:
    zones = (
        "Europe/Berlin",
        "America/New_York",
        "America/Santiago",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
    )
    end = start + 40 * DAY
    rules = {zone: Cron("30 */6 * * *", zone) for zone in zones}
    fixed = {zone: Cron("15 2 * * *", zone) for zone in zones}
    named = [(f"{zone} *", rules[zone]) for zone in zones]
    named += [(zone, fixed[zone]) for zone in zones]
    world = World(
        start,
        *(spec(name, Rule(cron=rule.expression, timezone=rule.timezone)) for name, rule in named),
    )
    world.run_until(end)
    for name, rule in named:
        expected = list(takewhile(lambda tick: tick <= end, rule.ticks_after(start)))
        assert world.ticks(name) == expected
    assert {at - tick for (_, tick), at in world.minted_at.items()} == {timedelta(0)}
    assert {row.skipped for row in world.store.tables.schedules.values()} == {0}


def test_intervals_below_a_minute_tick_on_the_second() -> None:
    start = datetime(2027, 1, 1, tzinfo=UTC)
    world = World(
        start,
        spec("5 s", Rule(every_seconds=5.0)),
        spec("7.5 s", Rule(every_seconds=7.5)),
    )
    world.run_until(start + HOUR)
    assert world.ticks("5 s") == [start + n * 5 * SECOND for n in range(1, 721)]
    assert world.ticks("7.5 s") == [start + n * 7.5 * SECOND for n in range(1, 481)]
    assert {at - tick for (_, tick), at in world.minted_at.items()} == {timedelta(0)}


def test_f088_a_clock_that_is_set_back_for_a_while_doubles_nothing() -> None:
    start = datetime(2027, 1, 1, tzinfo=UTC)
    world = World(start, spec("m", Rule(cron="* * * * *")), spec("s", Rule(every_seconds=10.0)))
    world.run_until(start + 2 * HOUR)
    world.now -= HOUR
    world.run_until(start + HOUR + 300 * SECOND)
    world.now = start + 2 * HOUR + 300 * SECOND
    world.run_until(start + 3 * HOUR)
    # Nothing was there in the five minutes that the clock jumped over: the last tick of them is
    # minted, the others are counted.
    minutes = world.ticks("m")
    assert minutes == sorted(set(minutes))
    assert len(minutes) + world.store.tables.schedules["m"].skipped == 180
    assert minutes[-55:] == [start + 2 * HOUR + (5 + n) * 60 * SECOND for n in range(1, 56)]
