"""What an enqueue stores, and when others see it."""

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.translation import gettext_lazy

import backwave_django as backwave
from backwave_django.core.bounds import MAX_PAYLOAD_BYTES
from backwave_django.core.errors import (
    InvalidOption,
    PayloadTooLarge,
    UnknownJobType,
    UnserializableValue,
    UsageError,
    WrongArguments,
)
from backwave_django.core.states import JobState
from backwave_django.models import Job
from testproject.shop.models import Order

pytestmark = pytest.mark.django_db


@backwave.job("tests.enqueue.send", aliases=("tests.enqueue.mail",))
def send(
    order_id: object,
    note: object = "",
    *,
    ctx: backwave.JobContext = backwave.context(),
) -> None:
    """A body that never runs here."""


@backwave.job("tests.enqueue.pack", queue="bulk", priority=7, tags={"team": "a", "size": 1})
def pack(order_id: int) -> None:
    """One with defaults of its own."""


@backwave.job(
    "tests.enqueue.pay", limit=backwave.Limit(lambda order_id: f"order:{order_id % 2}", 1)
)
def pay(order_id: int) -> None:
    """One whose limit key is computed."""


@backwave.job("tests.enqueue.old", version=4)
def newer(order_id: int) -> None:
    """One with a payload version."""


@pytest.fixture
def in_another_thread(transactional_db):
    """Run something on a connection of its own."""

    def run(work):
        answers = []

        def target():
            try:
                answers.append(work())
            finally:
                connection.close()

        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        thread.join(30)
        return answers[0]

    return run


def test_a_job_is_stored_as_it_was_declared_and_called():
    before = datetime.now(UTC) - timedelta(minutes=1)  # noqa: TID251 - the database's clock is real
    handle = pack.enqueue(42)
    job = Job.objects.get(pk=handle.id)
    assert (job.wire_name, job.queue, job.state) == ("tests.enqueue.pack", "bulk", "scheduled")
    # Stored inverted, so that ascending order is more urgent first.
    assert job.priority == -7
    assert json.loads(job.payload) == {"args": [], "kwargs": {"order_id": 42}}
    assert job.tags == {"team": "a", "size": 1}
    assert (job.payload_version, job.unique_key, job.limit_key, job.deadline) == (
        1,
        None,
        None,
        None,
    )
    assert before < job.due_at == job.created_at < before + timedelta(minutes=2)
    assert (handle.state, handle.created) == (JobState.SCHEDULED, True)


def test_defaults_are_not_stored():
    handle = send.enqueue(1)
    assert json.loads(Job.objects.get(pk=handle.id).payload)["kwargs"] == {"order_id": 1}


