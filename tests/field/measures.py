"""What is measured and reported, because no number is right on every machine."""

import os
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles

from django.db import connection, transaction
from django.test import override_settings

from backwave_django.conf import get_config
from backwave_django.models import Job
from tests.field import jobs
from tests.field.ground import Ground
from tests.field.servers import fetch
from tests.field.stage import say
from tests.fieldapp.ledger import now
from tests.pumps.waiting import until

SHORTS = 600
SHORT_SECONDS = 0.005
LONG_SECONDS = 60.0
ENQUEUES = 2_000


def mixed(directory: Path) -> int:
    """Run hundreds of short bodies without a long one in the pool, and with one."""
    field = Ground(environ=os.environ, directory=directory)
    try:
        process = field.ready(POOL_SIZE=8, LEASE_DURATION=60, HEARTBEAT_INTERVAL=20)
        _rate()  # warms threads and caches up
        alone = [_rate() for _ in range(3)]
        long = jobs.long.options(priority=10).enqueue(LONG_SECONDS)
        until(lambda: long.refresh().state == "leased")
        beside = [_rate() for _ in range(3)]
        assert long.refresh().state == "leased", "the long body ran all the while"
        process.kill()
    finally:
        field.close()
    say(f"{SHORTS} bodies of {SHORT_SECONDS * 1000:g} ms in a pool of 8, medians of three:")
    say(f"alone                   {median(alone):7.0f} jobs/s")
    say(f"beside one of {LONG_SECONDS:g} s      {median(beside):7.0f} jobs/s")
    # One of eight slots is taken: 7/8 of the rate is all there is when slots are what is short.
    say(f"share                   {median(beside) / median(alone):7.0%}")
    if connection.vendor == "postgresql":
        lags = sorted(_lags())
        cuts = quantiles(lags, n=100)
        say(f"recorded after          {median(lags) * 1000:7.1f} ms (median)")
        say(f"                        {cuts[94] * 1000:7.1f} ms (95 %)")
        say(f"                        {lags[-1] * 1000:7.1f} ms (most)")
    return 0


def _rate() -> float:
    Job.objects.filter(state="succeeded").delete()
    began = now()
    jobs.short.enqueue_many([(SHORT_SECONDS,)] * SHORTS)
    until(lambda: Job.objects.filter(state="succeeded").count() >= SHORTS, seconds=120)
    return SHORTS / (now() - began)


def _lags() -> list[float]:
    """From the end of each body to the commit of its outcome, in seconds."""
    rows = fetch(
        "SELECT extract(epoch FROM pg_xact_commit_timestamp(o.xmin))::float8 - j.output::float8 "
        "FROM backwave_outcome o JOIN backwave_job j ON j.id = o.job_id "
        "WHERE j.wire_name = 'ground.short' AND o.kind = 'succeeded'"
    )
    return [lag for (lag,) in rows]


def hints() -> int:
    """Enqueue one by one, with hints and without; then many in one transaction."""
    rates: dict[bool, list[float]] = {}
    for on in (True, False, True, False):
        with override_settings(BACKWAVE={"HINTS": on}):
            assert get_config().hints is on
            rates.setdefault(on, []).append(_enqueue_rate())
    say(f"enqueued one by one, with hints     {median(rates[True]):8.0f} jobs/s")
    say(f"enqueued one by one, without        {median(rates[False]):8.0f} jobs/s")
    say(f"share                               {median(rates[True]) / median(rates[False]):8.0%}")
    first, second = (_in_one_transaction(count) for count in (ENQUEUES, 2 * ENQUEUES))
    say(f"{ENQUEUES} in one transaction           {first.total_seconds():8.2f} s")
    say(f"{2 * ENQUEUES} in one transaction           {second.total_seconds():8.2f} s")
    return 0


def _enqueue_rate() -> float:
    began = now()
    for _ in range(ENQUEUES):
        jobs.short.enqueue(0)
    return ENQUEUES / (now() - began)


def _in_one_transaction(count: int) -> timedelta:
    began = now()
    with transaction.atomic():
        for _ in range(count):
            jobs.short.enqueue(0)
    return timedelta(seconds=now() - began)
