"""The app of what is run under torture."""

from django.apps import AppConfig


class TortureConfig(AppConfig):
    name = "tests.torture"
    label = "torture"
