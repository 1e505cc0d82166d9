"""Letting time pass, where that is the fault; and stopping a process where it hurts nobody else."""

import signal

from django.contrib.auth.models import Group
from django.db import OperationalError, connection

from tests.e2e.processes import Process
from tests.fieldapp.ledger import now
from tests.pumps.waiting import until


def passes(seconds: float) -> None:
    """Wait until so much time has gone by."""
    began = now()
    until(lambda: now() - began >= seconds, seconds=seconds + 30)


def freeze(process: Process) -> None:
    """Stop a process, at a moment when it does not hold SQLite's only lock."""

    def stopped() -> bool:
        process.signal(signal.SIGSTOP)
        if connection.vendor != "sqlite":
            return True
        try:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout = 200")
            Group.objects.filter(name="nobody").delete()
        except OperationalError:
            process.signal(signal.SIGCONT)
            return False
        finally:
            connection.close()
        return True

    until(stopped, what="the process is stopped")


def thaw(process: Process) -> None:
    process.signal(signal.SIGCONT)
