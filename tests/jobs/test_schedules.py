"""Schedules that code declares: what is stored of them, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

import backwave_django as backwave
from backwave_django.checks import check_schedules
from backwave_django.core.errors import (
    InvalidDeclaration,
    InvalidOption,
    UnknownJobType,
    UnserializableValue,
    WrongArguments,
)
from backwave_django.core.schedules import CatchUp, Rule, ScheduleSpec
from backwave_django.jobs.schedules import schedules, spec_for_person
from backwave_django.models import Job

QUARTER = timedelta(minutes=15)


@backwave.job("tests.schedules.nightly")
def nightly() -> None:
    """Needs nothing."""


@backwave.job(
    "tests.schedules.cleanup",
    queue="bulk",
    priority=7,
    tags={"team": "ops"},
    limit=backwave.Limit("disk", 2),
    version=3,
    schedulable=True,
)
def cleanup(days: int, *, dry_run: bool = False) -> None:
    """Needs something."""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Schedules of this test alone."""
    monkeypatch.setattr(schedules, "_declared", [])


def only():
    (spec,) = schedules.specs()
    return spec


# Declaring


def test_the_decorator_schedules_a_job_type():
    decorated = backwave.schedule(
        "0 2 * * *", timezone="Europe/Zurich", catch_up="coalesce", no_overlap=True
    )(nightly)
    assert decorated is nightly
    assert only() == ScheduleSpec(
        name="tests.schedules.nightly",
        rule=Rule(cron="0 2 * * *", timezone="Europe/Zurich"),
        wire_name="tests.schedules.nightly",
        queue="default",
        payload=only().payload,
        catch_up=CatchUp.COALESCE,
        no_overlap=True,
    )


def test_a_call_with_arguments_can_be_scheduled():
    backwave.add_schedule("cleanup", every=QUARTER, job=cleanup.s(30, dry_run=True))
    assert only() == ScheduleSpec(
        name="cleanup",
        rule=Rule(every_seconds=900.0),
        wire_name="tests.schedules.cleanup",
        queue="bulk",
        priority=7,
        payload=only().payload,
        payload_version=3,
        tags=only().tags,
        limit_key="disk",
    )
    assert cleanup.decode(only().payload, 3).kwargs == {"days": 30, "dry_run": True}
    assert only().tags == '{"team":"ops"}'


def test_options_of_a_call_go_before_the_job_types_own():
    call = cleanup.options(queue="urgent", priority=-1, tags={"why": "quarter"}).s(1)
    backwave.add_schedule("cleanup", "0 0 1 */3 *", job=call)
    spec = only()
    assert (spec.queue, spec.priority) == ("urgent", -1)
    assert spec.tags == '{"team":"ops","why":"quarter"}'


def test_a_job_type_that_needs_nothing_needs_no_call():
    backwave.add_schedule("plain", "0 0 * * *", job=nightly)
    assert only().wire_name == "tests.schedules.nightly"


@override_settings(TIME_ZONE="Asia/Kathmandu")
def test_the_zone_is_the_projects_unless_one_is_given():
    backwave.schedule("0 2 * * *")(nightly)
    backwave.add_schedule("utc", "0 2 * * *", job=nightly, timezone="UTC")
    assert [spec.rule.timezone for spec in schedules.specs()] == ["Asia/Kathmandu", "UTC"]


def test_schedules_come_by_name():
    for name in ("b", "a", "c"):
        backwave.add_schedule(name, every=QUARTER, job=nightly)
    assert [spec.name for spec in schedules.specs()] == ["a", "b", "c"]


def test_a_module_that_is_loaded_anew_replaces_its_schedules():
    backwave.schedule("0 2 * * *")(nightly)
    code: Any = nightly.__wrapped__  # type: ignore[attr-defined]  # what the decorator got
    again: Any = backwave.job("tests.schedules.nightly")(code)
    backwave.schedule("0 3 * * *")(again)
    assert only().rule.cron == "0 3 * * *"


# What is refused


