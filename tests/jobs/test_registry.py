from datetime import timedelta

import pytest
from django.apps import apps

from backwave_django.core.errors import InvalidDeclaration, UnknownJobType
from backwave_django.core.limits import Cap
from backwave_django.core.retries import Retry, RetryTable
from backwave_django.jobs.job_type import Declaration, JobType
from backwave_django.jobs.limits import Limit
from backwave_django.jobs.registry import Registry

QUICK = Retry(max_attempts=2)


def send() -> None:
    """One body."""


def charge() -> None:
    """Another body."""


def registry_of(*job_types):
    made = Registry()
    for each in job_types:
        made.add(each)
    return made


def job_type(code=send, **declared):
    return JobType(code, Declaration(**declared))


def test_a_job_type_is_found_by_name_and_by_alias():
    found = job_type(wire_name="shop.send", aliases=("shop.mail",))
    registry = registry_of(found)
    assert registry.find("shop.send") is found
    assert registry.get("shop.mail") is found
    assert registry.find("shop.gone") is None


def test_an_unknown_name_is_refused_with_the_nearest_names():
    registry = registry_of(job_type(wire_name="shop.send"), job_type(charge, wire_name="x.y"))
    with pytest.raises(UnknownJobType) as refusal:
        registry.get("shop.sent")
    assert str(refusal.value) == (
        "no job type is registered as 'shop.sent'; did you mean 'shop.send'?"
    )


def test_each_job_type_is_listed_once_and_each_name_is_known():
    first = job_type(wire_name="b.send", aliases=("z.send", "a.send"))
    second = job_type(charge, wire_name="a.charge", version=3)
    registry = registry_of(first, second)
    assert registry.all() == (second, first)
    assert registry.known() == (("a.charge", 3), ("a.send", 1), ("b.send", 1), ("z.send", 1))


def test_pumps_learn_policies_time_outs_and_queues_under_every_name():
    registry = registry_of(
        job_type(
            wire_name="shop.send",
            aliases=("shop.mail",),
            retry=QUICK,
            timeout=timedelta(seconds=5),
            queue="mail",
        ),
        job_type(charge, wire_name="shop.charge"),
    )
    default = Retry()
    both = ("shop.mail", "shop.send")
    assert registry.retry_table(default) == RetryTable(
        default=default, own=dict.fromkeys(both, QUICK)
    )
    assert registry.timeouts() == dict.fromkeys(both, timedelta(seconds=5))
    assert registry.queues() == {"mail", "default"}


def test_declared_limits_are_found_by_key_or_by_the_type_that_computes_keys():
    def per_customer(order_id):
        return f"customer:{order_id}"

    table = registry_of(
        job_type(wire_name="shop.send", limit=Limit("gateway", 5)),
        job_type(charge, wire_name="shop.charge", limit=Limit(per_customer, 2)),
    ).limits()
    assert table.of(key="gateway", wire_name="shop.send") == Cap(5)
    assert table.of(key="customer:7", wire_name="shop.charge") == Cap(2)
    assert table.of(key="other", wire_name="shop.send") is None


def test_a_name_that_cannot_be_derived_while_django_starts_is_derived_later(monkeypatch):
    bare = job_type(bare_in_the_shop())
    registry = Registry()
    monkeypatch.setattr(apps, "apps_ready", False)
    registry.add(bare)
    assert registry.find("shop.early") is None
    assert not bare.is_named
    monkeypatch.setattr(apps, "apps_ready", True)
    assert registry.all() == (bare,)
    assert bare.wire_name == "shop.early"


def test_a_late_name_that_cannot_be_derived_is_reported_at_every_look_up(monkeypatch):
    registry = Registry()
    monkeypatch.setattr(apps, "apps_ready", False)
    registry.add(job_type(send))
    monkeypatch.setattr(apps, "apps_ready", True)
    for _ in range(2):
        with pytest.raises(InvalidDeclaration, match="in no installed app"):
            registry.all()


def bare_in_the_shop():
    def early() -> None:
        """As if at the top of a module of the shop."""

    early.__module__, early.__qualname__ = "testproject.shop.jobs", "early"
    return early
