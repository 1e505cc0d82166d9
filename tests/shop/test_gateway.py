from decimal import Decimal

import pytest

from testproject.shop.gateway import CardDeclined, GatewayUnavailable, PaymentGateway

REFERENCES = [f"W-{number:05d}" for number in range(1, 806)]


def charge(reference, attempt):
    return PaymentGateway().charge(reference=reference, amount=Decimal("10.00"), attempt=attempt)


def attempts_needed(reference):
    for attempt in range(1, 10):
        try:
            charge(reference, attempt)
        except GatewayUnavailable:
            continue
        except CardDeclined:
            return "declined"
        return attempt
    return "never"


def test_some_references_need_a_second_or_third_attempt_and_a_few_are_declined():
    assert {attempts_needed(reference) for reference in REFERENCES} == {1, 2, 3, "declined"}


def test_reference_is_charged_once():
    first = charge("W-00001", 1)
    assert charge("W-00001", 2) == first
    assert charge("W-00002", 1).transaction != first.transaction


def test_declined_card_stays_declined():
    declined = next(ref for ref in REFERENCES if attempts_needed(ref) == "declined")
    for attempt in (1, 2):
        with pytest.raises(CardDeclined, match=declined):
            charge(declined, attempt)