def test_options_are_stored():
    due_at = datetime(2040, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    handle = pack.options(
        due_at=due_at,
        queue="other",
        priority=-100,
        tags={"size": 2, "tenant": "é"},
        deadline=timedelta(minutes=30),
    ).enqueue(1)
    job = Job.objects.get(pk=handle.id)
    assert (job.due_at, job.deadline) == (due_at, due_at + timedelta(minutes=30))
    assert (job.queue, job.priority) == ("other", 100)
    assert job.tags == {"team": "a", "size": 2, "tenant": "é"}


@pytest.mark.parametrize(
    "due_at",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_f068_far_due_times_are_stored_exactly(due_at):
    handle = send.options(due_at=due_at).enqueue(1)
    assert Job.objects.get(pk=handle.id).due_at == due_at
    assert handle.refresh().record.due_at == due_at


def test_a_delay_counts_from_each_enqueue():
    later = send.options(delay=timedelta(hours=1))
    first, second = (Job.objects.get(pk=later.enqueue(n).id) for n in (1, 2))
    assert first.created_at < first.due_at <= second.due_at
    assert abs(first.due_at - first.created_at - timedelta(hours=1)) < timedelta(minutes=1)


def test_the_payload_carries_its_version():
    assert Job.objects.get(pk=newer.enqueue(1).id).payload_version == 4


def test_a_limit_key_is_computed_from_the_arguments():
    keys = [Job.objects.get(pk=pay.enqueue(n).id).limit_key for n in (1, 2, 3)]
    assert keys == ["order:1", "order:0", "order:1"]


def test_many_are_stored_in_order_with_as_many_statements_as_few():
    with CaptureQueriesContext(
        connection,
    ) as few:
        send.enqueue_many([(1,), (2, "b")])
    with CaptureQueriesContext(connection) as many:
        handles = send.enqueue_many({"order_id": n} for n in range(50))
    assert len(many) == len(few)
    stored = [json.loads(Job.objects.get(pk=handle.id).payload) for handle in handles]
    assert [each["kwargs"]["order_id"] for each in stored] == list(range(50))
    assert send.enqueue_many([]) == []


@pytest.mark.parametrize(
    ("calls", "problem", "number"),
    [
        (["ab"], r"a tuple of its arguments, \(42,\), not a str", 1),
        ([(1,), 2], "not a int", 2),
        ([(1,), (2,), ()], "missing a required argument: 'order_id'", 3),
        ([(1,), {"order_id": {1}}], "argument 'order_id'", 2),
    ],
)
def test_of_many_with_one_wrong_none_is_stored_and_the_wrong_one_is_named(calls, problem, number):
    with pytest.raises(UsageError, match=problem) as refusal:
        send.enqueue_many(calls)
    assert refusal.value.__notes__ == [f"in call {number} of enqueue_many"]
    assert not Job.objects.exists()


def test_an_argument_without_a_name_of_its_own_is_named_by_its_parameter_too():
    @backwave.job("tests.enqueue.positional")
    def positional(order_id: object, /, *more: object) -> None:
        """Arguments that are kept by position."""

    with pytest.raises(UnserializableValue, match="argument 'order_id'"):
        positional.enqueue({1})
    with pytest.raises(UnserializableValue, match="argument 3"):
        positional.enqueue(1, 2, {3})


def test_a_job_is_enqueued_by_wire_name_or_alias():
    handle = backwave.enqueue("tests.enqueue.send", 42, note="x")
    other = backwave.enqueue("tests.enqueue.mail", order_id=43)
    jobs = [Job.objects.get(pk=each.id) for each in (handle, other)]
    assert [job.wire_name for job in jobs] == ["tests.enqueue.send"] * 2
    with pytest.raises(UnknownJobType, match=r"did you mean .*'tests.enqueue.send'"):
        backwave.enqueue("tests.enqueue.sent", 42)


class Anything:
    """No value for a payload."""


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (Anything(), "argument 'order_id': a value of type Anything"),
        ("a\0b", "argument 'order_id': the text has"),
        ({"k\0": 1}, "argument 'order_id'"),
        (["x", {"y": "\0"}], r"argument 'order_id' -> \[1\].y"),
        ("\ud800", "argument 'order_id': the text has"),
        (float("nan"), "argument 'order_id'"),
        ({1, 2}, "argument 'order_id'.*sorted"),
        (Decimal("NaN"), "argument 'order_id'"),
        (gettext_lazy("Yes"), r"argument 'order_id'.*call str\(\)"),
        (Order.objects.all(), "argument 'order_id'.*primary key"),
        (Order(), "argument 'order_id'.*primary key"),
    ],
)
def test_f058_f061_f064_what_cannot_be_stored_is_refused_and_the_transaction_goes_on(
    value, problem
):
    with transaction.atomic():
        with pytest.raises(UnserializableValue, match=problem):
            send.enqueue(value)
        kept = send.enqueue(1)
    assert list(Job.objects.values_list("pk", flat=True)) == [kept.id]


