"""What a type checker makes of the public face. Never run: ``mypy`` reads it.

Each wrong line is refused under the rule it names; one that is accepted is an unused ignore, and
fails the check as well.
"""

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, assert_type

import backwave_django as backwave


class Gateway:
    """A service."""


class Storage:
    """Another one."""


@backwave.job
def send_receipt(order_id: int) -> None:
    """A bare declaration."""


@backwave.job(
    "typing.charge",
    queue="billing",
    priority=10,
    retry=backwave.Retry(max_attempts=5, initial=timedelta(seconds=5)),
    timeout=timedelta(minutes=2),
    limit=backwave.Limit("payment-gateway", 5),
    aliases=("typing.charge_card",),
    tags={"team": "billing"},
    timeout_mode="raise",
    atomic=True,
)
def charge(
    order_id: int,
    *,
    currency: str = "CHF",
    ctx: backwave.JobContext = backwave.context(),
    gateway: Gateway = backwave.service(),
) -> dict[str, str]:
    """One with every option."""
    assert_type(ctx, backwave.JobContext)
    assert_type(gateway, Gateway)
    return {"currency": currency}


class Report:
    """A class; its constructor is nobody's business but the container's."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def run(self, month: str) -> str:
        """The body."""
        return month


@backwave.job("typing.push")
async def push(message_id: int) -> bool:
    """An async body."""
    return message_id > 0


class Cleaning:
    """A class without a constructor."""

    async def run(self, days: int = 7) -> int:
        """An async body in a class."""
        return days


# mypy takes a decorated class for the class itself (other checkers do not): for mypy's eyes, call
# the decorator.
build_report = backwave.job("typing.build")(Report)
sweep = backwave.job(Cleaning)


def calls_are_typed_as_the_body_is() -> None:
    """The decorated name is called like what it decorates."""
    assert_type(send_receipt(42), None)
    assert_type(charge(42, currency="EUR"), dict[str, str])
    assert_type(charge(42, gateway=Gateway()), dict[str, str])
    assert_type(build_report("2026-11"), str)

    send_receipt("42")  # type: ignore[arg-type]  # refused: not an int
    charge(42, "EUR")  # type: ignore[call-arg]  # refused: keyword-only
    build_report(Storage())  # type: ignore[arg-type]  # refused: the constructor's argument


def explanations_are_typed(handle: backwave.JobHandle) -> None:
    """Reasons can be named where they are kept."""
    reasons: tuple[backwave.Reason, ...] = handle.explain()
    assert_type(reasons[0].blocks, bool)
    assert_type(handle.record, backwave.JobRecord)


def enqueues_are_typed_as_the_body_is() -> None:
    """Everything that enqueues takes the body's own arguments."""
    assert_type(send_receipt.enqueue(42), backwave.JobHandle[None])
    assert_type(send_receipt.on_commit(order_id=42), backwave.JobHandle[None])
    charged = charge.options(queue="bulk").enqueue(42, currency="EUR")
    assert_type(charged, backwave.JobHandle[dict[str, str]])
    assert_type(build_report.enqueue("2026-11"), backwave.JobHandle[str])
    pushed = push.options(priority=3).options(priority=4).enqueue(1)
    assert_type(pushed, backwave.JobHandle[Coroutine[Any, Any, bool]])
    many = send_receipt.enqueue_many([(1,), {"order_id": 2}])
    assert_type(many, list[backwave.JobHandle[None]])

    send_receipt.enqueue("42")  # type: ignore[arg-type]  # refused: not an int
    send_receipt.enqueue()  # type: ignore[call-arg]  # refused: order_id is missing
    send_receipt.on_commit(order="x")  # type: ignore[call-arg]  # refused: no such parameter
    charge.options(priority=1).enqueue("42")  # type: ignore[arg-type]  # refused through options
    build_report.enqueue(2026)  # type: ignore[arg-type]  # refused: run takes a str
    push.enqueue(None)  # type: ignore[arg-type]  # refused: not an int
    sweep.enqueue(days="x")  # type: ignore[arg-type]  # refused: not an int
    send_receipt.enqueue_many(["1"])  # type: ignore[list-item]  # refused: a call is a tuple


