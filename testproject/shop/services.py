"""What the shop's jobs are given: the services that an attempt's container resolves."""

import svcs

from testproject.shop.gateway import PaymentGateway


def register(registry: svcs.Registry) -> None:
    """Register the payment gateway; the attempt's container hands it to ``charge``."""
    registry.register_factory(PaymentGateway, PaymentGateway)