def test_a_payload_has_a_cap_in_bytes():
    around = len('{"args":[],"kwargs":{"order_id":""}}')
    fits = "é" * ((MAX_PAYLOAD_BYTES - around) // 2)
    handle = send.enqueue(fits)
    assert len(Job.objects.get(pk=handle.id).payload.encode()) <= MAX_PAYLOAD_BYTES
    with pytest.raises(PayloadTooLarge, match=r"the payload is 1,048,57. bytes, over the cap"):
        send.enqueue(fits + "é")
    assert Job.objects.count() == 1


def test_wrong_arguments_are_refused_where_they_are_passed():
    with pytest.raises(WrongArguments, match=r"job 'tests.enqueue.send': missing"):
        send.enqueue()  # type: ignore[call-arg]  # what is refused
    with pytest.raises(WrongArguments, match="'ctx' is filled in"):
        send.enqueue(1, ctx=backwave.context())
    with pytest.raises(InvalidOption, match="would never run"):
        send.options(delay=timedelta(hours=1), deadline=datetime(2020, 1, 1, tzinfo=UTC)).enqueue(1)
    assert not Job.objects.exists()


def test_f049_f053_a_job_has_its_id_at_once_and_is_seen_at_the_commit(in_another_thread):
    with transaction.atomic():
        handle = send.enqueue(1)
        assert Job.objects.get(pk=handle.id).state == "scheduled"
        assert in_another_thread(Job.objects.count) == 0
    assert in_another_thread(lambda: Job.objects.get().pk) == handle.id


def test_f050_a_rollback_leaves_nothing_behind(in_another_thread):
    def fail():
        with transaction.atomic():
            for number in range(3):
                send.enqueue(number)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert in_another_thread(Job.objects.count) == 0


def test_f052_a_failing_enqueue_fails_the_transaction_it_is_part_of(transactional_db):
    def notify():
        with transaction.atomic():
            pack.enqueue(1)
            send.enqueue(Anything())

    with pytest.raises(UnserializableValue):
        notify()
    assert not Job.objects.exists()


def test_on_commit_stores_the_job_after_the_commit(transactional_db):
    with transaction.atomic():
        handle = send.on_commit(1)
        assert not Job.objects.exists()
    assert Job.objects.get().pk == handle.id
    assert handle.created
    assert handle.state == "scheduled"


def test_on_commit_stores_nothing_after_a_rollback(transactional_db):
    def fail():
        with transaction.atomic():
            send.on_commit(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not Job.objects.exists()


def test_on_commit_takes_the_arguments_at_once(transactional_db):
    note = ["now"]
    with transaction.atomic():
        with pytest.raises(WrongArguments):
            send.on_commit()  # type: ignore[call-arg]  # what is refused
        send.on_commit(1, note)
        note.append("later")
    assert json.loads(Job.objects.get().payload)["kwargs"]["note"] == ["now"]


def test_f148_a_direct_enqueue_from_async_code_is_refused_with_what_to_write():
    async def view():
        with pytest.raises(SynchronousOnlyOperation, match=r"await job.aenqueue\("):
            send.enqueue(1)
        with pytest.raises(SynchronousOnlyOperation, match="aenqueue_many"):
            send.enqueue_many([(1,)])

    asyncio.run(view())
    assert not Job.objects.exists()


def test_f148_async_enqueues_store_jobs():
    def in_a_transaction():
        with transaction.atomic():
            send.enqueue(5)

    async def view():
        await send.aenqueue(1)
        await send.options(queue="bulk").aenqueue(2)
        await send.aenqueue_many([(3,)])
        await backwave.aenqueue("tests.enqueue.send", 4)
        await sync_to_async(in_a_transaction)()
        with pytest.raises(WrongArguments):
            await send.aenqueue()  # type: ignore[call-arg]  # what is refused

    async_to_sync(view)()
    payloads = Job.objects.order_by("id").values_list("payload", flat=True)
    assert [json.loads(each)["kwargs"]["order_id"] for each in payloads] == [1, 2, 3, 4, 5]
