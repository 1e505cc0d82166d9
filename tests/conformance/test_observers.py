from collections.abc import Callable
from uuid import UUID

import pytest

from backwave_django.core.contract import History, Store, StoreSettings
from backwave_django.core.jobs import IfDuplicate, NewJob
from backwave_django.core.observing import Ended
from backwave_django.core.outcomes import Outcome
from backwave_django.core.states import TERMINAL, Cause, JobState
from backwave_django.core.workflows import NewWorkflow
from tests.builders import (
    ACTOR,
    FAILURE,
    HOUR,
    MINUTE,
    ONCE,
    OTHER_PUMP,
    PUMP,
    RETRY,
    SECOND,
    T0,
    after,
    cancelled,
    claim_request,
    failed,
    gave_up,
    new_job,
    output_refused,
    pump_info,
    released,
    snoozed,
    succeeded,
    timed_out,
    uid,
    undecodable,
    unroutable,
)
from tests.conformance.conftest import MakeSubject
from tests.conformance.facts import states
from tests.conformance.subjects import Subject

NOW = T0 + SECOND
DEAD = JobState.DEAD_LETTERED


class Watch:
    """Observes every job of ``shop.pack`` and keeps what it was told."""

    def __init__(self, *watched: JobState) -> None:
        self.states = frozenset(watched)
        self.told: list[Ended] = []

    def jobs(self, ended: Ended) -> tuple[NewJob, ...]:
        if ended.state not in self.states or ended.wire_name != "shop.pack":
            return ()
        self.told.append(ended)
        number = 100_000 * len(self.told) + ended.job_id.int
        return (new_job(number, wire_name="shop.alert", queue="alerts", due_at=None),)


Watched = Callable[..., tuple[Subject, Watch]]


@pytest.fixture
def watched(make_subject: MakeSubject) -> Watched:
    """A store in which somebody observes these states."""

    def make(*wanted: JobState, **settings: object) -> tuple[Subject, Watch]:
        watch = Watch(*wanted)
        return make_subject(StoreSettings(observers=watch, **settings)), watch  # type: ignore[arg-type]  # of one field each

    return make


def alerts(subject: Subject) -> list[int]:
    """The numbers of the jobs that were observed, once for each observer's job."""
    found = (
        job_id.int % 100_000
        for job_id, job in subject.observe().jobs.items()
        if job["wire_name"] == "shop.alert"
    )
    return sorted(found)


def told(watch: Watch) -> list[tuple[int, JobState, Cause, int, int | None]]:
    return [(e.job_id.int, e.state, e.cause, e.attempt, e.run) for e in watch.told]


def run(store: Store, end: Callable[..., Outcome], retry: object = ONCE, **options: object) -> None:
    """Claim what is due of ``default`` and end it."""
    jobs = store.claim(claim_request(retry=retry), now=NOW).jobs
    store.report([end(job, **options) for job in jobs], now=NOW)


def test_dead_letter_inserts_one_job_for_its_observer(watched: Watched) -> None:
    subject, watch = watched(DEAD)
    subject.store.enqueue([new_job(1, tags='{"a":"1"}'), new_job(2)])
    run(subject.store, failed, tags='{"b":"2"}')
    assert alerts(subject) == [1, 2]
    ended = next(end for end in watch.told if end.job_id == uid(1))
    assert ended._replace(tags="") == Ended(
        job_id=uid(1),
        wire_name="shop.pack",
        queue="default",
        state=DEAD,
        cause=Cause.ATTEMPTS,
        attempt=1,
        run=1,
        finished_at=T0,
        error_class=FAILURE.error_class,
        message=FAILURE.message,
        tags="",
    )
    assert sorted(ended.tags.replace(" ", "").strip("{}").split(",")) == ['"a":"1"', '"b":"2"']
    alert = subject.observe().jobs[watch_id(watch, ended)]
    assert (alert["state"], alert["queue"]) == (JobState.SCHEDULED, "alerts")


def watch_id(watch: Watch, ended: Ended) -> UUID:
    return uid(100_000 * (watch.told.index(ended) + 1) + ended.job_id.int)


def test_job_of_an_observer_can_be_claimed_at_once(watched: Watched) -> None:
    subject, _watch = watched(DEAD)
    subject.store.enqueue([new_job(1)])
    run(subject.store, failed)
    later = subject.store.report([], now=NOW).clock + MINUTE
    assert len(subject.store.claim(claim_request("alerts"), now=later).jobs) == 1


