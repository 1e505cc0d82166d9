"""The app's configuration."""

from django.apps import AppConfig


class GroundConfig(AppConfig):
    name = "tests.field"
    label = "ground"
