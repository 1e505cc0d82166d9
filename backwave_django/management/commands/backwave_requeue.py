"""``manage.py backwave_requeue JOB_ID ...``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from backwave_django import operations
from backwave_django.management.speaking import act_on_jobs, add_actor_arguments, job_id

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Requeue jobs."""

    help = (
        "Bring ended jobs, successes apart, back with all their attempts, due now. Fails if any "
        "is left as it was."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take ids."""
        parser.add_argument("job", nargs="+", type=job_id, metavar="JOB_ID")
        add_actor_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Requeue, and tell what came of each job."""
        act_on_jobs(self, operations.requeue, options["job"], options)
