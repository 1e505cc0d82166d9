"""``manage.py runpumps``: run the pumps of one or more worker groups until told to stop."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.db.utils import Error as DatabaseError

from backwave_django.conf import get_config
from backwave_django.core.dials import StopRule
from backwave_django.core.errors import ConfigurationError
from backwave_django.monitor.migrations import unapplied
from backwave_django.pumps.children import CHILD_OPTION, follow_parent
from backwave_django.pumps.clock import SystemClock
from backwave_django.pumps.company import refuse_company
from backwave_django.pumps.deaths import bury
from backwave_django.pumps.nodes import Node
from backwave_django.pumps.plans import NodePlan, plan_node
from backwave_django.pumps.processes import Parent
from backwave_django.pumps.reload import Reloader
from backwave_django.pumps.shutdown import ABANDONED, DRAINED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    from backwave_django.conf import Config

EXIT_CODES: Final = """\
exit codes:
  0    drained: every outcome is recorded, or its job released
  1    wrong usage or configuration, or no database at the start
  3    all pumps halted, or a child process died five times in a minute
  4    drained, but bodies were abandoned at SHUTDOWN_TIMEOUT
  130  ended by a second SIGINT
  143  ended by a second SIGTERM

The first SIGTERM or SIGINT drains: nothing new begins, what runs may finish within
SHUTDOWN_TIMEOUT (seconds, 30 by default). Jobs that end badly do not change the exit code.
"""

IN_A_TEST: Final = (
    "runpumps cannot work inside a transaction: its pumps have connections of their own and would "
    "not see this one's jobs. In a test, use TransactionTestCase (pytest: transactional_db), or "
    "run jobs on the test's own connection with backwave_django.testing.Harness "
    "(pytest: backwave_harness)."
)


class Command(BaseCommand):
    """Runs pumps in the foreground."""

    help = "Run the pumps of one or more worker groups until told to stop."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Keep the line breaks of the table of exit codes."""
        kwargs.setdefault("epilog", EXIT_CODES)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--group",
            action="append",
            metavar="NAME",
            help='a worker group of BACKWAVE["GROUPS"]; may be given several times '
            "(default: the group named default, or the only one)",
        )
        parser.add_argument(
            "--processes",
            type=_count,
            default=1,
            metavar="N",
            help="how many processes run these groups, each with all pumps (default: 1)",
        )
        parser.add_argument(
            "--queues",
            metavar="A,B",
            help="serve only these queues of the chosen groups (default: all of them)",
        )
        ends = parser.add_mutually_exclusive_group()
        ends.add_argument(
            "--once", action="store_true", help="claim once per pump, finish that, and end"
        )
        ends.add_argument(
            "--drain", action="store_true", help="end once nothing is due and nothing runs"
        )
        parser.add_argument(
            "--max-jobs",
            type=_count,
            metavar="N",
            help="end after N attempts per pump (default: no limit)",
        )
        parser.add_argument(
            "--reload", action="store_true", help="start anew when code changes; for development"
        )
        parser.add_argument(
            "--health-file",
            type=Path,
            metavar="PATH",
            help="touch this file every second while all pumps are well; "
            "its age in seconds is what a supervisor looks at",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="check everything, say what would run, and end"
        )
        parser.add_argument(CHILD_OPTION, type=int, dest="child_of", help=argparse.SUPPRESS)

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Look for the database before the checks: some ask it, and would end in a traceback."""
        with suppress(ConfigurationError):  # a check says so, by its id
            _connect(get_config())
        super().check(*args, **kwargs)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; end with one of the exit codes above."""
        try:
            config = get_config()
            plan = _plan(config, options)
            _check_database(config)
            code = self._run(plan, config, options)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        self._end(code)

    def _run(self, plan: NodePlan, config: Config, options: dict[str, Any]) -> int:
        if options["child_of"] is not None:
            follow_parent(options["child_of"])
            return Node(plan, config=config).run(ends_process=self._is_whole_process())
        for option, is_given in (
            ("--reload", options["reload"]),
            ("--processes", options["processes"] > 1),
        ):
            if is_given and not options["dry_run"]:
                self._need_command_line(option)
        _check_company(plan, config, processes=options["processes"])
        self._greet(plan, config, options)
        if options["dry_run"]:
            return DRAINED
        if options["reload"]:
            return Reloader().run(ends_process=True)
        if options["processes"] > 1:
            return Parent(
                processes=options["processes"],
                clock=SystemClock(),
                bury=partial(bury, using=config.database),
            ).run(ends_process=True)
        return Node(plan, config=config).run(ends_process=self._is_whole_process())

    def _is_whole_process(self) -> bool:
        """Whether this process is here for this command, and ends with it."""
        return bool(getattr(self, "_called_from_command_line", False))

    def _greet(self, plan: NodePlan, config: Config, options: dict[str, Any]) -> None:
        processes = options["processes"]
        settings = connections[config.database].settings_dict
        self.stdout.write(
            f"runpumps, pid {os.getpid()}, {connections[config.database].vendor} "
            f"database {str(settings['NAME'])!r}, {processes * plan.slots} slots"
        )
        for group in plan.groups:
            pumps = processes * group.pumps
            self.stdout.write(
                f"  group {group.name}: {pumps} {'pump' if pumps == 1 else 'pumps'} of "
                f"{group.pool_size} slots, queues {_queues(group.queues, group.weights)}"
            )
        self.stdout.flush()

    def _need_command_line(self, option: str) -> None:
        if os.name != "posix":
            raise CommandError(f"{option} needs a POSIX system; start several commands instead.")
        if not self._is_whole_process():
            raise CommandError(f"{option} starts the command line anew: call it from a shell.")

    def _end(self, code: int) -> None:
        """End with ``code``, and do not wait for what bodies left behind."""
        leaves = code == ABANDONED or _left_behind()
        if leaves and self._is_whole_process():
            self.stdout.flush()
            self.stderr.flush()
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            # A thread of a body that never ends, or a pool with a stuck task, would keep the
            # interpreter from ending; all that had to be written is written.
            os._exit(code)
        if code:
            raise SystemExit(code)


