"""Drivers in a known state, and the events that the store and the bodies would send them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.bounds import SWEEP_BATCH
from backwave_django.core.contract import ClaimAnswer, ClaimRequest, ReportAnswer, SweepAnswer
from backwave_django.core.dials import DriverConfig
from backwave_django.core.driver import Driver
from backwave_django.core.jobs import LeasedJob
from backwave_django.core.leases import BeatAnswer, LeaseHealth, Renewal
from backwave_django.core.outcomes import Failure, Outcome, OutcomeKind, Reported, Verdict
from backwave_django.core.retries import Retry
from backwave_django.core.states import Cause, JobState

T0 = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PUMP = UUID(int=7)
#: No jitter, so that tests can name the instants.
PATIENT = Retry(max_attempts=3, initial=10 * SECOND, multiplier=2.0, jitter=0.0)
OOPS = Failure("ValueError", "oops")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def config(**dials: Any) -> DriverConfig:
    dials.setdefault("queues", ("default",))
    return DriverConfig(pump_id=PUMP, **dials)


def fresh(**dials: Any) -> Driver:
    """A driver that has said nothing yet."""
    return Driver(config(**dials), now=T0)


def rested(*jobs: LeasedJob, **dials: Any) -> Driver:
    """A driver after its first turn at T0, which brought ``jobs``; nothing is in flight.

    The next poll is due at 1 s, maintenance at 5 s, the heartbeat at 20 s.
    """
    driver = fresh(**dials)
    driver.step(e.Ticked(), now=T0)
    asked = driver.step(beaten(), now=T0)
    claims = [one for one in asked if isinstance(one, c.Claim)]
    for number, _ in enumerate(claims):
        driver.step(claimed(*(() if number else jobs)), now=T0)
    driver.step(settled(), now=T0)
    return driver


def lease(number: int) -> UUID:
    return UUID(int=1_000 + number)


def job(number: int, **fields: Any) -> LeasedJob:
    values: dict[str, Any] = {
        "lease_id": lease(number),
        "job_id": UUID(int=number),
        "wire_name": "shop.pack",
        "queue": "default",
        "run": 1,
        "spent": 0,
        "payload": "{}",
        "payload_version": 1,
        "tags": "{}",
        "due_at": T0,
        "deadline": None,
        "limit_key": None,
        "unroutable_since": None,
        "schedule": None,
        "scheduled_for": None,
        "workflow": None,
        "trace": None,
        "retry": PATIENT.encode(),
        "expires_at": at(60),
    }
    return LeasedJob(**{**values, **fields})


def jobs(*numbers: int, **fields: Any) -> tuple[LeasedJob, ...]:
    return tuple(job(number, **fields) for number in numbers)


# What bodies say


def returned(number: int, *, now: datetime = T0) -> e.AttemptSucceeded:
    return e.AttemptSucceeded(lease(number), T0, now)


def raised(number: int, *, now: datetime = T0, **fields: Any) -> e.AttemptFailed:
    return e.AttemptFailed(
        lease_id=lease(number), started_at=T0, finished_at=now, failure=OOPS, **fields
    )


def committed(number: int) -> e.AttemptCommitted:
    return e.AttemptCommitted(lease_id=lease(number))


def gave_in(number: int, *, now: datetime = T0) -> e.AttemptCancelled:
    return e.AttemptCancelled(lease_id=lease(number), started_at=T0, finished_at=now)


# What is reported of them


def success(number: int, *, now: datetime = T0) -> Outcome:
    return Outcome(
        lease_id=lease(number),
        job_id=UUID(int=number),
        kind=OutcomeKind.SUCCEEDED,
        state=JobState.SUCCEEDED,
        started_at=T0,
        finished_at=now,
        cause=Cause.RETURNED,
    )


def release(number: int, *, now: datetime, started_at: datetime = T0) -> Outcome:
    return Outcome(
        lease_id=lease(number),
        job_id=UUID(int=number),
        kind=OutcomeKind.RELEASED,
        state=JobState.SCHEDULED,
        started_at=started_at,
        finished_at=now,
        due_at=now,
    )


def report(*numbers: int, now: datetime = T0) -> c.Report:
    return c.Report(outcomes=tuple(success(number, now=now) for number in numbers))


def told(commands: Iterable[c.Command]) -> Outcome:
    """The one outcome that ``commands`` report."""
    (outcome,) = (
        one for command in commands if isinstance(command, c.Report) for one in command.outcomes
    )
    return outcome


def due(instant: datetime | None) -> datetime:
    assert instant is not None
    return instant


# What the driver asks


def claim(limit: int, *queues: str, **fields: Any) -> c.Claim:
    return c.Claim(
        request=ClaimRequest(
            pump_id=PUMP,
            queues=queues or ("default",),
            limit=limit,
            lease_duration=fields.pop("lease_duration", 60 * SECOND),
            **fields,
        )
    )


def heartbeat(*numbers: int) -> c.Heartbeat:
    return c.Heartbeat(leases=tuple(lease(number) for number in numbers))


def recover(*numbers: int) -> c.Recover:
    return c.Recover(held=tuple(lease(number) for number in numbers))


def execute(*numbers: int, **fields: Any) -> c.Execute:
    return c.Execute(jobs=jobs(*numbers, **fields))


def cancel(number: int, reason: c.CancelReason) -> c.SignalCancel:
    return c.SignalCancel(lease_id=lease(number), reason=reason)


EXPIRE = c.ExpireLeases(limit=SWEEP_BATCH)
SETTLE = c.Settle(limit=SWEEP_BATCH)


# What the store answers


def claimed(
    *found: LeasedJob, short: bool = True, next_due: datetime | None = None, cursor: str = ""
) -> e.Claimed:
    return e.Claimed(
        answer=ClaimAnswer(jobs=found, short=short, next_due=next_due, clock=T0, key_cursor=cursor)
    )


def answered(*rows: tuple[int, Verdict]) -> e.ReportReturned:
    reported = tuple(Reported(lease(number), verdict) for number, verdict in rows)
    return e.ReportReturned(answer=ReportAnswer(rows=reported, clock=T0))


def applied(*numbers: int) -> e.ReportReturned:
    return answered(*((number, Verdict.APPLIED) for number in numbers))


def busy(*numbers: int) -> e.ReportReturned:
    return answered(*((number, Verdict.BUSY) for number in numbers))


def held_up(*jobs: LeasedJob, **dials: Any) -> Driver:
    """A driver that has run job 1 of ``jobs`` and reported it while somebody held its row."""
    driver = rested(*jobs, **dials)
    driver.step(returned(1), now=T0)
    driver.step(IDLE, now=T0)
    driver.step(busy(1), now=T0)
    return driver


def beaten(
    *,
    lost: Iterable[int] = (),
    renewed: Iterable[int] = (),
    cancelled: Iterable[int] = (),
    unlisted: Iterable[int] = (),
    drain: bool = False,
) -> e.HeartbeatReturned:
    renewals = (
        *(Renewal(lease(number), LeaseHealth.LOST) for number in lost),
        *(Renewal(lease(number), LeaseHealth.RENEWED) for number in renewed),
        *(
            Renewal(lease(number), LeaseHealth.RENEWED, cancel_requested=True)
            for number in cancelled
        ),
    )
    return e.HeartbeatReturned(
        answer=BeatAnswer(
            renewals=renewals,
            unlisted=tuple(lease(number) for number in unlisted),
            drain_requested=drain,
            registered=True,
            clock=T0,
        )
    )


def swept(count: int = 0, *, full: bool = False) -> SweepAnswer:
    return SweepAnswer(count=count, full=full, clock=T0)


def recovered(count: int = 0) -> e.Recovered:
    return e.Recovered(answer=swept(count))


def expired(count: int = 0, *, full: bool = False) -> e.Expired:
    return e.Expired(answer=swept(count, full=full))


def settled(count: int = 0, *, full: bool = False) -> e.Settled:
    return e.Settled(answer=swept(count, full=full))


def fault(*commands: c.Command, fatal: bool = False) -> e.StoreFaulted:
    return e.StoreFaulted(commands=commands, problem="connection lost", fatal=fatal)


TICK = e.Ticked()
IDLE = e.InboxEmpty()
DRAIN = e.DrainRequested()


# A store that is well


def quiet(driver: Driver, *seconds: float) -> None:
    """Let the time come to each of ``seconds``; whatever is asked is answered with nothing new."""
    for second in seconds:
        oblige(driver, driver.step(TICK, now=at(second)), now=at(second))
        oblige(driver, driver.step(IDLE, now=at(second)), now=at(second))


def oblige(driver: Driver, commands: Iterable[c.Command], *, now: datetime) -> None:
    for command in commands:
        if isinstance(command, c.StoreCommand):
            oblige(driver, driver.step(_answer(command), now=now), now=now)


_QUIET: dict[type[c.StoreCommand], e.Event] = {
    c.Claim: claimed(),
    c.Heartbeat: beaten(),
    c.Recover: recovered(),
    c.Dispose: e.Disposed(answer=swept()),
    c.ExpireLeases: expired(),
    c.Settle: settled(),
    c.Purge: e.Purged(answer=swept()),
}


def _answer(command: c.StoreCommand) -> e.Event:
    if isinstance(command, c.Report | c.Release):
        rows = tuple(Reported(one.lease_id, Verdict.APPLIED) for one in command.outcomes)
        return e.ReportReturned(answer=ReportAnswer(rows=rows, clock=T0))
    return _QUIET[type(command)]
