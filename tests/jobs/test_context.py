import json
import threading

import pytest
import svcs

from backwave_django.core.commands import CancelReason
from backwave_django.core.errors import Cancelled, InvalidOption, PayloadTooLarge
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.retries import Retry
from backwave_django.jobs.context import JobContext, Signals
from tests.builders import MINUTE, T0, uid


def leased_job(**values):
    known = {
        "lease_id": uid(2),
        "job_id": uid(1),
        "wire_name": "shop.pack",
        "queue": "default",
        "run": 1,
        "spent": 0,
        "payload": '{"args":[],"kwargs":{}}',
        "tags": "{}",
        "due_at": T0,
        "retry": Retry().encode(),
        "expires_at": T0 + MINUTE,
    }
    return LeasedJob(**{**dict.fromkeys(LeasedJob._fields), **known, **values})


def unheard(*words):
    """Progress that nobody watches."""


def context(*, signals=None, progress=None, **job):
    return JobContext(
        leased_job(**job),
        max_attempts=8,
        signals=signals or Signals(),
        services=lambda: svcs.Container(svcs.Registry()),
        progress=progress or unheard,
    )


def test_it_tells_what_the_claim_told():
    job = leased_job(run=5, spent=2)
    ctx = context(run=5, spent=2)
    assert (ctx.job_id, ctx.wire_name, ctx.queue) == (job.job_id, job.wire_name, job.queue)
    assert (ctx.due_at, ctx.deadline, ctx.scheduled_for) == (
        job.due_at,
        job.deadline,
        job.scheduled_for,
    )
    assert (ctx.attempt, ctx.max_attempts, ctx.lease_token) == (3, 8, 5)


def test_its_repr_shows_no_payload():
    assert "hunter2" not in repr(context(payload='{"args":[],"kwargs":{"password":"hunter2"}}'))


def test_signals_are_seen_at_once():
    signals = Signals()
    ctx = context(signals=signals)
    ctx.raise_if_cancelled()
    assert (ctx.stopping, ctx.cancelled) == (False, False)
    signals.stop()
    ctx.raise_if_cancelled()
    assert (ctx.stopping, ctx.cancelled) == (True, False)
    signals.cancel(CancelReason.DRAIN)
    assert ctx.cancelled
    with pytest.raises(Cancelled, match="asked to stop: drain"):
        ctx.raise_if_cancelled()


def test_the_first_reason_stays():
    signals = Signals()
    signals.cancel(CancelReason.TIMEOUT)
    signals.cancel(CancelReason.HALT)
    assert signals.cancel_reason is CancelReason.TIMEOUT


@pytest.mark.parametrize(
    "send", [Signals.stop, lambda signals: signals.cancel(CancelReason.OPERATOR)]
)
def test_a_waiting_body_is_woken(send):
    signals = Signals()
    answers: list[bool] = []
    started = threading.Event()

    def body():
        started.set()
        answers.append(signals.wait(60))

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    assert started.wait(30)
    send(signals)
    thread.join(30)
    assert answers == [True]


def test_waiting_ends_without_a_signal_and_at_once_with_one():
    signals = Signals()
    assert signals.wait(0) is False
    signals.stop()
    assert signals.wait(60) is True


def test_tags_are_those_of_the_job_and_those_that_were_added():
    ctx = context(tags=json.dumps({"tenant": "acme", "size": 1}))
    assert ctx.collected_tags() is None
    ctx.add_tags({"size": 2}, vip=True)
    ctx.add_tags(vip=False)
    assert ctx.tags == {"tenant": "acme", "size": 2, "vip": False}
    assert ctx.collected_tags() == {"size": 2, "vip": False}


def test_tags_over_the_cap_are_refused_and_none_is_added():
    ctx = context(tags=json.dumps({"x": "a" * 4_000}))
    with pytest.raises(PayloadTooLarge):
        ctx.add_tags(y="a" * 100)
    with pytest.raises(InvalidOption, match="tags"):
        ctx.add_tags(y=None)
    assert ctx.collected_tags() is None


def test_progress_is_handed_on():
    told: list[tuple[int, int | None, str]] = []
    ctx = context(progress=lambda *words: told.append(words))
    ctx.progress(1)
    ctx.progress(2, 3, "packing")
    assert told == [(1, None, ""), (2, 3, "packing")]


def test_tracking_yields_rows_and_counts_them():
    told: list[tuple[int, int | None, str]] = []
    ctx = context(progress=lambda *words: told.append(words))
    assert list(ctx.track("ab", message="rows")) == ["a", "b"]
    assert list(ctx.track(iter("c"))) == ["c"]
    assert list(ctx.track(iter("d"), total=9)) == ["d"]
    assert told == [(1, 2, "rows"), (2, 2, "rows"), (1, None, ""), (1, 9, "")]


def test_tracking_stops_when_asked_to():
    signals = Signals()
    ctx = context(signals=signals)
    seen = []

    def loop():
        for row in ctx.track([1, 2, 3]):
            seen.append(row)
            signals.cancel(CancelReason.OPERATOR)

    with pytest.raises(Cancelled):
        loop()
    assert seen == [1]


def test_the_container_is_opened_once_and_only_if_it_is_used():
    opened = []

    def open_services():
        opened.append(svcs.Container(svcs.Registry()))
        return opened[-1]

    ctx = JobContext(
        leased_job(),
        max_attempts=1,
        signals=Signals(),
        services=open_services,
        progress=unheard,
    )
    assert opened == []
    assert ctx.services is ctx.services
    assert len(opened) == 1