def outputs_are_typed(anything: backwave.JobHandle, ctx: backwave.JobContext) -> None:
    """A handle knows what its body returns; of an async one that is what awaiting it gives."""
    assert_type(charge.enqueue(1).output, dict[str, str] | None)
    assert_type(push.enqueue(1).output, bool | None)
    assert_type(send_receipt.enqueue(1).refresh().output, None)
    assert_type(anything.output, Any)
    assert_type(ctx.output_of(charge.enqueue(1)), dict[str, str] | None)
    assert_type(ctx.output_of(build_report), str | None)
    assert_type(ctx.output_of("pay"), Any)


def steps_are_typed_as_the_body_is() -> None:
    """The arguments of a step are checked; beside ``after`` they are when it is added as a call."""
    with backwave.workflow("checkout") as flow:
        ok = flow.add(send_receipt, 42)
        assert_type(ok, backwave.JobHandle[None])
        assert_type(flow.add(charge, 42, currency="EUR"), backwave.JobHandle[dict[str, str]])
        assert_type(flow.add(charge, 42, after=ok), backwave.JobHandle[dict[str, str]])
        assert_type(flow.add(build_report.s("2026-11"), after=[ok]), backwave.JobHandle[str])
        flow.add(charge.options(after=ok, queue="bulk"), 42)

        flow.add(charge, "42")  # type: ignore[call-overload]  # refused: not an int
        flow.add(charge.s("42"), after=ok)  # type: ignore[arg-type]  # refused: not an int
        flow.add(charge, 42, after="ok")  # type: ignore[call-arg]  # refused: not a handle
    backwave.chain(send_receipt.s(1), charge.s(2)).then(build_report.s("2026-11")).enqueue()
    backwave.parallel(send_receipt.s(number) for number in range(3))

    backwave.chain(send_receipt)  # type: ignore[arg-type]  # refused: not a call


@backwave.on_outcome("dead_lettered", jobs=["orders.*", charge])
def alert(event: backwave.OutcomeEvent, ctx: backwave.JobContext = backwave.context()) -> None:
    """An observer."""
    assert_type(event.state, backwave.JobState)


@backwave.on_outcome("succeeded", "expired", jobs=charge)
@backwave.job("typing.observer", queue="alerts")
async def observer(event: backwave.OutcomeEvent) -> str:
    """One with options."""
    return event.wire_name


def observers_are_job_types(event: backwave.OutcomeEvent) -> None:
    """What observes can be called and enqueued as any job type."""
    assert_type(alert(event), None)
    assert_type(observer.enqueue(event).output, str | None)

    alert("event")  # type: ignore[arg-type]  # refused: not an event
    backwave.on_outcome(3)  # type: ignore[arg-type]  # refused: a state is a word


def options_are_typed() -> None:
    """Options have types and names."""
    parent = send_receipt.enqueue(1)
    send_receipt.options(
        delay=timedelta(hours=1),
        queue="bulk",
        priority=-5,
        tags={"tenant": "acme", "size": 3, "vip": True},
        deadline=timedelta(minutes=30),
        unique="receipt:42",
        if_duplicate="allow_after_failure",
        after=[parent],
        after_mode="on_any",
    )
    send_receipt.options(after=parent)

    send_receipt.options(delay=5)  # type: ignore[arg-type]  # refused: a span is a timedelta
    send_receipt.options(dely=timedelta(1))  # type: ignore[call-arg]  # refused: no such option
    backwave.job(queue=3)  # type: ignore[call-overload]  # refused: a queue is a name


async def async_enqueues_are_typed() -> None:
    """The async doors take and give the same."""
    assert_type(await send_receipt.aenqueue(42), backwave.JobHandle[None])
    pushed = await push.options(queue="bulk").aenqueue(42)
    assert_type(pushed.output, bool | None)
    await assert_type(push(42), Coroutine[Any, Any, bool])
    await assert_type(sweep(days=3), Coroutine[Any, Any, int])

    await send_receipt.aenqueue("42")  # type: ignore[arg-type]  # refused: not an int
