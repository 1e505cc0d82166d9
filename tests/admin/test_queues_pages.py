"""Queues: one page with all of them, and a question before one is paused or resumed."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from backwave_django.models import OperatorAction, Queue
from tests.admin.conftest import VIEW, text_of
from tests.factories import JobFactory, PumpFactory, QueueFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:backwave_queue_changelist")
PAUSE = reverse("admin:backwave_queue_pause", args=["mail"])
RESUME = reverse("admin:backwave_queue_resume", args=["mail"])


def test_page_shows_every_queue_with_its_state(person):
    JobFactory.create(queue="imports-2")
    PumpFactory.create(queues=["mail-2"], seen_at=timezone.now())
    QueueFactory.create(
        name="reports-2",
        paused=True,
        paused_at=timezone.now(),
        paused_by="operator1",
        pause_reason="vendor outage",
    )
    text = text_of(person().get(LIST))
    for words in ("imports-2", "no pump", "mail-2", "claiming", "reports-2", "vendor outage"):
        assert words in text
    assert "Pause…" not in text, "no right, no control"


def test_page_takes_the_same_number_of_statements_for_any_number_of_queues(person):
    client = person()
    counts = []
    for _ in range(2):
        for _ in range(20):
            JobFactory.create(queue=QueueFactory.create().name)
        with CaptureQueriesContext(connection) as captured:
            client.get(LIST)
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert counts[0] < 15


def test_pause_asks_then_pauses_with_an_end(person):
    client = person(*VIEW, "pause_queue")
    assert "new ones are still enqueued" in text_of(client.get(PAUSE))
    assert not Queue.objects.exists()
    response = client.post(PAUSE, {"length": "30", "reason": "vendor outage"}, follow=True)
    assert "Queue mail is paused." in text_of(response)
    queue = Queue.objects.get(pk="mail")
    assert (queue.paused, queue.pause_reason) == (True, "vendor outage")
    assert queue.paused_at is not None
    assert queue.paused_until == queue.paused_at + timedelta(minutes=30)
    assert OperatorAction.objects.get().action == "pause"


def test_pause_without_an_end_lasts_until_resumed(person):
    client = person(*VIEW, "pause_queue")
    client.post(PAUSE, {"length": "", "reason": "vendor outage"})
    assert Queue.objects.get(pk="mail").paused_until is None
    text = text_of(client.get(RESUME))
    assert "paused by person-" in text
    client.post(RESUME, {"reason": "vendor is back"})
    assert not Queue.objects.get(pk="mail").paused
    assert OperatorAction.objects.filter(action="resume", reason="vendor is back").exists()


def test_pause_until_a_time(person):
    client = person(*VIEW, "pause_queue")
    values = {"length": "time", "reason": "x", "until_0": "2099-01-02", "until_1": "03:04:05"}
    client.post(PAUSE, values)
    assert f"{Queue.objects.get(pk='mail').paused_until:%Y-%m-%d %H:%M:%S}" == "2099-01-02 03:04:05"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"length": "", "reason": ""}, "This field is required."),
        ({"length": "time", "reason": "x"}, "Give a date and a time."),
        (
            {"length": "time", "reason": "x", "until_0": "2001-01-01", "until_1": "00:00"},
            "This time has passed.",
        ),
        ({"length": "7", "reason": "x"}, "not one of the available choices"),
    ],
)
def test_what_is_missing_is_asked_again(person, values, words):
    assert words in text_of(person(*VIEW, "pause_queue").post(PAUSE, values))
    assert not Queue.objects.filter(paused=True).exists()


def test_queue_with_an_odd_name_is_paused_as_well(person):
    name = "a/b_c?d é"
    JobFactory.create(queue=name)
    client = person(*VIEW, "pause_queue")
    views = client.get(LIST).context["queues"]
    assert name in [row[0].name for row in views]
    text = text_of(client.get(LIST))
    url = next(part for part in text.split('"') if "a_2Fb" in part and part.endswith("/pause/"))
    client.post(url, {"length": "", "reason": "x"})
    assert Queue.objects.get(pk=name).paused


@pytest.mark.parametrize("url", [PAUSE, RESUME])
def test_person_who_may_only_look_switches_nothing(person, url):
    QueueFactory.create(name="mail", paused=True)
    client = person()
    assert client.get(url).status_code == 403
    assert client.post(url, {"length": "", "reason": "x"}).status_code == 403
    assert client.post(LIST, {"action": "resume"}).status_code == 403
    assert Queue.objects.get(pk="mail").paused
    assert not OperatorAction.objects.exists()


def test_right_to_pause_without_right_to_look_is_not_enough(person):
    assert person("pause_queue").post(PAUSE, {"length": "", "reason": "x"}).status_code == 403


def test_without_csrf_token_nothing_happens(django_user_model):
    client = Client(enforce_csrf_checks=True)
    client.force_login(django_user_model.objects.create_superuser("root"))
    assert client.post(PAUSE, {"length": "", "reason": "x"}).status_code == 403
    assert not Queue.objects.exists()


def test_address_of_one_queue_leads_to_the_page_of_all(person):
    QueueFactory.create(name="mail")
    response = person().get(reverse("admin:backwave_queue_change", args=["mail"]))
    assert response["Location"] == LIST


def test_rows_are_neither_added_nor_deleted(admin_client):
    QueueFactory.create(name="mail")
    assert admin_client.get(reverse("admin:backwave_queue_add")).status_code == 403
    url = reverse("admin:backwave_queue_delete", args=["mail"])
    assert admin_client.post(url, {"post": "yes"}).status_code == 403
    assert Queue.objects.exists()
