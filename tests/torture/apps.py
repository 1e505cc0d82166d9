"""The app of what is run under torture."""

import logging

from django.apps import AppConfig


class TortureConfig(AppConfig):
    name = "tests.torture"
    label = "torture"

    def ready(self) -> None:
        # Bodies fail by the hundred, as they are told to; what pumps say is worth reading.
        logging.getLogger("backwave.job").setLevel(logging.CRITICAL)
