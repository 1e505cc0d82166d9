"""``manage.py backwave_why JOB_ID``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from backwave_django import monitor
from backwave_django.management.speaking import job_id

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Say why a job does not run."""

    help = "Say where a job stands and what is in its way, the decisive thing first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take an id."""
        parser.add_argument("job", type=job_id, metavar="JOB_ID")

    def handle(self, *args: Any, **options: Any) -> None:
        """Say it. Values and messages of errors are not shown."""
        clock = monitor.database_clock()
        found = monitor.read_job(options["job"], clock=clock)
        if found is None:
            raise CommandError(
                f"Job {options['job']} is gone: purged after its retention, rolled back, or never "
                "there."
            )
        job = found.job
        self.stdout.write(f"{job.wire_name} {job.pk}: {job.state}, queue {job.queue}")
        for reason in found.reasons:
            self.stdout.write(f"{'*' if reason.blocks else '-'} {reason.text}")
        for attempt in found.attempts:
            outcome = attempt.outcome
            when = monitor.moment(outcome.finished_at, now=clock)
            error = f" {outcome.error_class}" if outcome.error_class else ""
            what = monitor.outcome_label(outcome)
            self.stdout.write(f"  attempt {outcome.attempt}: {what}{error}, {when}")
