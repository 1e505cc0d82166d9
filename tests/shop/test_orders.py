from decimal import Decimal

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import IntegrityError

import backwave_django as backwave
from backwave_django.models import Job
from testproject.shop.generate_orders import CSV_PATH
from testproject.shop.jobs import charge, send_receipt, write_invoice
from testproject.shop.models import Invoice, Order, Payment
from testproject.shop.orders import read_orders, take_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _place(settings, tmp_path):
    settings.INVOICE_DIR = tmp_path / "invoices"


@pytest.fixture
def order():
    return take_in(next(read_orders(CSV_PATH)))


def test_shipped_orders_are_taken_in_once(capsys):
    call_command("import_orders", orders=20)
    call_command("import_orders", orders=30)
    assert Order.objects.count() == 30
    assert Job.objects.count() == 90
    assert "20 were there before" in capsys.readouterr().out


def test_order_enqueues_its_three_jobs(order):
    names = Job.objects.order_by("wire_name").values_list("wire_name", "queue", "state")
    assert list(names) == [
        ("shop.charge", "critical", "scheduled"),
        ("shop.send_receipt", "mail", "scheduled"),
        ("shop.write_invoice", "default", "scheduled"),
    ]


def test_order_that_cannot_be_stored_leaves_nothing():
    lines = next(read_orders(CSV_PATH))
    with pytest.raises(IntegrityError):
        take_in([*lines, lines[0]])
    assert not Order.objects.exists()
    assert not Job.objects.exists()


@pytest.mark.parametrize("text", ["order,sku\nW-1,BK-1001\n", "order,placed_at\nW-1,yesterday\n"])
def test_unreadable_rows_are_refused_with_the_file_named(tmp_path, text):
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(CommandError, match=r"broken\.csv"):
        call_command("import_orders", path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere\.csv cannot be read"):
        call_command("import_orders", tmp_path / "nowhere.csv")


def test_receipt_is_mailed_once(order):
    send_receipt(order.pk)
    send_receipt(order.pk)
    (receipt,) = mail.outbox
    assert receipt.to == [order.customer.email]
    assert str(order.total) in receipt.body


def test_invoice_is_written_once(order, settings):
    assert write_invoice(order.pk) == write_invoice(order.pk)
    (written,) = settings.INVOICE_DIR.iterdir()
    assert str(order.total) in written.read_text()
    assert Invoice.objects.get().file_name == written.name


def test_order_is_charged_once(order):
    assert charge(order.pk) == charge(order.pk)
    assert Payment.objects.get().amount == order.total > Decimal(0)


def test_declined_card_gives_up():
    call_command("import_orders", orders=15)
    declined = Order.objects.get(number="W-00015")
    with pytest.raises(backwave.GiveUp, match="card declined"):
        charge(declined.pk)
