"""The shop's pages of the admin: to look at what the jobs did."""

# ModelAdmin is generic in the stubs, not at run time.
# mypy: disable-error-code="type-arg"

from django.contrib import admin

from testproject.shop.models import Customer, Invoice, Order, OrderLine, Payment, Product


class OrderLineInline(admin.TabularInline):
    """The lines, on the order's page."""

    model = OrderLine
    extra = 0


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    """Orders, newest first."""

    list_display = ["number", "customer", "placed_at", "receipt_sent_at"]
    list_select_related = ["customer"]
    search_fields = ["number", "customer__name", "customer__email"]
    date_hierarchy = "placed_at"
    inlines = [OrderLineInline]


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    """Customers by name."""

    list_display = ["name", "email"]
    search_fields = ["name", "email"]


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    """Products by SKU."""

    list_display = ["sku", "name", "unit_price"]
    search_fields = ["sku", "name"]


@admin.register(Payment)
class PaymentAdmin(admin.ModelAdmin):
    """Confirmed charges."""

    list_display = ["reference", "order", "amount", "transaction", "charged_at"]
    list_select_related = ["order"]
    search_fields = ["reference", "transaction"]


@admin.register(Invoice)
class InvoiceAdmin(admin.ModelAdmin):
    """Written invoices."""

    list_display = ["file_name", "order", "written_at"]
    list_select_related = ["order"]
    search_fields = ["file_name"]
