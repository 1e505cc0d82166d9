"""Windows, rates and patterns as a person sees them: what holds, who says so, and until when."""

import pytest

from backwave_django import monitor
from backwave_django.models import Queue
from backwave_django.monitor.horizon import next_instant
from tests.factories import (
    MINUTE,
    SECOND,
    T0,
    JobFactory,
    LeaseFactory,
    LimitFactory,
    PumpFactory,
    QueueFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def live_pump():
    PumpFactory.create()


def reasons(job):
    return [(reason.code, reason.text) for reason in monitor.why(job, clock=T0)]


def soon_closed():
    """A window that is shut at T0 and opens two hours later."""
    opens = T0 + 120 * MINUTE
    return f"{opens:%H:%M}-{opens + 60 * MINUTE:%H:%M} UTC"


def test_job_of_a_closed_queue_says_when_it_opens():
    window = soon_closed()
    QueueFactory.create(name="default", window="always", window_default=window)
    assert reasons(JobFactory.create())[0][0] == "claimable"
    QueueFactory.create(name="mail", window_default=window)
    PumpFactory.create(queues=["mail"])
    ((code, text),) = reasons(JobFactory.create(queue="mail"))
    assert code == "window"
    assert text.startswith(f"The queue mail is outside its window, {window}. It opens at ")
    assert "in 2 h" in text
    assert text.endswith(" The settings say so.")


def test_window_in_a_zone_that_this_machine_does_not_know_blocks_nothing_here():
    QueueFactory.create(name="default", window="00:00-00:01 Nowhere/Else")
    assert reasons(JobFactory.create())[0][0] == "claimable"
    view = monitor.queue_view("default", clock=T0)
    assert (view.window, view.opens_at) == ("00:00-00:01 Nowhere/Else", None)


def test_job_under_a_used_up_rate_says_when_the_next_token_comes():
    QueueFactory.create(name="default", rate="2/minute", rate_full_at=T0 + 50 * SECOND)
    ((code, text),) = reasons(JobFactory.create())
    assert code == "rate"
    assert text.startswith("The rate of the queue default is used up: 2/minute. The next token")
    assert "in 20 s" in text
    view = monitor.queue_view("default", clock=T0)
    assert view.next_token == T0 + 20 * SECOND
    assert monitor.queue_view("default", clock=T0 + 20 * SECOND).next_token is None


def test_limit_and_rate_of_a_queue_say_whether_settings_or_an_operator_set_them():
    QueueFactory.create(
        name="default", limit=1, limit_default=9, rate_default="1/minute", rate_full_at=T0 + MINUTE
    )
    holder = LeaseFactory.create().job_id
    job = JobFactory.create()
    limit, (code, text) = reasons(job)
    full = f"The queue's limit is full: 1 of 1 jobs run. Held by {holder}."
    assert limit == ("limit", f"{full} An operator says so.")
    assert code == "rate"
    assert text.startswith("The rate of the queue default is used up: 1/minute.")
    assert text.endswith(" The settings say so.")
    Queue.objects.update(limit=None, limit_default=1, rate="2/minute")
    limit, (_, text) = reasons(job)
    assert limit == ("limit", f"{full} The settings say so.")
    assert text.startswith("The rate of the queue default is used up: 2/minute.")
    assert text.endswith(" An operator says so.")


def test_view_of_a_queue_has_what_holds_and_who_set_it():
    QueueFactory.create(
        name="a", limit=0, limit_default=9, rate_default="2/minute", rate_full_at=T0 + MINUTE
    )
    QueueFactory.create(name="b", limit_default=4, rate="9/hour", window_default="always")
    shown = {
        name: ((view := monitor.queue_view(name, clock=T0)).cap.number, str(view.cap.rate))
        for name in ("a", "b", "c")
    }
    assert shown == {"a": (0, "2/minute"), "b": (4, "9/hour"), "c": (None, "None")}
    sources = {name: monitor.queue_view(name, clock=T0).sources for name in ("a", "b", "c")}
    assert sources == {
        "a": {"limit": "operator", "rate": "settings"},
        "b": {"limit": "settings", "rate": "operator", "window": "settings"},
        "c": {},
    }
    assert monitor.queue_view("a", clock=T0).next_token == T0 + MINUTE / 2


def test_job_under_a_pattern_names_it_and_who_holds_the_limit():
    LimitFactory.create(key="tenant:*", limit=1, rate="1/minute", source="pattern")
    LimitFactory.create(key="tenant:a", limit=9, source="code", rate_full_at=T0 + MINUTE)
    holder = LeaseFactory.create(limit_key="tenant:a").job
    job = JobFactory.create(limit_key="tenant:a")
    pattern = " The pattern tenant:* says so."
    limit, rate = reasons(job)
    assert limit == (
        "limit",
        f"The limit tenant:a is full: 1 of 1 jobs run. Held by {holder.pk}.{pattern}",
    )
    assert rate[0] == "rate"
    assert rate[1].startswith("The rate of the limit tenant:a is used up: 1/minute.")
    assert rate[1].endswith(pattern)
    assert reasons(JobFactory.create(limit_key="other"))[0][0] == "claimable"


def test_keys_are_seen_with_what_holds_for_them():
    LimitFactory.create(key="a", limit=3, rate="1/minute", rate_full_at=T0 + MINUTE)
    LimitFactory.create(key="b*", limit=1, rate=None, source="pattern")
    LeaseFactory.create(limit_key="a")
    views = monitor.key_views(["a", "b1", "c"], clock=T0)
    shown = {key: (str(view.cap.rate), *view[1:]) for key, view in views.items()}
    assert shown == {
        "a": ("1/minute", "a", 1, T0 + MINUTE),
        "b1": ("None", "b*", 0, None),
        "c": ("None", "c", 0, None),
    }


def test_next_instant_is_an_opening_or_a_token_only_where_a_job_waits_for_it():
    QueueFactory.create(name="mail", window=soon_closed())
    QueueFactory.create(name="slow", rate_default="1/minute", rate_full_at=T0 + 2 * MINUTE)
    LimitFactory.create(key="a", limit=None, rate="1/second", rate_full_at=T0 + SECOND)
    instants = []
    for options in ({"queue": "mail"}, {"queue": "slow"}, {"limit_key": "a"}, {"limit_key": "b"}):
        instants.append(next_instant(after=T0, using="default"))
        JobFactory.create(**options)
    instants.append(next_instant(after=T0, using="default"))
    clamped = T0 + MINUTE + SECOND
    assert instants == [None, T0 + 120 * MINUTE, clamped, T0 + SECOND, T0 + SECOND]
