"""The app's configuration."""

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """The shop, as the admin shows it."""

    name = "testproject.shop"
    label = "shop"
    default_auto_field = "django.db.models.BigAutoField"
