"""A job as its caller sees it."""

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

import backwave_django as backwave
from backwave_django.core.contract import ActionResult
from backwave_django.core.errors import InsideTransaction, InvalidOption, JobGone, WaitTimeout
from backwave_django.core.states import Cause, JobState
from backwave_django.models import Job, OperatorAction
from backwave_django.monitor.clock import database_clock
from backwave_django.store import default_store
from tests.builders import claim_request, succeeded, uid


@backwave.job("tests.handle.send", queue="tests.handle")
def send(order_id: int, password: str = "") -> Any:
    """A body that never runs here."""


def run_one(output):
    """Claim the oldest job and report it succeeded, as a pump does."""
    store = default_store()
    now = database_clock() + timedelta(seconds=1)
    (leased,) = store.claim(claim_request("tests.handle", limit=1), now=now).jobs
    store.report([succeeded(leased, output=output)], now=now)


@pytest.mark.django_db
def test_it_tells_what_the_job_has_become():
    handle = send.enqueue(1)
    assert (handle.state, handle.cause, handle.output) == (JobState.SCHEDULED, None, None)
    run_one('{"paid":{"$decimal":"0.10"}}')
    assert handle.state is JobState.SCHEDULED
    assert handle.refresh() is handle
    assert (handle.state, handle.cause) == (JobState.SUCCEEDED, Cause.RETURNED)
    assert str(handle.output["paid"]) == "0.10"
    assert (handle.record.run, handle.record.spent) == (1, 0)
    assert handle.record.terminal_at is not None


@pytest.mark.django_db
def test_it_can_be_made_of_an_id():
    first = send.options(priority=5, tags={"tenant": "acme"}).enqueue(1)
    for handle in (backwave.JobHandle(first.id), backwave.JobHandle(str(first.id))):
        assert handle == first
        assert hash(handle) == hash(first)
        assert handle.state is JobState.SCHEDULED
        assert (handle.record.priority, handle.record.tags) == (5, {"tenant": "acme"})
    with pytest.raises(ValueError, match="badly formed"):
        backwave.JobHandle("42")


@pytest.mark.django_db
def test_a_job_that_is_not_there_is_gone():
    handle = backwave.JobHandle(uid(1))
    for look in (handle.refresh, lambda: handle.state, lambda: handle.output):
        with pytest.raises(JobGone, match=str(uid(1))):
            look()


@pytest.mark.django_db
def test_f157_nothing_about_it_shows_the_payload():
    handle = send.enqueue(1, password="hunter2")  # noqa: S106 - what must not be seen
    handle.refresh()
    assert "hunter2" not in f"{handle!r} {handle} {handle.record!r} {send!r}"
    assert repr(handle) == f"<JobHandle {handle.id}>"


@pytest.mark.django_db
def test_cancelling_names_who_asked():
    handle = send.enqueue(1)
    answer = handle.cancel(actor="support", reason="paid by cash")
    assert (answer.result, answer.state) == (ActionResult.DONE, JobState.CANCELLED)
    assert handle.refresh().cause is Cause.OPERATOR
    action = OperatorAction.objects.get(target=str(handle.id))
    assert (action.actor_name, action.reason) == ("support", "paid by cash")
    assert handle.cancel(actor="support").result is ActionResult.REFUSED


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "option", "hint"),
    [
        ({"actor": ""}, "actor", "a name of 1 to 150 characters"),
        ({"actor": "a" * 151}, "actor", "a name of 1 to 150 characters"),
        ({"actor": "a\0"}, "actor", "a name of 1 to 150 characters"),
        ({"actor": backwave.Actor(name="ada")}, "actor", "a name of 1 to 150 characters"),
        ({"actor": "ada", "reason": "\ud800"}, "reason", "without NUL and lone surrogates"),
        ({"actor": "ada", "reason": None}, "reason", "without NUL and lone surrogates"),
    ],
)
def test_who_asks_and_why_are_texts_that_every_database_keeps(given, option, hint):
    handle = send.enqueue(1)
    for of in (handle, backwave.WorkflowHandle(uid(1))):
        with pytest.raises(InvalidOption, match=hint) as refusal:
            of.cancel(**given)
        assert refusal.value.option == option
    assert handle.refresh().state is JobState.SCHEDULED


@pytest.mark.django_db
def test_it_explains_why_the_job_stands_where_it_stands():
    handle = send.options(delay=timedelta(hours=1)).enqueue(1, password="hunter2")  # noqa: S106
    reasons = handle.explain()
    assert [(reason.code, reason.blocks) for reason in reasons] == [
        ("not_due", True),
        ("no_pump", True),
    ]
    assert all(isinstance(reason, backwave.Reason) for reason in reasons)
    assert "hunter2" not in str(reasons)
    handle.cancel(actor="support")
    (ended,) = handle.explain()
    assert (ended.code, ended.text) == ("ended", "It is cancelled: cancelled by a person.")


@pytest.mark.django_db
def test_it_explains_which_job_replaced_it():
    first = send.options(unique="tests.handle.explain").enqueue(1)
    second = send.options(unique="tests.handle.explain", if_duplicate="replace").enqueue(2)
    ended, duplicate = first.explain()
    assert ended.text == "It is cancelled: superseded by a job with the same unique key."
    assert str(second.id) in duplicate.text


@pytest.mark.django_db
def test_a_job_that_is_gone_is_not_explained():
    with pytest.raises(JobGone, match=str(uid(1))):
        backwave.JobHandle(uid(1)).explain()


@pytest.mark.django_db
def test_async_code_reads_explains_and_cancels():
    async def view():
        handle = await send.aenqueue(1)
        (why,) = await handle.aexplain()
        await handle.acancel(actor="support")
        return why, await handle.arefresh()

    why, handle = async_to_sync(view)()
    assert (why.code, handle.state) == ("no_pump", JobState.CANCELLED)


@pytest.mark.django_db(transaction=True)
def test_waiting_returns_when_the_job_has_ended():
    handle = send.enqueue(1)

    def pump():
        try:
            run_one('"done"')
        finally:
            connection.close()

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    assert handle.wait(timeout=60).output == "done"
    thread.join(30)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("timeout", [0, 0.05, timedelta(milliseconds=50)])
def test_waiting_ends_in_time(timeout):
    handle = send.enqueue(1)
    with pytest.raises(WaitTimeout, match=f"{handle.id} is scheduled"):
        handle.wait(timeout)


@pytest.mark.django_db(transaction=True)
def test_waiting_inside_the_transaction_is_refused_at_once():
    with transaction.atomic():
        handle = send.enqueue(1)
        with pytest.raises(InsideTransaction, match="wait after it"):
            handle.wait(timeout=60)
    assert Job.objects.filter(pk=handle.id).exists()


@pytest.mark.django_db(transaction=True)
def test_waiting_for_a_job_that_is_gone_ends_at_once():
    with pytest.raises(JobGone):
        backwave.JobHandle(uid(1)).wait(timeout=60)


@pytest.mark.django_db
def test_a_body_reads_the_output_of_another_job():
    @backwave.job("tests.handle.reader")
    def reader(
        parent: backwave.JobHandle | UUID,
        ctx: backwave.JobContext = backwave.context(),
    ) -> object:
        return ctx.output_of(parent)

    handle = send.enqueue(1)
    assert reader(handle) is None
    run_one("[1,2]")
    assert reader(handle) == [1, 2]
    assert reader(handle.id) == [1, 2]
