"""Windows: a queue is served at its times, and says when it opens."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from backwave_django.core.contract import Store
from backwave_django.core.errors import InvalidOption
from backwave_django.core.memory import Snapshot
from backwave_django.core.queues import NO_DEFAULTS, QueueDefaults
from tests.builders import ACTOR, DAY, HOUR, MINUTE, T0, claim_request, new_job, succeeded
from tests.conformance.facts import numbers

Observe = Callable[[], Snapshot]

#: T0 is midnight in UTC, on a Sunday.
NIGHT = "20:00-06:00 Europe/Zurich"
OPENS = T0 + 19 * HOUR
CLOSES = T0 + 5 * HOUR


def window(store: Store, text: str | None, queue: str = "default") -> None:
    store.set_window(queue, text, actor=ACTOR, now=T0)


@pytest.mark.parametrize(
    ("at", "taken", "next_due"),
    [
        (T0, (1,), None),
        (CLOSES - MINUTE, (1,), None),
        (CLOSES, (), OPENS),
        (OPENS - timedelta(microseconds=1), (), OPENS),
        (OPENS, (1,), None),
        (T0 + DAY, (1,), None),
    ],
)
def test_closed_queue_yields_nothing_and_says_when_it_opens(
    store: Store, at: datetime, taken: tuple[int, ...], next_due: datetime | None
) -> None:
    window(store, NIGHT)
    store.enqueue([new_job(1)])
    answer = store.claim(claim_request(), now=at)
    assert (numbers(answer.jobs), answer.short, answer.next_due) == (taken, True, next_due)


def test_closed_queue_hides_no_other(store: Store) -> None:
    window(store, NIGHT)
    store.enqueue([new_job(1), new_job(2, queue="mail")])
    answer = store.claim(claim_request("default", "mail"), now=CLOSES)
    assert (numbers(answer.jobs), answer.next_due) == ((2,), OPENS)


def test_closed_queue_without_jobs_is_not_waited_for(store: Store) -> None:
    window(store, NIGHT)
    assert store.claim(claim_request(), now=CLOSES).next_due is None


def test_keyed_jobs_wait_for_the_window_too(store: Store) -> None:
    window(store, NIGHT)
    store.enqueue([new_job(1, limit_key="a")])
    assert store.claim(claim_request(), now=CLOSES).next_due == OPENS
    assert numbers(store.claim(claim_request(), now=OPENS).jobs) == (1,)


def test_running_jobs_finish_when_the_queue_closes(store: Store) -> None:
    window(store, NIGHT)
    store.enqueue([new_job(1), new_job(2)])
    (job,) = store.claim(claim_request(limit=1), now=CLOSES - MINUTE).jobs
    reported, claimed = store.turn([succeeded(job)], claim_request(), now=CLOSES)
    assert [row.verdict.value for row in reported.rows] == ["applied"]
    assert (claimed.jobs, claimed.next_due) == ((), OPENS)


def test_paused_queue_is_not_waited_for_because_of_its_window(store: Store) -> None:
    window(store, NIGHT)
    store.pause("default", until=None, actor=ACTOR, now=T0)
    store.enqueue([new_job(1)])
    assert store.claim(claim_request(), now=CLOSES).next_due is None


def test_several_windows_on_given_days(store: Store) -> None:
    window(store, "Mon-Fri 08:00-12:00; Mon-Fri 13:00-17:00; Sat 09:00-12:00 UTC")
    store.enqueue([new_job(number) for number in range(1, 9)])
    monday, saturday = T0 + DAY, T0 + 6 * DAY
    answers = [
        store.claim(claim_request(limit=1), now=now)
        for now in (T0, monday + 9 * HOUR, monday + 12 * HOUR, saturday + 10 * HOUR)
    ]
    assert [numbers(answer.jobs) for answer in answers] == [(), (1,), (), (2,)]
    assert answers[0].next_due == monday + 8 * HOUR
    assert answers[2].next_due == monday + 13 * HOUR
    closing = store.claim(claim_request(), now=saturday + 12 * HOUR)
    assert closing.next_due == monday + 7 * DAY + 8 * HOUR


def test_operators_window_goes_before_that_of_the_settings(store: Store, observe: Observe) -> None:
    store.declare_queues({"default": QueueDefaults(window=NIGHT), "mail": NO_DEFAULTS})
    store.enqueue([new_job(1), new_job(2)])
    assert store.claim(claim_request(), now=CLOSES).jobs == ()
    window(store, "always")
    assert len(store.claim(claim_request(limit=1), now=CLOSES).jobs) == 1
    window(store, None)
    assert store.claim(claim_request(), now=CLOSES).jobs == ()
    store.declare_queues({"default": NO_DEFAULTS})
    assert len(store.claim(claim_request(), now=CLOSES).jobs) == 1
    assert list(observe().queues) == ["default"]
    views = [(action.action, action.before, action.after) for action in observe().actions]
    assert views == [
        ("set_window", {"window": None}, {"window": "always"}),
        ("set_window", {"window": "always"}, {"window": None}),
    ]


def test_window_is_kept_in_one_spelling(store: Store, observe: Observe) -> None:
    window(store, " mon-wed,FRI 8:00-12:00 ;Sat 22:00-02:00  UTC")
    written = observe().queues["default"]["window"]
    assert written == "Mon,Tue,Wed,Fri 08:00-12:00; Sat 22:00-02:00 UTC"


def test_what_is_no_window_is_refused_and_changes_nothing(store: Store, observe: Observe) -> None:
    with pytest.raises(InvalidOption):
        window(store, "at night")
    with pytest.raises(InvalidOption):
        store.declare_queues(
            {"mail": QueueDefaults(window=NIGHT), "default": QueueDefaults(window="20:00-06:00")}
        )
    assert (observe().queues, observe().actions) == ({}, ())
