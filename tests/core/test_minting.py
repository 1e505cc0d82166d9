from datetime import timedelta
from uuid import UUID

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.bounds import MINT_BATCH, SCHEDULE_BATCH
from backwave_django.core.minting import LOAD
from backwave_django.core.schedule_answers import (
    MintAnswer,
    MintResult,
    MintRow,
    SchedulesAnswer,
)
from backwave_django.core.schedules import LoadedSchedule, Rule, decide
from tests.core.drivers import SECOND, SETTLE, T0, at, beaten, claimed, due, fresh, settled

KNOWN = {"shop.pack": 1}


def schedule(name="s", *, every=10.0, cursor=T0, **values):
    given = {
        "name": name,
        "rule": Rule(every_seconds=every),
        "wire_name": "shop.pack",
        "payload_version": 1,
        "catch_up": "skip",
        "cursor": cursor,
        "next_at": cursor + timedelta(seconds=every),
        "created_at": T0,
    }
    return LoadedSchedule(**{**given, **values})


def loaded(*schedules, full=False):
    return e.SchedulesLoaded(answer=SchedulesAnswer(schedules=schedules, full=full, clock=T0))


def minted(*rows):
    return e.Minted(answer=MintAnswer(rows=rows, clock=T0))


def resting(*schedules, **dials):
    """A driver after its first turn, which read ``schedules``; nothing is in flight."""
    driver = begun(**dials)
    driver.step(loaded(*schedules), now=T0)
    driver.step(settled(), now=T0)
    return driver


def begun(**dials):
    """A driver that polls rarely, and now reads schedules for the first time."""
    driver = fresh(**{"mints": KNOWN, "poll_interval": 30 * SECOND, **dials})
    driver.step(e.Ticked(), now=T0)
    assert driver.step(beaten(), now=T0)[-1] == LOAD
    driver.step(claimed(), now=T0)
    return driver


def looked(driver, *schedules, now):
    """What a driver says to schedules that it is about to look at."""
    assert driver.step(e.Ticked(), now=now) == (LOAD,)
    return driver.step(loaded(*schedules), now=now)


def recovered(driver, *, now):
    """What a driver says once it is in contact again after a fault."""
    driver.step(e.Ticked(), now=now)
    driver.step(beaten(), now=now)
    return driver.step(e.Recovered(answer=settled().answer), now=now)


def test_a_driver_leaves_schedules_alone_unless_told():
    driver = fresh()
    driver.step(e.Ticked(), now=T0)
    assert LOAD not in driver.step(beaten(), now=T0)
    driver.step(claimed(), now=T0)
    assert driver.step(settled(), now=T0) == ()


def test_schedules_are_looked_at_with_the_first_maintenance():
    assert c.LoadSchedules(limit=SCHEDULE_BATCH) == LOAD
    assert resting().wake_at == at(5)


def test_a_driver_wakes_for_the_next_tick():
    driver = resting(schedule(every=3.25), schedule("t", every=60.0))
    assert driver.wake_at == at(3.25)
    assert driver.step(e.Ticked(), now=at(3.25)) == (LOAD,)


def test_a_due_tick_is_minted_at_once():
    row = schedule(every=1.0)
    driver = resting(row)
    decision = decide(row, now=at(1))
    assert decision is not None
    assert looked(driver, row, now=at(1)) == (c.Mint(decisions=(decision,)),)


def test_a_mint_that_made_jobs_asks_for_a_poll_at_once():
    driver = resting(schedule(every=1.0))
    looked(driver, schedule(every=1.0), now=at(1))
    asked = driver.step(minted(MintRow("s", MintResult.MINTED, UUID(int=1))), now=at(1))
    assert [type(one) for one in asked] == [c.Claim]


def test_a_mint_that_made_nothing_asks_for_nothing():
    driver = resting(schedule(every=1.0))
    looked(driver, schedule(every=1.0), now=at(1))
    rows = (MintRow("s", MintResult.STALE), MintRow("t", MintResult.OVERLAPPED))
    assert driver.step(minted(*rows), now=at(1)) == ()


def test_the_tick_after_one_that_was_decided_about_wakes_the_driver():
    driver = resting(schedule(every=1.0))
    looked(driver, schedule(every=1.0), now=at(1))
    driver.step(minted(MintRow("s", MintResult.STALE)), now=at(1))
    assert driver.wake_at == at(2)


def test_a_broken_schedule_stops_no_other():
    good, bad = schedule(every=1.0), schedule("bad", rule=Rule(cron="61 * * * *"))
    driver = resting(good)
    (mint,) = looked(driver, bad, good, now=at(1))
    assert isinstance(mint, c.Mint)
    assert [(one.name, one.tick) for one in mint.decisions] == [("bad", None), ("s", at(1))]
    assert "the minute field" in mint.decisions[0].problem


def test_what_is_left_to_others_does_not_keep_the_driver_awake():
    strange = schedule(every=1.0, wire_name="other.job")
    driver = resting(strange)
    assert looked(driver, strange, now=at(1)) == ()
    assert due(driver.wake_at) == at(5)


def test_schedules_are_read_page_by_page():
    driver = begun()
    following = driver.step(loaded(schedule("a"), schedule("b"), full=True), now=T0)
    assert following == (c.LoadSchedules(limit=SCHEDULE_BATCH, after="b"),)
    driver.step(loaded(schedule("c", every=2.0)), now=T0)
    driver.step(settled(), now=T0)
    assert driver.wake_at == at(2)


def test_many_decisions_are_split_over_several_mints():
    driver = resting()
    rows = [schedule(f"{number:04}", every=1.0) for number in range(2 * MINT_BATCH + 1)]
    sizes = []
    commands = looked(driver, *rows, now=at(5))
    while commands and isinstance(commands[0], c.Mint):
        sizes.append(len(commands[0].decisions))
        commands = driver.step(minted(), now=at(5))
    assert sizes == [MINT_BATCH, MINT_BATCH, 1]


def test_after_a_fault_decisions_are_made_anew():
    driver = resting(schedule(every=1.0))
    (mint,) = looked(driver, schedule(every=1.0), now=at(1))
    driver.step(e.StoreFaulted(commands=(mint,), problem="gone"), now=at(1))
    assert recovered(driver, now=at(31))[-1] == LOAD


def test_a_look_that_got_no_answer_is_taken_again():
    driver = resting(schedule(every=1.0))
    driver.step(e.Ticked(), now=at(1))
    driver.step(e.StoreFaulted(commands=(LOAD,), problem="gone"), now=at(1))
    assert recovered(driver, now=at(31))[-1] == LOAD


def test_one_turn_carries_one_of_the_chores():
    driver = resting()
    assert driver.step(e.Ticked(), now=at(5)) == (LOAD,)
    assert driver.step(loaded(), now=at(5)) == (SETTLE,)


def test_a_schedule_without_a_next_tick_wakes_nobody():
    driver = resting(schedule(every=1.0))
    (mint,) = looked(driver, schedule(rule=Rule(), next_at=None), now=at(1))
    assert isinstance(mint, c.Mint)
    driver.step(minted(MintRow("s", MintResult.NOTED)), now=at(1))
    assert driver.wake_at == at(5)
