from typing import Any
from uuid import UUID

from backwave_django.core import commands as c
from backwave_django.core.upkeep import Contact, Upkeep
from tests.core.drivers import EXPIRE, SECOND, SETTLE, T0, at, config, due

PURGE = c.Purge(limit=1_000)
DISPOSE = c.Dispose(pumps=(UUID(int=9),))


def contact(**dials: Any) -> Contact:
    return Contact(config=config(**dials), now=T0)


def upkeep(**dials: Any) -> Upkeep:
    return Upkeep(config=config(**dials), now=T0)


def take_all(chores: Upkeep, *, may_expire: bool = True) -> list[c.StoreCommand]:
    taken: list[c.StoreCommand] = []
    while chores.pending():
        taken += chores.take(may_expire=may_expire)
    return taken


def test_a_fresh_pump_may_not_sweep():
    assert not contact().may_expire(now=at(3600))


def test_contact_without_a_heartbeat_is_not_enough_to_sweep():
    link = contact()
    for second in range(0, 61, 20):
        link.answered(now=at(second))
    assert not link.may_expire(now=at(60))


def test_a_heartbeat_and_an_interval_of_contact_are_enough_to_sweep():
    link = contact()
    link.answered(now=T0)
    link.beaten(clock=T0, now=T0)
    assert not link.may_expire(now=at(19.9))
    assert link.may_expire(now=at(20))


def test_a_fault_breaks_contact():
    link = contact()
    link.answered(now=T0)
    link.beaten(clock=T0, now=T0)
    link.faulted(now=at(30))
    link.answered(now=at(31))
    assert not link.may_expire(now=at(60))
    link.beaten(clock=T0, now=at(31))
    assert not link.may_expire(now=at(50))
    assert link.may_expire(now=at(51))


def test_silence_longer_than_a_lease_would_have_left_breaks_contact():
    link = contact()
    link.answered(now=T0)
    link.beaten(clock=T0, now=T0)
    link.answered(now=at(40))
    assert link.may_expire(now=at(40))
    link.answered(now=at(80.1))
    assert not link.may_expire(now=at(80.1))


def test_the_silence_of_a_pump_that_just_waits_for_its_heartbeat_breaks_nothing():
    link = contact(heartbeat_interval=50 * SECOND)
    link.answered(now=T0)
    link.beaten(clock=T0, now=T0)
    link.answered(now=at(55))
    assert link.may_expire(now=at(55))
    link.answered(now=at(120))
    assert not link.may_expire(now=at(120))


def test_a_fault_wants_a_heartbeat_and_a_recovery_after_the_backoff():
    link = contact()
    link.beaten(clock=T0, now=T0)
    link.faulted(now=at(5))
    assert (link.beat_at, link.recover, link.retry_at) == (at(5), True, at(6))
    assert link.waiting(now=at(5.9))
    assert not link.waiting(now=at(6))


def test_backoff_doubles_up_to_ten_seconds_or_half_a_heartbeat_interval():
    for poll, beat, waits in ((4, 30, [4, 8, 10, 10]), (30, 30, [10, 10]), (1, 6, [1, 2, 3, 3])):
        link = contact(poll_interval=poll * SECOND, heartbeat_interval=beat * SECOND)
        seen = []
        for _ in waits:
            link.faulted(now=T0)
            seen.append((due(link.retry_at) - T0).total_seconds())
        assert seen == waits


def test_an_answer_restores_the_backoff():
    link = contact()
    link.faulted(now=T0)
    link.faulted(now=T0)
    link.answered(now=T0)
    assert link.retry_at is None
    link.faulted(now=T0)
    assert link.retry_at == at(1)


def test_a_hint_brings_the_heartbeat_forward():
    link = contact()
    link.beaten(clock=T0, now=T0)
    link.hinted(now=at(3))
    assert link.beat_at == at(3)
    link.beating(now=T0)
    link.beaten(clock=at(4), now=at(4))
    assert link.beat_at == at(24)


def test_a_hint_during_a_heartbeat_wants_another():
    link = contact()
    link.beating(now=T0)
    link.hinted(now=at(1))
    link.beaten(clock=at(2), now=at(2))
    assert link.beat_at == at(2)


def test_a_clock_set_back_moves_what_is_set():
    link = contact()
    link.shift(-SECOND)
    assert (link.beat_at, link.retry_at) == (at(-1), None)
    link.faulted(now=at(-1))
    link.shift(-SECOND)
    assert (link.beat_at, link.retry_at) == (at(-2), at(-1))


def test_a_clock_set_back_keeps_the_length_of_contact():
    link = contact()
    link.answered(now=T0)
    link.beaten(clock=T0, now=T0)
    link.shift(at(-3600) - T0)
    assert not link.may_expire(now=at(-3581))
    assert link.may_expire(now=at(-3580))


def test_sweeps_are_due_at_the_start_and_at_every_interval():
    chores = upkeep()
    chores.tick(now=T0)
    assert take_all(chores) == [EXPIRE, SETTLE]
    chores.tick(now=at(4.9))
    assert not chores.pending()
    chores.tick(now=at(5))
    assert take_all(chores) == [EXPIRE, SETTLE]


def test_lapsed_leases_wait_for_the_next_interval_when_it_is_too_early():
    chores = upkeep()
    chores.tick(now=T0)
    assert chores.take(may_expire=False) == (SETTLE,)
    assert chores.take(may_expire=True) == ()


def test_nothing_is_taken_when_only_lapsed_leases_are_due():
    chores = upkeep()
    chores.again(EXPIRE)
    assert chores.take(may_expire=False) == ()


def test_purges_are_due_once_a_minute():
    chores = upkeep(maintenance_interval=3600 * SECOND)
    chores.tick(now=T0)
    take_all(chores)
    assert chores.look_at == at(60)
    chores.tick(now=at(60))
    assert take_all(chores) == [PURGE]
    assert chores.look_at == at(120)


def test_a_group_that_does_not_purge_never_does():
    chores = upkeep(purge=False, maintenance_interval=3600 * SECOND)
    chores.tick(now=T0)
    take_all(chores)
    assert chores.look_at == at(3600)
    chores.tick(now=at(60))
    assert not chores.pending()


def test_a_chore_is_lined_up_once():
    chores = upkeep()
    chores.again(SETTLE)
    chores.again(SETTLE)
    assert take_all(chores) == [SETTLE]


def test_disposals_come_first():
    chores = upkeep()
    chores.tick(now=T0)
    chores.first(DISPOSE)
    assert take_all(chores, may_expire=False) == [DISPOSE, SETTLE]


def test_a_clock_set_back_moves_the_chores():
    chores = upkeep()
    chores.tick(now=T0)
    chores.shift(-SECOND)
    assert chores.look_at == at(4)


def test_a_clock_that_was_set_forward_wants_another_heartbeat_once():
    link = contact()
    link.beating(now=at(20))
    link.beaten(clock=at(140), now=at(21))
    assert link.beat_at == at(21)
    link.beating(now=at(21))
    link.beaten(clock=at(140), now=at(22))  # nobody follows that clock
    assert link.beat_at == at(42)


def test_an_answer_that_was_waited_for_wants_no_other_heartbeat():
    link = contact()
    link.beating(now=at(20))
    link.beaten(clock=at(30), now=at(30))
    assert link.beat_at == at(50)
