"""What the shop keeps: who ordered what, what was paid, which invoice was written."""

from decimal import Decimal

from django.db import models


class Customer(models.Model):
    """Somebody who orders."""

    name = models.CharField(max_length=120)
    email = models.EmailField(unique=True)

    def __str__(self) -> str:
        return self.name


class Product(models.Model):
    """Something to order. ``unit_price`` is today's; an order line keeps its own."""

    sku = models.CharField("SKU", max_length=20, unique=True)
    name = models.CharField(max_length=120)
    unit_price = models.DecimalField(max_digits=10, decimal_places=2)

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    """One order of one customer."""

    number = models.CharField(max_length=20, unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="orders")
    placed_at = models.DateTimeField()
    receipt_sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-placed_at", "number"]

    def __str__(self) -> str:
        return self.number

    @property
    def total(self) -> Decimal:
        """What the customer owes; two decimals."""
        return sum((line.amount for line in self.lines.all()), Decimal("0.00"))


class OrderLine(models.Model):
    """So many of one product, at the price of the day."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, on_delete=models.PROTECT, related_name="+")
    quantity = models.PositiveIntegerField()
    unit_price = models.DecimalField(max_digits=10, decimal_places=2)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["order", "product"], name="shop_line_once_per_product"),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} x {self.product}"

    @property
    def amount(self) -> Decimal:
        """Quantity times price."""
        return self.quantity * self.unit_price


class Payment(models.Model):
    """A charge that the gateway confirmed."""

    order = models.OneToOneField(Order, on_delete=models.PROTECT, related_name="payment")
    reference = models.CharField(max_length=40, unique=True)
    transaction = models.CharField(max_length=40)
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    charged_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.reference


class Invoice(models.Model):
    """An invoice that was written to a file below the project's invoice directory."""

    order = models.OneToOneField(Order, on_delete=models.PROTECT, related_name="invoice")
    file_name = models.CharField(max_length=60)
    written_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.file_name
