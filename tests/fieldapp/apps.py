"""The app's configuration."""

from django.apps import AppConfig


class FieldConfig(AppConfig):
    name = "tests.fieldapp"
    label = "field"
