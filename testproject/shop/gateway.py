"""A payment gateway that behaves like one: it is down now and then, and declines some cards.

It is a pretence, and it is deterministic: what happens depends on the reference and the attempt.
"""

from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256


class GatewayUnavailable(Exception):
    """The gateway did not answer. Trying again later helps."""


class CardDeclined(Exception):
    """The bank said no. Trying again does not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The gateway's confirmation."""

    transaction: str
    amount: Decimal


class PaymentGateway:
    """Charges cards. A reference is charged once: asked again, it confirms the first charge."""

    unavailable_once_in = 8
    declined_once_in = 100

    def charge(self, *, reference: str, amount: Decimal, attempt: int) -> Charge:
        """Charge ``amount`` under ``reference``.

        Raises ``GatewayUnavailable`` on the first attempts of some references, and
        ``CardDeclined`` on every attempt of a few.
        """
        lot = int.from_bytes(sha256(reference.encode()).digest()[:8])
        if lot % self.declined_once_in == 0:
            raise CardDeclined(f"card declined for {reference}")
        bad_attempts = 1 + (lot // self.unavailable_once_in) % 2
        if lot % self.unavailable_once_in == 1 and attempt <= bad_attempts:
            raise GatewayUnavailable(f"no answer for {reference}, attempt {attempt}")
        return Charge(transaction=f"TX-{lot:020d}", amount=amount)
