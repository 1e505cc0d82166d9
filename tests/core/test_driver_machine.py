"""Any history whatever: the driver keeps its promises, whoever tells it what in which order."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from backwave_django.core import commands as c
from backwave_django.core import events as e
from backwave_django.core.contract import ClaimAnswer, ReportAnswer, SweepAnswer
from backwave_django.core.leases import BeatAnswer, LeaseHealth, Renewal
from backwave_django.core.outcomes import Reported, Unroutable, Verdict
from tests.core.driver_model import Watched
from tests.core.drivers import OOPS, SECOND, config, job

SECONDS = st.sampled_from((0.0, 0.005, 0.02, 0.3, 1.0, 2.5, 7.0, 25.0, 90.0))
DIALS = st.fixed_dictionaries(
    {
        "pool_size": st.integers(1, 4),
        "max_claim_batch": st.integers(1, 4),
        "max_outcome_batch": st.integers(1, 4),
        "max_poll_interval": st.sampled_from((None, 16 * SECOND)),
        "shutdown_timeout": st.sampled_from((SECOND, 30 * SECOND)),
    }
)
WEIGHTS = st.sampled_from((None, {"a": 3, "b": 1}, {"a": 2, "b": 5}))
ENDS = st.sampled_from(
    ("returned", "raised", "gave in", "snoozed", "refused", "lost", "odd", "back", "in")
)
WIRE_NAMES = st.sampled_from(("shop.pack", "shop.hurry"))
VERDICTS = st.sampled_from((Verdict.APPLIED, Verdict.APPLIED, Verdict.STALE, Verdict.BUSY))
FATES = st.sampled_from(("renewed", "renewed", "renewed", "lost", "cancelled", "busy"))


def ended(number: UUID, kind: str, watched: Watched) -> e.AttemptEnded:
    span: dict[str, Any] = {"lease_id": number, "started_at": watched.now}
    told: dict[str, Any] = {**span, "finished_at": watched.now}
    events: dict[str, e.AttemptEnded] = {
        "returned": e.AttemptSucceeded(number, watched.now, watched.now),
        "raised": e.AttemptFailed(**told, failure=OOPS),
        "gave in": e.AttemptCancelled(**told),
        "snoozed": e.AttemptSnoozed(**told, delay=SECOND),
        "refused": e.AttemptOutputRefused(**told, failure=OOPS),
        "lost": e.AttemptUnroutable(**span, reason=Unroutable.UNKNOWN_TYPE, failure=OOPS),
        "odd": e.AttemptUndecodable(**span, failure=OOPS),
        "back": e.AttemptReleased(**span),
        "in": e.AttemptCommitted(lease_id=number),
    }
    return events[kind]


class Histories(RuleBasedStateMachine):
    """A pump whose store, bodies, clock and neighbours do as they like."""

    watched: Watched
    jobs = 0

    @initialize(dials=DIALS, weights=WEIGHTS)
    def begin(self, dials, weights):
        self.watched = Watched(
            config(queues=("a", "b"), weights=weights, timeouts={"shop.hurry": 3 * SECOND}, **dials)
        )

    def teardown(self):
        """Whatever happened, a store that is well again gets every outcome, and the pump ends."""
        watched = self.watched
        if watched.end is None:
            watched.tell(e.DrainRequested())
        for _ in range(400):
            if watched.end is not None:
                return
            self.oblige()
            self.shares_follow_the_weights()
        raise AssertionError("a drain that does not end")

    def oblige(self):
        watched = self.watched
        if watched.in_flight:
            self.answer_well()
        elif (wake_at := watched.driver.wake_at) is not None:
            watched.pass_time(max(wake_at - watched.now, timedelta(0)))
            watched.tell(e.Ticked())

    def shares_follow_the_weights(self):
        offered, weights = self.watched.offered, self.watched.config.weights or {}
        for name, weight in weights.items():
            fair = offered.total() * weight / sum(weights.values())
            assert abs(offered[name] - fair) < len(weights)

    running = precondition(lambda self: self.watched.end is None)
    asked = precondition(lambda self: self.watched.end is None and self.watched.in_flight)
    busy = precondition(lambda self: self.watched.end is None and self.watched.bodies)

    def asks(self, *kinds):
        return bool(self.watched.in_flight) and isinstance(self.watched.in_flight[0], kinds)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds):
        self.watched.pass_time(timedelta(seconds=seconds))
        if self.watched.end is None:  # a machine must always have something that it can do
            self.watched.tell(e.Ticked())

    @running
    @rule()
    def woken(self):
        wake_at = self.watched.driver.wake_at
        if wake_at is not None:
            self.watched.pass_time(max(wake_at - self.watched.now, timedelta(0)))
            self.watched.tell(e.Ticked())

    @running
    @rule(seconds=SECONDS)
    def clock_set_back(self, seconds):
        self.watched.pass_time(-timedelta(seconds=seconds * 100))
        self.watched.tell(e.Ticked())

    @running
    @rule()
    def inbox_empty(self):
        self.watched.tell(e.InboxEmpty())

    @running
    @rule(queue=st.sampled_from(("a", "b", "c")), priority=st.integers(0, 2))
    def due_hinted(self, queue, priority):
        self.watched.tell(e.DueHinted(queue=queue, priority=priority))

    @running
    @rule()
    def cancel_hinted(self):
        self.watched.tell(e.CancelHinted())

    @running
    @rule(number=st.integers(1, 3))
    def dead_pumps_found(self, number):
        self.watched.tell(e.DeadPumpsFound(pumps=(UUID(int=number),)))

    @busy
    @rule(data=st.data(), kind=ENDS)
    def body_ends(self, data, kind):
        leases = sorted(self.watched.bodies) + sorted(self.watched.replaced)
        lease_id = data.draw(st.sampled_from(leases))
        self.watched.tell(ended(lease_id, kind, self.watched))

    @busy
    @rule(data=st.data(), kinds=st.lists(ENDS, min_size=1, max_size=4))
    def bodies_end(self, data, kinds):
        leases = sorted(self.watched.bodies) + sorted(self.watched.replaced)
        drawn = data.draw(st.permutations(leases))
        ends = [ended(*each, self.watched) for each in zip(drawn, kinds, strict=False)]
        self.watched.tell(e.AttemptsEnded(tuple(ends)))

    @rule()
    @precondition(lambda self: self.watched.end is None and self.watched.drained is None)
    def drain_requested(self):
        self.watched.tell(e.DrainRequested())

    # What the store says

    @precondition(lambda self: self.watched.end is None and self.asks(c.Claim))
    @rule(
        found=st.integers(0, 4),
        wire_name=WIRE_NAMES,
        next_due=st.sampled_from((None, -5.0, 0.5, 60.0)),
    )
    def claim_answered(self, found, wire_name, next_due):
        (claim, *_) = self.watched.in_flight
        assert isinstance(claim, c.Claim)
        count = min(found, claim.request.limit)
        self.jobs += count
        numbers = range(self.jobs - count, self.jobs)
        now = self.watched.now
        due = None if next_due is None else now + timedelta(seconds=next_due)
        self.watched.tell(
            e.Claimed(
                answer=ClaimAnswer(
                    jobs=tuple(job(number, wire_name=wire_name) for number in numbers),
                    short=count < claim.request.limit,
                    next_due=due,
                    clock=now,
                )
            )
        )

    @precondition(lambda self: self.watched.end is None and self.asks(c.Report, c.Release))
    @rule(data=st.data())
    def report_answered(self, data):
        (report, *_) = self.watched.in_flight
        assert isinstance(report, c.Report | c.Release)
        rows = [Reported(one.lease_id, data.draw(VERDICTS)) for one in report.outcomes]
        self.watched.tell(
            e.ReportReturned(answer=ReportAnswer(rows=tuple(rows), clock=self.watched.now))
        )

    @precondition(lambda self: self.watched.end is None and self.asks(c.Heartbeat))
    @rule(data=st.data(), unlisted=st.booleans(), drain=st.integers(0, 9))
    def heartbeat_answered(self, data, unlisted, drain):
        (heartbeat, *_) = self.watched.in_flight
        assert isinstance(heartbeat, c.Heartbeat)
        renewals = tuple(
            Renewal(
                lease_id,
                {"lost": LeaseHealth.LOST, "busy": LeaseHealth.BUSY}.get(
                    fate := data.draw(FATES), LeaseHealth.RENEWED
                ),
                cancel_requested=fate == "cancelled",
            )
            for lease_id in heartbeat.leases
        )
        self.watched.tell(self.beat(renewals, unlisted=unlisted, drain=drain == 0))

    def beat(self, renewals, *, unlisted, drain):
        return e.HeartbeatReturned(
            answer=BeatAnswer(
                renewals=renewals,
                unlisted=(UUID(int=5),) if unlisted else (),
                drain_requested=drain,
                registered=True,
                clock=self.watched.now,
            )
        )

    @asked
    @rule(count=st.integers(0, 2), full=st.booleans())
    def sweep_answered(self, count, full):
        answers: dict[type[c.StoreCommand], Callable[..., e.Event]] = {
            c.Recover: e.Recovered,
            c.Dispose: e.Disposed,
            c.ExpireLeases: e.Expired,
            c.Settle: e.Settled,
            c.Purge: e.Purged,
        }
        made = answers.get(type(self.watched.in_flight[0]))
        if made is not None:
            answer = SweepAnswer(count=count, full=full, clock=self.watched.now)
            self.watched.tell(made(answer=answer))

    @asked
    @rule(fatal=st.integers(0, 30))
    def store_faulted(self, fatal):
        commands = tuple(self.watched.in_flight)
        self.watched.tell(e.StoreFaulted(commands=commands, problem="gone", fatal=fatal == 0))

    def answer_well(self):
        command, now = self.watched.in_flight[0], self.watched.now
        match command:
            case c.Claim():
                self.claim_answered(0, "shop.pack", None)
            case c.Report() | c.Release():
                rows = tuple(Reported(one.lease_id, Verdict.APPLIED) for one in command.outcomes)
                self.watched.tell(e.ReportReturned(answer=ReportAnswer(rows=rows, clock=now)))
            case c.Heartbeat():
                self.watched.tell(self.beat((), unlisted=False, drain=False))
            case _:
                self.sweep_answered(0, full=False)


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
