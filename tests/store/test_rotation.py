"""More limit keys than one claim looks at: all get their turn, and nobody spins meanwhile."""

from dataclasses import replace
from datetime import datetime

import pytest

from backwave_django.core.bounds import MAX_KEYS_PER_CLAIM
from backwave_django.core.contract import ClaimAnswer
from backwave_django.core.limits import Cap
from backwave_django.core.rates import Rate
from backwave_django.store import PumpStore, default_store
from tests.builders import ACTOR, DAY, HOUR, MINUTE, T0, claim_request, new_job

KEYS = 2 * MAX_KEYS_PER_CLAIM + 88
#: Claims that it takes to look at all of them once.
ROUND = 3


def key(number: int) -> str:
    return f"tenant:{number:04}"


def fill(due_at: datetime = T0, **options: object) -> None:
    default_store().enqueue(
        [
            new_job(number, limit_key=key(number), due_at=due_at, **options)
            for number in range(1, KEYS + 1)
        ]
    )


def claims(
    store: PumpStore, count: int, *, cursor: str = "", now: datetime = T0
) -> list[ClaimAnswer]:
    """Claim as a pump does: each time from where the last claim stopped looking."""
    answers: list[ClaimAnswer] = []
    request = claim_request(limit=10)
    for _ in range(count):
        answers.append(store.claim(replace(request, key_cursor=cursor), now=now))
        cursor = answers[-1].key_cursor
    return answers


def seen(answers: list[ClaimAnswer]) -> list[tuple[int, bool, datetime | None]]:
    return [(len(answer.jobs), answer.short, answer.next_due) for answer in answers]


def test_job_behind_many_keys_that_are_not_due_is_found_in_one_round(store: PumpStore) -> None:
    fill(T0 + DAY)
    default_store().enqueue([new_job(KEYS + 1, limit_key=key(KEYS + 1))])
    answers = claims(store, ROUND)
    assert [job.limit_key for answer in answers for job in answer.jobs] == [key(KEYS + 1)]


def test_keys_take_turns_however_many_hints_come(store: PumpStore) -> None:
    jobs = enumerate(["a", "a", "a", "b", "c"], start=1)
    default_store().enqueue([new_job(number, limit_key=name) for number, name in jobs])
    request, served = claim_request(limit=1, hinted=(("default", 0),)), []
    for _ in range(4):
        answer = store.claim(request, now=T0)
        request = replace(request, key_cursor=answer.key_cursor)
        served += [job.limit_key for job in answer.jobs]
    assert served == ["a", "b", "c", "a"]


def test_claim_that_a_hint_cuts_short_goes_on_behind_the_keys_it_looked_at(
    store: PumpStore,
) -> None:
    fill(T0 + DAY)
    default_store().enqueue([new_job(KEYS + 1, limit_key=key(7))])
    answer = store.claim(claim_request(limit=10, hinted=(("default", 0),)), now=T0)
    assert [job.limit_key for job in answer.jobs] == [key(7)]
    assert answer.key_cursor == key(MAX_KEYS_PER_CLAIM)


def test_round_that_found_nothing_ends_with_the_first_due_time_of_all_keys(
    store: PumpStore,
) -> None:
    fill(T0 + DAY)
    default_store().enqueue([new_job(KEYS + 1, limit_key=key(300), due_at=T0 + HOUR)])
    looking, over = (0, False, T0), (0, True, T0 + HOUR)
    assert seen(claims(store, 2 * ROUND)) == [looking, looking, over] * 2


def test_round_under_rates_ends_with_the_first_token(store: PumpStore) -> None:
    store.set_rate("tenant:*", Rate.parse("1/minute"), actor=ACTOR, now=T0)
    fill()
    fill_again = [new_job(KEYS + n, limit_key=key(n)) for n in range(1, KEYS + 1)]
    default_store().enqueue(fill_again)
    answers = claims(store, 100)
    assert sum(len(answer.jobs) for answer in answers) == KEYS
    resting = [answer for answer in answers if answer.short]
    assert {(answer.jobs, answer.next_due) for answer in resting} == {((), T0 + MINUTE)}
    again = claims(store, 100, cursor=answers[-1].key_cursor, now=T0 + MINUTE)
    assert sum(len(answer.jobs) for answer in again) == KEYS


def test_saturated_caps_end_a_round_with_now_and_let_the_pump_rest(store: PumpStore) -> None:
    store.declare_limits({key(number): Cap(0) for number in range(1, KEYS + 1)})
    fill()
    looking, over = (0, False, T0), (0, True, T0)
    assert seen(claims(store, ROUND)) == [looking, looking, over]


@pytest.mark.parametrize("priority", [0, 5])
def test_all_keys_get_their_turn_whatever_their_priority(store: PumpStore, priority: int) -> None:
    fill()
    default_store().enqueue(
        [new_job(KEYS + n, limit_key=key(n), priority=priority) for n in range(1, 40)]
    )
    taken = {job.job_id for answer in claims(store, 80) for job in answer.jobs}
    assert len(taken) == KEYS + 39
