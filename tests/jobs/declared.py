"""Job types that are declared bare, in a module that passes for one of the shop's."""

import backwave_django as backwave

__name__ = "testproject.shop.declared"


@backwave.job
def bare() -> str:
    """A function."""
    return "bare"


class Bare:
    """A class."""

    def run(self) -> str:
        """The body."""
        return "Bare"


bare_class = backwave.job(Bare)
