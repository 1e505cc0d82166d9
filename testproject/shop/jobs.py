"""What an order sets off. Each body may run more than once and has its effect once."""

from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.utils import timezone

import backwave_django as backwave
from testproject.shop.gateway import CardDeclined, PaymentGateway
from testproject.shop.models import Invoice, Order, Payment

SOON = backwave.Retry(
    max_attempts=5, initial=timedelta(seconds=1), multiplier=2, maximum=timedelta(seconds=5)
)


@backwave.job("shop.charge", queue="critical", retry=SOON)
def charge(
    order_id: int,
    ctx: backwave.JobContext = backwave.context(),
    gateway: PaymentGateway = backwave.service(),
) -> dict[str, str]:
    """Charge the order's total; the order's number is the reference that makes it idempotent."""
    order = _order(order_id)
    try:
        paid = gateway.charge(reference=order.number, amount=order.total, attempt=ctx.attempt)
    except CardDeclined as refusal:
        raise backwave.GiveUp(str(refusal)) from refusal
    Payment.objects.get_or_create(
        reference=order.number,
        defaults={
            "order": order,
            "transaction": paid.transaction,
            "amount": paid.amount,
            "charged_at": timezone.now(),
        },
    )
    return {"transaction": paid.transaction, "amount": str(paid.amount)}


@backwave.job("shop.send_receipt", queue="mail", retry=SOON)
def send_receipt(order_id: int) -> None:
    """Mail the receipt, unless an earlier attempt came as far as noting that it did."""
    order = _order(order_id)
    if order.receipt_sent_at is not None:
        return
    EmailMessage(
        subject=f"Your order {order.number}",
        body=render_to_string("shop/receipt.txt", {"order": order}),
        to=[order.customer.email],
    ).send()
    Order.objects.filter(pk=order.pk).update(receipt_sent_at=timezone.now())


@backwave.job("shop.write_invoice", queue="default", retry=SOON)
def write_invoice(order_id: int) -> str:
    """Render the invoice into a file. A second attempt writes the same file again."""
    order = _order(order_id)
    file_name = f"{order.number}.html"
    _write(
        settings.INVOICE_DIR / file_name, render_to_string("shop/invoice.html", {"order": order})
    )
    Invoice.objects.get_or_create(
        order=order, defaults={"file_name": file_name, "written_at": timezone.now()}
    )
    return file_name


def _order(order_id: int) -> Order:
    found = Order.objects.select_related("customer").prefetch_related("lines__product")
    return found.get(pk=order_id)


def _write(path: Path, text: str) -> None:
    # Renaming puts the file there whole or not at all, whenever the process dies.
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(text)
    draft.replace(path)