def _plan(config: Config, options: dict[str, Any]) -> NodePlan:
    queues = options["queues"]
    return plan_node(
        config,
        groups=options["group"] or _default_group(config),
        queues=None if queues is None else [name for name in queues.split(",") if name],
        stop=StopRule(
            when_idle=options["drain"], once=options["once"], max_jobs=options["max_jobs"]
        ),
        health_file=options["health_file"],
    )


def _default_group(config: Config) -> Sequence[str]:
    if "default" in config.groups or len(config.groups) != 1:
        return ["default"]
    return list(config.groups)


def _check_database(config: Config) -> None:
    """Refuse to start without a database that has our tables. Leaves no connection open."""
    connection = _connect(config)
    if connection.in_atomic_block:
        raise CommandError(IN_A_TEST)
    with _refusing_outages(config):
        missing = unapplied(connection)
    connection.close()  # a parent would hold it for as long as it lives
    if missing:
        raise CommandError(
            f"The database {config.database!r} lacks {', '.join(missing)} of backwave: "
            "run manage.py migrate"
        )


def _check_company(plan: NodePlan, config: Config, *, processes: int) -> None:
    """Refuse to start where pumps would be in each other's way. Leaves no connection open."""
    with _refusing_outages(config):
        refuse_company(plan, processes=processes, using=config.database)
    connections[config.database].close()


def _connect(config: Config) -> BaseDatabaseWrapper:
    """Return Django's connection to the jobs' database, or refuse when it is not to be had."""
    connection = connections[config.database]
    with _refusing_outages(config):
        connection.ensure_connection()
    return connection


@contextmanager
def _refusing_outages(config: Config) -> Iterator[None]:
    """Refuse to start, in one line, when the database is away, or goes just now."""
    try:
        yield
    except DatabaseError as error:
        reason = " ".join(str(error).split())
        vendor = connections[config.database].vendor
        raise CommandError(
            f"The database {config.database!r} ({vendor}) cannot be used: {reason}"
        ) from error


def _left_behind() -> bool:
    """Whether threads are alive that the interpreter would wait for."""
    main = threading.main_thread()
    return any(not thread.daemon and thread is not main for thread in threading.enumerate())


def _queues(queues: Sequence[str], weights: Any) -> str:
    if weights is None:
        return ", ".join(queues)
    return ", ".join(f"{queue} x {weights[queue]}" for queue in queues)


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return number