@pytest.mark.parametrize(
    ("declaration", "option", "hint"),
    [
        ({"cron": "61 * * * *"}, "cron", "the minute field cannot be '61'"),
        ({"cron": "hourly"}, "cron", "write five fields"),
        ({"cron": 5}, "cron", "write a cron expression"),
        ({}, "every", "write a cron expression"),
        ({"cron": "* * * * *", "every": QUARTER}, "cron", "not both"),
        ({"every": 900}, "every", "write a timedelta"),
        ({"every": timedelta(milliseconds=10)}, "every", "between one second and ten years"),
        ({"every": timedelta(days=9999)}, "every", "between one second and ten years"),
        ({"every": QUARTER, "timezone": "Mars/Olympus"}, "timezone", "no such zone"),
        ({"every": QUARTER, "timezone": 1}, "timezone", "write an IANA name"),
        ({"every": QUARTER, "name": ""}, "name", "write a text of 1 to 200 characters"),
        ({"every": QUARTER, "name": "x\0"}, "name", "leave NUL"),
        ({"every": QUARTER, "catch_up": "all"}, "catch_up", "write 'skip' or 'coalesce'"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(declaration, option, hint):
    cron = declaration.pop("cron", None)
    with pytest.raises(InvalidOption) as refusal:
        backwave.schedule(cron, **declaration)
    assert refusal.value.option == option
    assert hint in refusal.value.hint
    assert schedules.specs() == ()


@pytest.mark.parametrize(
    "option",
    [
        {"delay": QUARTER},
        {"deadline": QUARTER},
        {"unique": "k"},
        {"due_at": None, "unique": "k"},
    ],
)
def test_options_for_one_job_only_are_refused(option):
    with pytest.raises(InvalidOption, match="queue, priority and tags"):
        backwave.add_schedule("s", every=QUARTER, job=nightly.options(**option).s())


def test_the_decorator_belongs_above_the_job():
    with pytest.raises(InvalidDeclaration, match=r"goes above @backwave\.job"):
        backwave.schedule("0 2 * * *")(lambda: None)  # type: ignore[arg-type]  # the mistake


def test_a_name_is_declared_once():
    backwave.schedule("0 2 * * *")(nightly)
    backwave.schedule("0 14 * * *")(nightly)
    with pytest.raises(InvalidDeclaration, match="two schedules are named"):
        schedules.specs()
    (error,) = check_schedules()
    assert error.id == "backwave.E033"
    assert "two schedules are named" in error.msg


def test_arguments_that_do_not_fit_are_told_by_a_check():
    backwave.add_schedule("cleanup", every=QUARTER, job=cleanup.s("x", "y", "z"))  # type: ignore[call-arg, arg-type]  # the mistake
    with pytest.raises(WrongArguments, match="too many positional"):
        schedules.specs()
    assert [error.id for error in check_schedules()] == ["backwave.E033"]


def test_arguments_that_are_no_json_are_told_by_a_check():
    backwave.add_schedule("cleanup", every=QUARTER, job=cleanup.s(object()))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(UnserializableValue):
        schedules.specs()


def test_good_declarations_pass_the_check():
    backwave.schedule("0 2 * * *")(nightly)
    assert check_schedules() == []


# Calls


@pytest.mark.django_db
def test_a_call_may_be_made_any_number_of_times():
    call = cleanup.s(30)
    handles = [call.enqueue() for _ in range(3)]
    assert len({handle.id for handle in handles}) == 3
    assert set(Job.objects.values_list("wire_name", flat=True)) == {"tests.schedules.cleanup"}


# What people may make


def person(**values):
    given = {
        "name": "mine",
        "wire_name": "tests.schedules.cleanup",
        "arguments": {"days": 7},
        "cron": "0 2 * * *",
    }
    return spec_for_person(**{**given, **values})


def test_people_schedule_job_types_that_are_open_to_them():
    spec = person(timezone="Europe/Berlin", catch_up="coalesce", priority=-3)
    assert (spec.queue, spec.priority, spec.limit_key) == ("bulk", -3, "disk")
    assert cleanup.decode(spec.payload, 3).kwargs == {"days": 7}
    assert person(arguments=[7]).payload == person().payload
    assert person(cron=None, every=QUARTER, queue="x").rule == Rule(every_seconds=900.0)


@pytest.mark.parametrize(
    "wire_name",
    [
        "tests.schedules.nightly",  # not schedulable
        "os.system",
        "subprocess.run",
        "tests.jobs.test_schedules.cleanup",
        "django.core.management.call_command",
        "",
    ],
)
def test_f155_nothing_else_can_be_scheduled_by_people(wire_name):
    with pytest.raises(UnknownJobType):
        person(wire_name=wire_name)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, WrongArguments),
        ({"days": 1, "more": 2}, WrongArguments),
        ([1, 2, 3], WrongArguments),
        ('__import__("os").system("true")', InvalidOption),
        (None, InvalidOption),
        (7, InvalidOption),
    ],
)
def test_f155_arguments_are_json_that_fits_the_signature(arguments, error):
    with pytest.raises(error):
        person(arguments=arguments)
