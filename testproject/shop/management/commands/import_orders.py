"""``import_orders``: take in the orders of a CSV file."""

from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from testproject.shop.generate_orders import CSV_PATH
from testproject.shop.orders import JOBS_PER_ORDER, read_orders, take_in


class Command(BaseCommand):
    """Import orders; each in one transaction with its jobs."""

    help = "Import a CSV of order lines; each order enqueues its charge, invoice and receipt."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where from, and how many."""
        parser.add_argument(
            "path", nargs="?", type=Path, default=CSV_PATH, help="the file (default: the shipped)"
        )
        parser.add_argument(
            "--orders", type=int, metavar="N", help="import the first N orders (default: all)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import and say how much."""
        path: Path = options["path"]
        began = perf_counter()
        new = known = 0
        try:
            for lines in islice(read_orders(path), options["orders"]):
                if take_in(lines) is None:
                    known += 1
                else:
                    new += 1
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}") from error
        except (KeyError, ValueError) as error:
            raise CommandError(f"{path} after order {new + known}: {error!r}") from error
        self.stdout.write(
            f"Imported {new} orders with {new * JOBS_PER_ORDER} jobs"
            f" in {perf_counter() - began:.1f} s"
            + (f"; {known} were there before." if known else ".")
        )
