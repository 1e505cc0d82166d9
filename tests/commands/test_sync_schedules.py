"""``backwave_sync_schedules``: a deploy step that brings schedules in line with the code."""

from contextlib import nullcontext
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

import backwave_django as backwave
from backwave_django.jobs.schedules import schedules
from backwave_django.models import Schedule
from tests.factories import ScheduleFactory

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@backwave.job("tests.sync.work")
def work(number: int = 0) -> None:
    """A body that never runs here."""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(schedules, "_declared", [])


def declare(*names, every=HOUR):
    schedules._declared.clear()
    for name in names:
        backwave.add_schedule(name, every=every, job=work)


def run(*arguments, code=0):
    out = StringIO()
    with pytest.raises(SystemExit) if code else nullcontext() as ending:
        call_command("backwave_sync_schedules", *arguments, stdout=out)
    assert ending is None or ending.value.code == code
    return out.getvalue()


def test_it_makes_updates_and_retires():
    declare("a", "b")
    assert run() == "a: created\nb: created\n2 schedules, 2 changed.\n"
    declare("b", "c", every=2 * HOUR)
    assert run() == "b: updated (rule)\nc: created\na: retired\n3 schedules, 3 changed.\n"
    assert run() == "2 schedules, 0 changed.\n"
    assert Schedule.objects.get(name="a").retired_at is not None
    assert Schedule.objects.get(name="b").every_seconds == 7200.0


def test_a_look_changes_nothing_and_says_so_by_its_exit_code():
    declare("a")
    assert run("--check", code=1) == (
        "a: created\n0 of 1 schedules are as the code declares them.\n"
    )
    assert not Schedule.objects.exists()
    run()
    assert run("--check") == "1 of 1 schedules are as the code declares them.\n"


def test_owners_leave_each_other_alone():
    declare("a")
    run("--owner=crm")
    ScheduleFactory.create(name="by hand", owner=None)
    declare("b")
    assert run("--owner=shop") == "b: created\n1 schedules, 1 changed.\n"
    assert set(Schedule.objects.filter(retired_at=None).values_list("name", "owner")) == {
        ("a", "crm"), ("b", "shop"), ("by hand", None),
    }  # fmt: skip
    declare("a", "by hand")
    assert run("--owner=shop", code=1) == (
        "a: refused (it belongs to 'crm')\nby hand: refused (a person made it)\nb: retired\n"
        "3 schedules, 1 changed.\n"
    )


def test_an_older_release_is_refused():
    declare("a")
    run("--release=2")
    declare("a", every=2 * HOUR)
    assert run("--release=1", code=1) == (
        "a: refused (release 2 has written it)\n1 schedules, 0 changed.\n"
    )
    assert Schedule.objects.get().every_seconds == 3600.0
    run("--release=3")
    assert (Schedule.objects.get().every_seconds, Schedule.objects.get().release) == (7200.0, 3)


@override_settings(BACKWAVE={"SCHEDULES": {"OWNER": "shop", "RELEASE": 5}})
def test_owner_and_release_come_from_the_settings():
    declare("a")
    run()
    assert (Schedule.objects.get().owner, Schedule.objects.get().release) == ("shop", 5)


def test_a_wrong_declaration_changes_nothing():
    declare("a", "a")
    with pytest.raises(CommandError, match="two schedules are named 'a'"):
        run()
    assert not Schedule.objects.exists()
