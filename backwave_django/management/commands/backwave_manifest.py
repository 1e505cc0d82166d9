"""``manage.py backwave_manifest``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError

from backwave_django.core.errors import ConfigurationError
from backwave_django.jobs import manifest
from backwave_django.jobs.registry import registry

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from backwave_django.jobs.manifest import Change, Entry

FILE: Final = "backwave_manifest.json"


class Command(BaseCommand):
    """Keep the file that lists what waiting jobs rely on."""

    help = (
        "Write every wire name with its queue, version and parameters into a file to be committed, "
        "so that a change of what waiting jobs rely on shows in a diff. A change that would leave "
        "jobs behind is refused, with exit code 1, unless it is accepted. With --check nothing is "
        "written, and any difference from the file is exit code 1."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a file, and what may be done to it."""
        parser.add_argument(
            "--file", default=FILE, metavar="PATH", help=f"The manifest. Default: {FILE}."
        )
        parser.add_argument(
            "--check", action="store_true", help="Change nothing; exit with 1 on any difference."
        )
        parser.add_argument(
            "--accept",
            action="store_true",
            help="Write changes too that leave behind the jobs that wait.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare, tell each difference, and write or refuse."""
        path = Path(options["file"])
        now = manifest.entries(registry.all())
        committed = _committed(path)
        if committed is None and options["check"]:
            raise CommandError(f"{path} is not there: write it with `backwave_manifest`")
        changes = manifest.changes(committed or {}, now)
        for change in changes:
            self._tell(change)
        if options["check"]:
            self._checked(changes, path, same=committed == now)
            return
        breaking = sum(change.breaks for change in changes)
        if breaking and not options["accept"]:
            self.stdout.write(
                f"{path} was not written: {breaking} of {len(changes)} changes leave waiting jobs "
                "behind. Give an old name as an alias, raise the version and add an upcaster, or "
                "pass --accept once no such job waits any more."
            )
            sys.exit(1)
        path.write_text(manifest.render(now), encoding="utf-8")
        self.stdout.write(f"{path}: {len(now)} job types, {len(changes)} changes.")

    def _checked(self, changes: tuple[Change, ...], path: Path, *, same: bool) -> None:
        if same:
            self.stdout.write(f"{path} is as the code declares.")
            return
        breaking = sum(change.breaks for change in changes)
        what = f"{breaking} changes leave waiting jobs behind" if breaking else "it is out of date"
        self.stdout.write(f"{path} is not as the code declares: {what}.")
        sys.exit(1)

    def _tell(self, change: Change) -> None:
        style = self.style.ERROR if change.breaks else self.style.NOTICE
        sign = "!!" if change.breaks else "  "
        self.stdout.write(style(f"{sign} {change.wire_name}: {change.text}"))


def _committed(path: Path) -> dict[str, Entry] | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    try:
        return manifest.parse(text)
    except ConfigurationError as error:
        raise CommandError(f"{path}: {error}") from error