@pytest.mark.parametrize(
    ("end", "state", "cause", "attempt"),
    [
        (succeeded, JobState.SUCCEEDED, Cause.RETURNED, 1),
        (failed, DEAD, Cause.ATTEMPTS, 1),
        (timed_out, DEAD, Cause.TIMEOUT, 1),
        (gave_up, DEAD, Cause.GAVE_UP, 1),
        (output_refused, DEAD, Cause.OUTPUT, 1),
        (cancelled, JobState.CANCELLED, Cause.JOB, 1),
        (undecodable, JobState.QUARANTINED, Cause.UNDECODABLE, 1),
    ],
)
def test_every_end_of_an_attempt_is_told(
    watched: Watched, end: Callable[..., Outcome], state: JobState, cause: Cause, attempt: int
) -> None:
    subject, watch = watched(*TERMINAL)
    subject.store.enqueue([new_job(1)])
    run(subject.store, end)
    assert told(watch) == [(1, state, cause, attempt, 1)]
    assert alerts(subject) == [1]


@pytest.mark.parametrize("end", [failed, snoozed, released, unroutable, timed_out])
def test_what_is_tried_again_is_told_to_nobody(
    watched: Watched, end: Callable[..., Outcome]
) -> None:
    subject, watch = watched(*TERMINAL)
    subject.store.enqueue([new_job(1)])
    due = {} if end in {released, unroutable} else {"due_at": T0 + MINUTE}
    run(subject.store, end, **due)
    assert states(subject.observe(), 1) == ("scheduled",)
    assert told(watch) == []


def test_attempt_is_the_one_that_ended_the_job(watched: Watched) -> None:
    subject, watch = watched(DEAD)
    subject.store.enqueue([new_job(1)])
    run(subject.store, snoozed, RETRY, due_at=NOW)
    run(subject.store, failed, RETRY, due_at=NOW)
    run(subject.store, failed, RETRY)
    assert told(watch) == [(1, DEAD, Cause.ATTEMPTS, 2, 3)]


def test_states_that_nobody_observes_are_told_to_nobody(watched: Watched) -> None:
    subject, watch = watched(JobState.QUARANTINED)
    subject.store.enqueue([new_job(1), new_job(2)])
    run(subject.store, failed)
    assert told(watch) == []
    assert alerts(subject) == []


def test_types_that_nobody_observes_are_told_to_nobody(watched: Watched) -> None:
    subject, watch = watched(*TERMINAL)
    subject.store.enqueue([new_job(1, wire_name="shop.other")])
    run(subject.store, succeeded)
    assert told(watch) == []


def test_stale_outcome_is_told_to_nobody(watched: Watched) -> None:
    subject, watch = watched(*TERMINAL)
    subject.store.enqueue([new_job(1)])
    (job,) = subject.store.claim(claim_request(retry=ONCE), now=NOW).jobs
    subject.store.report([failed(job)], now=NOW)
    subject.store.report([failed(job), succeeded(job)], now=NOW)
    assert told(watch) == [(1, DEAD, Cause.ATTEMPTS, 1, 1)]
    assert alerts(subject) == [1]


def test_cancellation_that_was_requested_is_told_as_one(watched: Watched) -> None:
    subject, watch = watched(JobState.CANCELLED)
    subject.store.enqueue([new_job(1)])
    (job,) = subject.store.claim(claim_request(), now=NOW).jobs
    subject.store.cancel([uid(1)], actor=ACTOR, now=NOW)
    subject.store.report([failed(job, due_at=NOW + MINUTE)], now=NOW)
    assert told(watch) == [(1, JobState.CANCELLED, Cause.OPERATOR, 1, 1)]


def test_hand_back_whose_grace_is_over_is_told(watched: Watched) -> None:
    subject, watch = watched(JobState.QUARANTINED)
    subject.store.enqueue([new_job(1)])
    run(subject.store, unroutable, at=T0 - 20 * SECOND)
    (job,) = subject.store.claim(claim_request(), now=NOW + HOUR).jobs
    subject.store.report([unroutable(job, at=NOW + HOUR)], now=NOW + HOUR)
    assert told(watch) == [(1, JobState.QUARANTINED, Cause.UNROUTABLE, 1, 2)]


def test_lapse_of_the_last_attempt_is_told(watched: Watched) -> None:
    subject, watch = watched(DEAD)
    subject.store.enqueue([new_job(1), new_job(2)])
    subject.store.claim(claim_request(retry=ONCE, limit=1), now=T0)
    subject.store.expire_leases(limit=10, now=T0 + HOUR)
    subject.store.claim(claim_request(retry=ONCE, pump_id=OTHER_PUMP), now=T0 + HOUR)
    subject.store.dispose(pumps=[OTHER_PUMP], now=T0 + HOUR)
    assert told(watch) == [
        (1, DEAD, Cause.ATTEMPTS, 1, 1),
        (2, DEAD, Cause.ATTEMPTS, 1, 1),
    ]
    assert alerts(subject) == [1, 2]
    assert watch.told[0].error_class is None


