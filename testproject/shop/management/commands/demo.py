"""``demo``: from nothing to a shop whose orders were worked off, on either database."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from testproject.devpostgres import PostgresUnavailable, PrivatePostgres

MANAGE = Path(__file__).resolve().parents[3] / "manage.py"
USER, PASSWORD = "admin", "demo"  # for a server that listens on the loopback address only
CHILD_SECONDS = 60


class Command(BaseCommand):
    """Each step is one of the shop's own commands, run on the demo's database."""

    help = (
        "Set up a demo database, import the shop's orders, run pumps until idle and tell what "
        "happened. DATABASE_URL is not used."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Where, how much, and what is left afterwards."""
        parser.add_argument(
            "--postgres", action="store_true", help="use a private PostgreSQL instead of SQLite"
        )
        parser.add_argument(
            "--orders", type=int, metavar="N", help="import the first N orders (default: all)"
        )
        parser.add_argument(
            "--processes", type=int, default=1, metavar="N", help="pump processes (default: 1)"
        )
        parser.add_argument(
            "--keep",
            action="store_true",
            help="go on with the SQLite file of the last demo instead of starting afresh",
        )
        parser.add_argument(
            "--serve", action="store_true", help="then serve the admin until Ctrl-C"
        )
        parser.add_argument(
            "--port", type=int, default=8000, help="the admin's port (default: 8000)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Go through the demo; a step that fails ends it with that step's exit code."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if options["keep"] and options["postgres"]:
            raise CommandError(
                "--keep goes with SQLite: the private PostgreSQL does not outlive it"
            )
        place = settings.VAR_DIR / "demo"
        if not options["keep"]:
            shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        try:
            with _database(place, postgres=options["postgres"]) as url:
                self._go_through(_environ(url, place), options)
        except PostgresUnavailable as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("interrupted", returncode=130) from None

    def _go_through(self, environ: dict[str, str], options: dict[str, Any]) -> None:
        self._say(f"Setting up the shop in {environ['SHOP_VAR_DIR']}")
        _manage(environ, "migrate", "--verbosity", "0")
        _manage(environ, "shop_user", USER, PASSWORD)
        orders = [] if options["orders"] is None else ["--orders", str(options["orders"])]
        _manage(environ, "import_orders", *orders)
        self._say("Working off their jobs; some charges fail at first, and are tried again")
        _manage(environ, "work_off", "--processes", str(options["processes"]))
        self._say("")
        if options["serve"]:
            self._serve(environ, options["port"])
        elif options["postgres"]:
            self._say("The private PostgreSQL ends with the demo. To log in to the admin, append")
            self._say("  --serve")
        else:
            self._say("To log in to the admin, append --serve, or run")
            self._say(f"  {_serve_line(environ, options['port'])}")
            self._say(f"and go to {_address(options['port'])} as {USER}, password {PASSWORD}")

    def _serve(self, environ: dict[str, str], port: int) -> None:
        self._say(f"The admin is at {_address(port)}: log in as {USER}, password {PASSWORD}.")
        self._say("Ctrl-C ends it.")
        try:
            _manage({**environ, "DEBUG": "1"}, "runserver", "--noreload", f"127.0.0.1:{port}")
        except KeyboardInterrupt:
            self._say("Stopped.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # the children write to the same place


@contextmanager
def _database(place: Path, *, postgres: bool) -> Iterator[str]:
    """The demo's ``DATABASE_URL``, while its database is there."""
    if not postgres:
        yield f"sqlite:///{place / 'db.sqlite3'}"
        return
    with PrivatePostgres() as server:
        yield server.create_database("shop")


def _environ(url: str, place: Path) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": url, "SHOP_VAR_DIR": str(place), "DEBUG": "0"}


def _manage(environ: dict[str, str], *arguments: str) -> None:
    """Run one of the shop's commands; ``CommandError`` with its exit code when it fails."""
    child = subprocess.Popen(  # noqa: S603 - this project's own commands
        [sys.executable, str(MANAGE), *arguments], env=environ
    )
    try:
        code = child.wait()
    except KeyboardInterrupt:
        # The terminal has told the child as well; a signal sent to this process has not.
        child.terminate()
        child.wait(timeout=CHILD_SECONDS)
        raise
    if code:
        raise CommandError(f"{arguments[0]} ended with exit code {code}", returncode=abs(code))


def _serve_line(environ: dict[str, str], port: int) -> str:
    python = os.path.relpath(sys.executable)
    names = ("DATABASE_URL", "SHOP_VAR_DIR")
    variables = " ".join(f"{name}={shlex.quote(environ[name])}" for name in names)
    return f"{variables} {python} {os.path.relpath(MANAGE)} runserver {port}"


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}/admin/"
