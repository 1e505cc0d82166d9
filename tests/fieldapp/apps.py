"""The app's configuration."""

from importlib import import_module

from django.apps import AppConfig


class FieldConfig(AppConfig):
    name = "tests.fieldapp"
    label = "field"

    def ready(self) -> None:
        """Import what declares jobs outside of the app's ``jobs`` module."""
        import_module("tests.fieldapp.reactions")
