"""The question of the sixth hour: what grows while pumps work, come, go and are killed."""

import itertools
import os
from datetime import timedelta
from pathlib import Path

from django.db.models import Count

from backwave_django.models import Job
from tests.e2e.processes import Process
from tests.field import jobs
from tests.field.closing import assert_closed
from tests.field.ground import Ground
from tests.field.passing import passes
from tests.field.samples import Sample, judge, look, table
from tests.field.servers import Background
from tests.field.stage import say
from tests.field.stranding import every_second
from tests.fieldapp import jobs as field_jobs
from tests.fieldapp.ledger import Ledger, now

STEADY = 2
FEED_SECONDS = 0.25
CHURN_SECONDS = 15.0
LOOK_SECONDS = 3.0
BATCH = 20
#: Short, so that what is deleted keeps pace with what is made within a run of some minutes.
KEPT = 30
RETENTION = dict.fromkeys(
    ("SUCCEEDED", "CANCELLED", "EXPIRED", "DEAD_LETTERED", "QUARANTINED", "DEAD_PUMPS"), KEPT
)


def run(directory: Path, *, seconds: float) -> int:
    """Soak for so long; say what was seen. Return 0 when nothing grows."""
    field = Ground(environ=os.environ, directory=directory)
    try:
        return _soaked(field, Ledger(directory / "ledger"), seconds=seconds)
    finally:
        field.close()


def _soaked(field: Ground, ledger: Ledger, *, seconds: float) -> int:
    every_second()
    steady = [_start(field) for _ in range(STEADY)]
    began, samples = now(), list[Sample]()
    with (
        Background(_Feed().step, every_seconds=FEED_SECONDS) as feed,
        Background(_Churn(field).step, every_seconds=CHURN_SECONDS) as churn,
    ):
        while now() - began < seconds:
            passes(LOOK_SECONDS)
            assert feed.problem is None, feed.problem
            assert churn.problem is None, churn.problem
            samples.append(look(steady, at=now() - began))
    assert_closed(field, ledger)
    codes = field.stop(*field.living())
    return _report(samples, codes)


def _start(field: Ground) -> Process:
    top = {"RETENTION": RETENTION}
    return field.ready(top=top, POOL_SIZE=8, SHUTDOWN_TIMEOUT=5)


def _report(samples: list[Sample], codes: list[int]) -> int:
    for line in table(samples):
        say(line)
    say()
    judgements = judge(samples)
    say(f"{'':12} {'40-60 %':>10} {'80-100 %':>10} {'growth':>9}")
    for judgement in judgements:
        say(str(judgement))
    states = dict(Job.objects.values_list("state").annotate(Count("id")))
    say(f"\njobs left: {states}; exit codes at the end: {codes}")
    flat = all(judgement.flat for judgement in judgements) and not any(codes)
    say("Nothing grows." if flat else "SOMETHING GROWS.")
    return 0 if flat else 1


class _Feed:
    """Enqueues a bit of everything."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def step(self) -> None:
        number = next(self._numbers)
        jobs.query.enqueue_many([()] * (BATCH // 2))
        jobs.short.enqueue_many([(0.005,)] * (BATCH // 2))
        field_jobs.fail.enqueue()
        parent = field_jobs.noop.enqueue()
        field_jobs.noop.options(after=parent).enqueue()
        jobs.short.options(delay=timedelta(seconds=2)).enqueue(0)
        jobs.short.options(unique=f"key {number % 50}").enqueue(0)
        jobs.work.options(deadline=timedelta(seconds=20)).enqueue(0.3)
        if number % 20 == 0:
            jobs.work.options(delay=timedelta(hours=1)).enqueue(0).cancel(actor="field")


class _Churn:
    """Starts a process, and ends it by turns with grace and without."""

    def __init__(self, field: Ground) -> None:
        self._field = field
        self._guest: Process | None = None
        self._hard = itertools.cycle((False, True))

    def step(self) -> None:
        if self._guest is None:
            self._guest = _start(self._field)
            return
        if next(self._hard):
            self._guest.kill()
        else:
            self._field.stop(self._guest)
        self._guest = None
