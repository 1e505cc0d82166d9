"""The benchmark as an app of the project: one table for the bodies that read and write a row."""

from django.apps import AppConfig


class BenchConfig(AppConfig):
    """Holds ``Row`` and the ``bench`` command."""

    name = "testproject.bench"
    label = "bench"
