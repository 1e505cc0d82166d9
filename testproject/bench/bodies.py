"""What the measured jobs do, the same for every contestant."""

import time

from testproject.bench.ledger import END, START, Ledger

ROWS = 1_000
SLEEP_SECONDS = 0.01

_ledger: list[Ledger] = []


def ledger() -> Ledger:
    """Return this process's ledger."""
    if not _ledger:
        _ledger.append(Ledger())
    return _ledger[0]


def noop(number: int) -> None:
    """Write that it ran."""
    book = ledger()
    book.write(START, number)
    book.write(END, number)


def sleep(number: int) -> None:
    """Wait as a body waits that talks to some service."""
    book = ledger()
    book.write(START, number)
    time.sleep(SLEEP_SECONDS)
    book.write(END, number)


def orm(number: int) -> None:
    """Read one row and update it, through Django's ORM."""
    from testproject.bench.models import Row

    book = ledger()
    book.write(START, number)
    row = Row.objects.get(pk=number % ROWS + 1)
    row.n += 1
    row.save(update_fields=["n"])
    book.write(END, number)


def nap(number: int) -> None:
    """Run for ten seconds, for the measure of how soon a killed job is run again."""
    book = ledger()
    book.write(START, number)
    time.sleep(0.0 if book.path.with_suffix(".quick").exists() else 10.0)
    book.write(END, number)


BODIES = {"noop": noop, "sleep": sleep, "orm": orm, "nap": nap}
