"""``manage.py backwave_sync_schedules``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from backwave_django import monitor
from backwave_django.conf import get_config
from backwave_django.core.errors import UsageError
from backwave_django.core.schedule_answers import DeclareResult
from backwave_django.store.declarations import sync_schedules

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from backwave_django.core.schedule_answers import DeclareRow


class Command(BaseCommand):
    """Bring schedules in line with the code."""

    help = (
        "Make, update and retire schedules, so that they are as this code declares them: a step "
        "of each deploy, like migrate. Schedules of other owners, and those made in the admin, "
        "are left alone. Exits with 1 if any is refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take an owner, a release, and whether to look only."""
        parser.add_argument(
            "--owner", help='Whose schedules. Default: BACKWAVE["SCHEDULES"]["OWNER"], "default".'
        )
        parser.add_argument(
            "--release",
            type=int,
            metavar="NUMBER",
            help=(
                "The number of this release; nothing is done after a newer one. "
                'Default: BACKWAVE["SCHEDULES"]["RELEASE"], none.'
            ),
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="Change nothing; exit with 1 if anything would change.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Sync, and tell what came of each schedule that was not as declared."""
        rows = self._synced(options)
        for row in rows:
            if row.result is not DeclareResult.UNCHANGED:
                detail = f" ({row.detail})" if row.detail else ""
                self.stdout.write(f"{row.name}: {row.result}{detail}")
        changed = [row for row in rows if row.result is not DeclareResult.UNCHANGED]
        refused = [row for row in rows if row.result is DeclareResult.REFUSED]
        self.stdout.write(
            f"{len(rows) - len(changed)} of {len(rows)} schedules are as the code declares them."
            if options["check"]
            else f"{len(rows)} schedules, {len(changed) - len(refused)} changed."
        )
        if refused or (options["check"] and changed):
            sys.exit(1)

    def _synced(self, options: dict[str, Any]) -> tuple[DeclareRow, ...]:
        using = get_config().database
        try:
            with transaction.atomic(using=using):
                rows = sync_schedules(
                    owner=options["owner"],
                    release=options["release"],
                    now=monitor.database_clock(),
                )
                if options["check"]:
                    transaction.set_rollback(True, using=using)
        except UsageError as error:
            raise CommandError(str(error)) from error
        return rows