def test_recovered_lease_that_was_asked_to_stop_is_told(watched: Watched) -> None:
    subject, watch = watched(JobState.CANCELLED)
    subject.store.register(pump_info(), now=T0)
    subject.store.enqueue([new_job(1)])
    subject.store.claim(claim_request(), now=T0)
    subject.store.cancel([uid(1)], actor=ACTOR, now=T0)
    subject.store.recover(pump_id=PUMP, held=[], now=NOW)
    assert told(watch) == [(1, JobState.CANCELLED, Cause.OPERATOR, 1, 1)]


def test_ends_without_a_lease_are_told(watched: Watched) -> None:
    subject, watch = watched(*TERMINAL)
    subject.store.enqueue([new_job(1, deadline=T0 + SECOND), new_job(2), new_job(3)])
    subject.store.enqueue([new_job(4, parents=after(3)), new_job(5, parents=after(4))])
    subject.store.settle(limit=10, now=T0 + MINUTE)
    assert told(watch) == [(1, JobState.EXPIRED, Cause.DEADLINE, 1, None)]
    subject.store.cancel([uid(3)], actor=ACTOR, now=NOW)
    assert told(watch)[1:] == [
        (3, JobState.CANCELLED, Cause.OPERATOR, 1, None),
        (4, JobState.CANCELLED, Cause.PARENT, 1, None),
        (5, JobState.CANCELLED, Cause.PARENT, 1, None),
    ]
    assert alerts(subject) == [1, 3, 4, 5]
    assert watch.told[0].finished_at == T0 + MINUTE


def test_deadline_that_passes_between_attempts_is_told(watched: Watched) -> None:
    subject, watch = watched(DEAD)
    subject.store.enqueue([new_job(1, deadline=T0 + MINUTE)])
    run(subject.store, failed, RETRY, due_at=T0 + HOUR)
    subject.store.settle(limit=10, now=T0 + HOUR)
    assert told(watch) == [(1, DEAD, Cause.DEADLINE, 2, None)]


def test_job_that_is_born_cancelled_is_told(watched: Watched) -> None:
    subject, watch = watched(JobState.CANCELLED)
    subject.store.enqueue([new_job(1)])
    run(subject.store, failed)
    subject.store.enqueue([new_job(2, parents=after(1))])
    assert told(watch) == [(2, JobState.CANCELLED, Cause.PARENT, 1, None)]


def test_job_that_was_replaced_is_told(watched: Watched) -> None:
    subject, watch = watched(JobState.CANCELLED)
    subject.store.enqueue([new_job(1, unique_key="k")])
    subject.store.enqueue([new_job(2, unique_key="k", if_duplicate=IfDuplicate.REPLACE)])
    assert told(watch) == [(1, JobState.CANCELLED, Cause.SUPERSEDED, 1, None)]


def test_cancelled_workflow_is_told_job_by_job(watched: Watched) -> None:
    subject, watch = watched(JobState.CANCELLED)
    jobs = [new_job(1, workflow=uid(500)), new_job(2, workflow=uid(500), parents=after(1))]
    subject.store.start_workflow(NewWorkflow(id=uid(500), name="w"), jobs)
    subject.store.cancel_workflow(uid(500), actor=ACTOR, now=NOW)
    assert sorted(told(watch)) == [
        (1, JobState.CANCELLED, Cause.OPERATOR, 1, None),
        (2, JobState.CANCELLED, Cause.OPERATOR, 1, None),
    ]


def test_requeued_job_that_ends_again_is_told_again(watched: Watched) -> None:
    subject, watch = watched(DEAD)
    subject.store.enqueue([new_job(1)])
    run(subject.store, failed)
    subject.store.requeue([uid(1)], actor=ACTOR, now=NOW)
    run(subject.store, failed)
    assert told(watch) == [(1, DEAD, Cause.ATTEMPTS, 1, 1), (1, DEAD, Cause.ATTEMPTS, 1, 2)]
    assert alerts(subject) == [1, 1]


def test_a_turn_tells_of_what_it_reports(watched: Watched) -> None:
    subject, _watch = watched(DEAD)
    subject.store.enqueue([new_job(1), new_job(2)])
    (job,) = subject.store.claim(claim_request(limit=1, retry=ONCE), now=NOW).jobs
    subject.store.claim(claim_request("nothing"), now=NOW)
    _, claimed = subject.store.turn([failed(job)], claim_request(), now=NOW)
    assert [job.job_id for job in claimed.jobs] == [uid(2)]
    assert alerts(subject) == [1]


def test_observers_need_no_history(watched: Watched) -> None:
    subject, _watch = watched(DEAD, history=History.OFF)
    subject.store.enqueue([new_job(1)])
    run(subject.store, failed)
    assert subject.observe().outcomes == {}
    assert alerts(subject) == [1]
