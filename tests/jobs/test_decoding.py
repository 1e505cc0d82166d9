"""From a stored payload back to a call, across versions of the code."""

import json

import pytest

from backwave_django.core.errors import InvalidDeclaration, UndecodablePayload, WrongArguments
from backwave_django.jobs.job_type import UNNAMED, Declaration, JobType
from backwave_django.jobs.parameters import Call


def job_type(code, **declared):
    return JobType(code, Declaration(wire_name="shop.body", **declared))


def stored(*args, **kwargs):
    return json.dumps({"args": args, "kwargs": kwargs})


def test_what_was_stored_comes_back():
    def body(a, b=0, *more):
        """Any."""

    assert job_type(body).decode(stored(a=1, b=2), 1) == Call((), {"a": 1, "b": 2})
    assert job_type(body).decode(stored(1, 2, 3), 1) == Call((1, 2, 3), {})


def test_positions_find_their_names():
    def body(a, b=0):
        """Stored by position, by whoever wrote it."""

    assert job_type(body).decode(stored(1, 2), 1) == Call((), {"a": 1, "b": 2})


@pytest.mark.parametrize("payload", ["", "3", "null", "{}", '{"args":1,"kwargs":{}}', "[", None])
def test_f067_what_is_no_payload_is_undecodable(payload):
    def body():
        """Any."""

    with pytest.raises(UndecodablePayload):
        job_type(body).decode(payload, 1)


def test_f154_a_new_parameter_is_named_and_a_default_heals_it():
    def before(a, b):
        """What the jobs were stored for."""

    def strict(a, b, c):
        """The new code."""

    def lenient(a, b, c=0):
        """The healed code."""

    call = job_type(before).parameters.bind("shop.body", (1, 2), {})
    payload = stored(*call.args, **call.kwargs)
    with pytest.raises(WrongArguments, match=r"job 'shop.body': missing a required argument: 'c'"):
        job_type(strict).decode(payload, 1)
    assert job_type(lenient).decode(payload, 1).kwargs == {"a": 1, "b": 2}


def test_a_changed_order_of_parameters_does_not_matter():
    def before(a, b):
        """The old order."""

    def after(b, a):
        """The new order."""

    call = job_type(before).parameters.bind("shop.body", (1, 2), {})
    assert job_type(after).decode(stored(**call.kwargs), 1).kwargs == {"a": 1, "b": 2}


def charge_in(currency, amount):
    """The newest code."""


def upcasting(**declared):
    charge = job_type(charge_in, **declared)

    @charge.upcast(from_version=1)
    def rename(payload):
        payload["amount"] = payload.pop("total")
        return payload

    @charge.upcast(from_version=2)
    def add_currency(payload):
        return {**payload, "currency": "CHF"}

    return charge


def test_old_payloads_are_brought_forward_step_by_step():
    charge = upcasting()
    assert charge.version == 3
    newest = Call((), {"amount": 5, "currency": "CHF"})
    assert charge.decode(stored(total=5), 1) == newest
    assert charge.decode(stored(amount=5), 2) == newest
    assert charge.decode(stored(amount=5, currency="CHF"), 3) == newest


def test_versions_without_an_upcaster_are_alike():
    charge = upcasting(version=5)
    assert charge.version == 5
    assert charge.decode(stored(amount=5, currency="EUR"), 4).kwargs["currency"] == "EUR"


def test_arguments_without_a_name_are_given_to_the_upcaster_under_a_star():
    def body(first, *more):
        """Takes any number."""

    declared = job_type(body)
    seen = []

    @declared.upcast(from_version=1)
    def double(payload):
        seen.append(dict(payload))
        return {UNNAMED: [2 * each for each in payload[UNNAMED]]}

    assert declared.decode(stored(1, 2, 3), 1) == Call((2, 4, 6), {})
    assert seen == [{UNNAMED: [1, 2, 3]}]


def test_an_upcaster_that_raises_leaves_arguments_that_do_not_bind():
    with pytest.raises(WrongArguments, match="upcaster from version 1 raised KeyError: 'total'"):
        upcasting().decode(stored(sum=5), 1)


def test_an_upcaster_that_returns_no_arguments_is_named():
    declared = job_type(charge_in)

    @declared.upcast(from_version=1)
    def forgot_to_return(payload):
        payload["currency"] = "CHF"

    with pytest.raises(WrongArguments, match="upcaster from version 1 raised TypeError"):
        declared.decode(stored(amount=5), 1)


@pytest.mark.parametrize("version", [0, -1, True, "1"])
def test_versions_count_from_one(version):
    with pytest.raises(InvalidDeclaration, match="from_version="):
        job_type(charge_in).upcast(from_version=version)


def test_contradictions_between_versions_are_refused():
    with pytest.raises(InvalidDeclaration, match="version=2 is declared; raise it"):
        upcasting(version=2)
    with pytest.raises(InvalidDeclaration, match="two upcasters from version 1"):
        upcasting().upcast(from_version=1)
