"""Schedules: what people see of them, what they may do, and what they may make."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

import backwave_django as backwave
from backwave_django.jobs.schedules import schedules
from backwave_django.models import Job, OperatorAction, Schedule
from tests.admin.conftest import VIEW as LOOK
from tests.admin.conftest import text_of
from tests.factories import JobFactory, ScheduleFactory

pytestmark = pytest.mark.django_db

VIEW = (*LOOK, "view_schedule")
LIST = reverse("admin:backwave_schedule_changelist")
ADD = reverse("admin:backwave_schedule_add")
ACTIONS = {
    "pause": "pause_schedule",
    "resume": "pause_schedule",
    "run": "trigger_schedule",
    "delete": "delete_schedule",
}


@backwave.job("tests.admin.cleanup", queue="bulk", schedulable=True)
def cleanup(days: int, note: str = "") -> None:
    """Open to people."""


@backwave.job("tests.admin.secret")
def secret() -> None:
    """Not open to people."""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(schedules, "_declared", [])


def url(page, name):
    return reverse(f"admin:backwave_schedule_{page}", args=[name])


def planned(name="nightly", **values):
    """A schedule that a pump has planned."""
    now = timezone.now()
    given = {"cursor": now, "next_at": now + timedelta(hours=1), "created_at": now}
    return ScheduleFactory.create(name=name, **{**given, **values})


# Looking


def test_list_shows_rule_zone_state_next_run_and_last_outcome(person):
    planned(cron="0 2 * * *", timezone="Europe/Zurich")
    ticks = [timezone.now() - timedelta(days=days) for days in (1, 2)]
    for tick, state in zip(ticks, ("dead_lettered", "succeeded"), strict=True):
        JobFactory.create(schedule="nightly", scheduled_for=tick, state=state)
    text = text_of(person(*VIEW).get(LIST))
    for words in ("At 02:00 every day", "0 2 * * * Europe/Zurich", "active", "dead-lettered"):
        assert words in text
    assert "succeeded" not in text, "only the last one"
    assert "Add a schedule" not in text


def test_list_shows_what_is_wrong(person):
    planned("bad", cron="61 * * * *")
    planned("late", next_at=timezone.now() - timedelta(minutes=5))
    planned("off", enabled=False)
    planned("old", owner="default", retired_at=timezone.now())
    planned("lost", problem="no pump knows the job type 'x'")
    now = timezone.now()
    planned("busy", skipped=1234, last_skipped_at=now, last_skip_reason="overlap")
    text = text_of(person(*VIEW).get(LIST))
    for words in (
        "the minute field cannot be &#x27;61&#x27;",
        "in error",
        "overdue",
        "No pump has taken up its last tick",
        "paused",
        "retired",
        "no pump knows the job type",
        "1,234 ticks",
        "an earlier job was not over",
    ):
        assert words in text


def test_list_takes_the_same_number_of_statements_for_any_number_of_schedules(person):
    client = person(*VIEW)
    counts = []
    for batch in range(2):
        for number in range(10):
            name = f"s{batch}{number}"
            planned(name)
            JobFactory.create(schedule=name, scheduled_for=timezone.now())
        with CaptureQueriesContext(connection) as captured:
            client.get(LIST)
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert counts[0] < 12


def test_page_shows_the_next_ten_runs_on_both_clocks(person):
    planned(cron="30 2 * * *", timezone="Asia/Kathmandu")
    text = text_of(person(*VIEW).get(url("change", "nightly")))
    assert text.count("02:30:00 +0545") >= 10
    assert text.count("20:45:00") >= 10


def test_page_of_a_broken_schedule_opens(person):
    planned("bad", cron="61 * * * *", timezone="Mars/Olympus", catch_up="all")
    text = text_of(person(*VIEW).get(url("change", "bad")))
    assert "None: it does not tick." in text
    assert "the minute field" in text


def test_f157_arguments_are_hidden_from_those_who_may_not_see_them(person):
    planned(payload='{"args":[],"kwargs":{"user":"ann","password":"hunter2"}}')
    assert "ann" not in text_of(person(*VIEW).get(url("change", "nightly")))
    text = text_of(person(*VIEW, "view_job_sensitive").get(url("change", "nightly")))
    assert "ann" in text
    assert "hunter2" not in text
    assert "ann" not in text_of(person(*VIEW, "view_job_sensitive").get(LIST))


def test_page_tells_drift_from_the_code(person):
    backwave.schedule("0 2 * * *", timezone="UTC", name="nightly")(secret)
    spec = schedules.specs()[0]
    planned(owner="default", cron="0 3 * * *", wire_name=spec.wire_name, payload=spec.payload)
    text = text_of(person(*VIEW).get(url("change", "nightly")))
    assert "Not as the code declares it (rule)" in text
    assert "It is defined in code: change it there." in text


@pytest.mark.parametrize("name", ["a/b", "x y", "ünï", "50%", 'q"uote', "_2F"])
def test_any_name_has_a_page(person, name):
    planned(name)
    client = person(*VIEW, *ACTIONS.values())
    page = next(
        part.split('"')[0]
        for part in text_of(client.get(LIST)).split('<th scope="row"><a href="')[1:]
    )
    text = text_of(client.get(page))
    pause = next(part.split('"')[0] for part in text.split('href="') if "/pause/" in part[:200])
    client.post(pause, {"reason": "because"})
    assert Schedule.objects.get().enabled is False


# Acting


def test_pause_and_resume_ask_for_a_reason(person):
    planned()
    client = person(*VIEW, "pause_schedule")
    assert "makes no jobs until" in text_of(client.get(url("pause", "nightly")))
    assert "This field is required" in text_of(client.post(url("pause", "nightly"), {}))
    assert Schedule.objects.get().enabled
    text = text_of(client.post(url("pause", "nightly"), {"reason": "vendor"}, follow=True))
    assert "Schedule nightly is paused." in text
    assert not Schedule.objects.get().enabled
    client.post(url("resume", "nightly"), {"reason": "vendor is back"})
    assert Schedule.objects.get().enabled
    log = OperatorAction.objects.order_by("id").values_list("action", "reason", "result")
    assert list(log) == [("pause", "vendor", "done"), ("resume", "vendor is back", "done")]


def test_run_now_makes_a_job(person):
    planned(wire_name="tests.admin.cleanup")
    client = person(*VIEW, "trigger_schedule")
    text = text_of(client.post(url("run", "nightly"), {"reason": ""}, follow=True))
    assert "Schedule nightly has made a job." in text
    job = Job.objects.get()
    assert (job.wire_name, job.schedule, job.scheduled_for) == (
        "tests.admin.cleanup",
        "nightly",
        None,
    )


def test_run_now_says_why_it_did_not(person):
    planned(no_overlap=True)
    JobFactory.create(schedule="nightly")
    client = person(*VIEW, "trigger_schedule")
    text = text_of(client.post(url("run", "nightly"), {"reason": ""}, follow=True))
    assert "Nothing was changed: a job of it is not over yet" in text
    assert Job.objects.count() == 1


def test_what_code_declares_can_be_paused_and_run_and_nothing_else(person):
    planned(owner="default")
    client = person(*VIEW, *ACTIONS.values(), "change_schedule")
    text = text_of(client.get(url("change", "nightly")))
    assert "Pause…" in text
    assert "Run now…" in text
    assert "Delete…" not in text
    assert "Change…" not in text
    assert client.get(url("edit", "nightly")).status_code == 403
    assert client.post(url("edit", "nightly"), {}).status_code == 403
    client.post(url("delete", "nightly"), {"reason": ""})
    assert Schedule.objects.exists()


def test_delete_asks_then_deletes(person):
    planned()
    JobFactory.create(schedule="nightly")
    client = person(*VIEW, "delete_schedule")
    assert "Jobs that it made stay" in text_of(client.get(url("delete", "nightly")))
    text = text_of(client.post(url("delete", "nightly"), {"reason": "old"}, follow=True))
    assert "Schedule nightly is deleted." in text
    assert not Schedule.objects.exists()
    assert Job.objects.exists()


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_f158_each_action_needs_its_own_right(person, action):
    planned()
    others = set(ACTIONS.values()) - {ACTIONS[action]}
    client = person(*VIEW, *others, "add_schedule", "change_schedule")
    for response in (
        client.get(url(action, "nightly")),
        client.post(url(action, "nightly"), {"reason": "x"}),
    ):
        assert response.status_code == 403
    assert Schedule.objects.get().enabled
    assert not Job.objects.exists()


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_f158_a_get_changes_nothing_and_a_post_needs_its_token(person, action):
    planned()
    client = person(*VIEW, *ACTIONS.values())
    client.get(url(action, "nightly"), {"reason": "x"})
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert strict.post(url(action, "nightly"), {"reason": "x"}).status_code == 403
    assert Schedule.objects.get().enabled
    assert not Job.objects.exists()


def test_f158_who_may_look_may_not_act(person):
    planned()
    client = person(*VIEW)
    text = text_of(client.get(url("change", "nightly")))
    for words in ("Pause…", "Run now…", "Delete…", "Change…"):
        assert words not in text
    assert client.get(ADD).status_code == 403
    assert client.post(url("change", "nightly"), {}).status_code == 403
    assert client.post(LIST, {"action": "delete_selected"}).status_code == 403


def test_who_may_not_look_sees_nothing(person):
    planned()
    client = person("view_job", *ACTIONS.values(), "add_schedule")
    pages = [LIST, ADD, url("change", "nightly"), url("edit", "nightly")]
    pages += [url(action, "nightly") for action in ACTIONS]
    assert {client.get(page).status_code for page in pages} == {403}


def test_a_schedule_that_is_not_there_is_not_found(person):
    client = person(*VIEW, *ACTIONS.values(), "change_schedule")
    pages = [url("change", "x"), url("edit", "x"), *(url(action, "x") for action in ACTIONS)]
    assert {client.get(page).status_code for page in pages} == {404}


# Making


FORM = {
    "name": "mine",
    "wire_name": "tests.admin.cleanup",
    "arguments": '{"days": 30}',
    "cron": "0 2 * * *",
    "every": "",
    "timezone": "Europe/Zurich",
    "catch_up": "skip",
    "queue": "",
    "priority": "",
    "reason": "asked for",
}


def test_people_make_schedules_of_job_types_that_are_open_to_them(person):
    client = person(*VIEW, "add_schedule")
    assert "Add a schedule" in text_of(client.get(LIST))
    page = text_of(client.get(ADD))
    assert "tests.admin.cleanup" in page
    assert "tests.admin.secret" not in page
    text = text_of(client.post(ADD, FORM, follow=True))
    assert "Schedule mine is saved." in text
    made = Schedule.objects.get()
    assert (made.cron, made.timezone, made.wire_name, made.queue, made.owner) == (
        "0 2 * * *",
        "Europe/Zurich",
        "tests.admin.cleanup",
        "bulk",
        None,
    )
    assert json.loads(made.payload)["kwargs"] == {"days": 30}
    assert made.next_at is not None
    entry = OperatorAction.objects.get()
    assert (entry.action, entry.target, entry.reason) == ("create", "mine", "asked for")


def test_an_interval_is_written_as_people_write_it(person):
    client = person(*VIEW, "add_schedule")
    for text, seconds in (("90", 90), ("15m", 900), ("4h", 14400), ("1.5 d", 129600)):
        client.post(ADD, {**FORM, "name": text, "cron": "", "every": text})
        assert Schedule.objects.get(name=text).every_seconds == seconds


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"wire_name": "tests.admin.secret"}, "Select a valid choice"),
        ({"wire_name": "os.system"}, "Select a valid choice"),
        ({"wire_name": "subprocess.run"}, "Select a valid choice"),
        ({"arguments": '__import__("os").system("true")'}, "This is not JSON"),
        ({"arguments": '{"a": str(os.uname())}'}, "This is not JSON"),
        ({"arguments": "{}"}, "missing a required argument"),
        ({"arguments": '{"days": 1, "x": 2}'}, "got an unexpected keyword argument"),
        ({"arguments": "7"}, "write a JSON list"),
        ({"arguments": "[" * 100_000}, "This is not JSON"),
        ({"arguments": '{"days": NaN}'}, "NaN"),
        ({"cron": "61 * * * *"}, "the minute field cannot be"),
        ({"cron": "@reboot"}, "write five fields"),
        ({"cron": ""}, "write a cron expression"),
        ({"every": "15m"}, "not both"),
        ({"cron": "", "every": "often"}, "Write a number of seconds"),
        ({"cron": "", "every": "0.1"}, "an interval between one second"),
        ({"cron": "", "every": "9" * 30}, "That is too long"),
        ({"timezone": "Mars/Olympus"}, "no such zone here"),
        ({"priority": "500"}, "whole number from -100 to 100"),
        ({"queue": "no such/queue!"}, "letters, digits"),
        ({"catch_up": "all"}, "Select a valid choice"),
        ({"name": "taken"}, "a schedule of this name is there"),
        ({"name": ""}, "This field is required"),
    ],
)
def test_f155_what_cannot_be_is_refused_beside_its_field(person, values, words):
    planned("taken")
    client = person(*VIEW, "add_schedule")
    assert words in text_of(client.post(ADD, {**FORM, **values}))
    assert list(Schedule.objects.values_list("name", flat=True)) == ["taken"]


def test_people_change_what_people_made(person):
    maker = person(*VIEW, "add_schedule")
    maker.post(ADD, FORM)
    client = person(*VIEW, "change_schedule", "view_job_sensitive")
    page = text_of(client.get(url("edit", "mine")))
    assert "{&quot;days&quot;: 30}" in page
    values = {**FORM, "cron": "0 3 * * *", "arguments": '{"days": 7}', "name": "other"}
    client.post(url("edit", "mine"), values)
    changed = Schedule.objects.get()
    assert (changed.name, changed.cron) == ("mine", "0 3 * * *")
    assert json.loads(changed.payload)["kwargs"] == {"days": 7}


def test_who_may_not_see_arguments_leaves_them_as_they_are(person):
    person(*VIEW, "add_schedule").post(ADD, FORM)
    client = person(*VIEW, "change_schedule")
    page = text_of(client.get(url("edit", "mine")))
    assert "30" not in page.split("<fieldset", 1)[1].split("</fieldset>", 1)[0]
    client.post(url("edit", "mine"), {**FORM, "cron": "0 3 * * *", "arguments": '{"days": 7}'})
    changed = Schedule.objects.get()
    assert changed.cron == "0 3 * * *"
    assert json.loads(changed.payload)["kwargs"] == {"days": 30}


def test_without_open_job_types_the_form_says_what_to_do(person, monkeypatch):
    monkeypatch.setattr("backwave_django.admin.schedule_form.registry.all", tuple)
    text = text_of(person(*VIEW, "add_schedule").get(ADD))
    assert "schedulable=True" in text
