"""Taking in orders: the rows and the jobs of an order commit together, or not at all."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from django.db import transaction

from testproject.shop.jobs import charge, send_receipt, write_invoice
from testproject.shop.models import Customer, Order, OrderLine, Product

JOBS_PER_ORDER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the file."""

    order: str
    placed_at: datetime
    customer: str
    email: str
    sku: str
    product: str
    quantity: int
    unit_price: Decimal

    @classmethod
    def from_row(cls, row: dict[str, str]) -> "Line":
        """Read one row. ``KeyError`` or ``ValueError`` when it is not one of ours."""
        return cls(
            order=row["order"],
            placed_at=datetime.fromisoformat(row["placed_at"]),
            customer=row["customer"],
            email=row["email"],
            sku=row["sku"],
            product=row["product"],
            quantity=int(row["quantity"]),
            unit_price=Decimal(row["unit_price"]),
        )


def read_orders(path: Path) -> Iterator[list[Line]]:
    """Yield the lines of ``path``, an order at a time; an order's lines stand together."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = (Line.from_row(row) for row in csv.DictReader(file))
        for _, order in groupby(lines, key=lambda line: line.order):
            yield list(order)


def take_in(lines: list[Line]) -> Order | None:
    """Store one order and enqueue its jobs. ``None`` when it was taken in before."""
    head = lines[0]
    with transaction.atomic():
        customer, _ = Customer.objects.get_or_create(
            email=head.email, defaults={"name": head.customer}
        )
        order, is_new = Order.objects.get_or_create(
            number=head.order, defaults={"customer": customer, "placed_at": head.placed_at}
        )
        if not is_new:
            return None
        OrderLine.objects.bulk_create(
            OrderLine(
                order=order,
                product=_product(line),
                quantity=line.quantity,
                unit_price=line.unit_price,
            )
            for line in lines
        )
        for job in (charge, write_invoice, send_receipt):
            job.enqueue(order.pk)
    return order


def _product(line: Line) -> Product:
    known = {"name": line.product, "unit_price": line.unit_price}
    product, _ = Product.objects.get_or_create(sku=line.sku, defaults=known)
    return product
