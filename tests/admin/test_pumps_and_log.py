"""Pumps and the operator log."""

from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

import backwave_django.admin as backwave_admin
from backwave_django.models import OperatorAction, Pump
from tests.admin.conftest import VIEW, text_of
from tests.factories import JobFactory, OperatorActionFactory, PumpFactory

pytestmark = pytest.mark.django_db

PUMPS = reverse("admin:backwave_pump_changelist")
LOG = reverse("admin:backwave_operatoraction_changelist")


def drain(pump):
    return reverse("admin:backwave_pump_drain", args=[pump.pk])


def test_page_shows_pumps_that_live_first_with_their_health(person):
    now = timezone.now()
    PumpFactory.create(hostname="halted-1", health="halted", problem="no such column", seen_at=now)
    PumpFactory.create(hostname="gone-1", seen_at=now - timedelta(hours=2))
    PumpFactory.create(hostname="late-1", seen_at=now - timedelta(seconds=50), executing=3)
    PumpFactory.create(hostname="live-1", seen_at=now, executing=2, succeeded=12345)
    text = text_of(person().get(PUMPS))
    assert "2 live pumps" in text
    assert "5 of 40 slots in use" in text
    for words in ("no such column", "its leases end", "12,345", "halted", "gone", "late"):
        assert words in text
    assert text.index("late-1") < text.index("halted-1")
    assert text.index("live-1") < text.index("gone-1")
    assert "Drain…" not in text


def test_no_pump_says_how_to_start_one(person):
    assert "manage.py runpumps" in text_of(person().get(PUMPS))


def test_drain_asks_then_asks_the_pump(person):
    pump = PumpFactory.create(seen_at=timezone.now())
    client = person(*VIEW, "drain_pump")
    assert "hands back what is left" in text_of(client.get(drain(pump)))
    assert not Pump.objects.get().drain_requested
    assert "This field is required." in text_of(client.post(drain(pump), {"reason": ""}))
    response = client.post(drain(pump), {"reason": "new kernel"}, follow=True)
    assert "is asked to drain" in text_of(response)
    assert Pump.objects.get().drain_requested
    assert OperatorAction.objects.get().reason == "new kernel"


def test_pump_that_is_gone_is_not_drained(person):
    pump = PumpFactory.create(seen_at=timezone.now() - timedelta(hours=1))
    client = person(*VIEW, "drain_pump")
    response = client.post(drain(pump), {"reason": "x"}, follow=True)
    assert "Nothing was changed." in text_of(response)
    Pump.objects.all().delete()
    assert client.get(drain(pump)).status_code == 404


def test_person_who_may_only_look_drains_nothing(person):
    pump = PumpFactory.create(seen_at=timezone.now())
    client = person()
    assert client.get(drain(pump)).status_code == 403
    assert client.post(drain(pump), {"reason": "x"}).status_code == 403
    assert client.post(PUMPS, {}).status_code == 403
    assert not Pump.objects.get().drain_requested


def test_address_of_one_pump_leads_to_the_page_of_all(person):
    url = reverse("admin:backwave_pump_change", args=[PumpFactory.create().pk])
    assert person().get(url)["Location"] == PUMPS
    assert person("view_job").get(url).status_code == 403


def test_log_lists_newest_first_and_links_to_jobs(person):
    job = JobFactory.create()
    OperatorActionFactory.create(target=str(job.pk), reason="first")
    OperatorActionFactory.create(target="mail", target_kind="queue", reason="second")
    text = text_of(person().get(LOG))
    assert text.index("second") < text.index("first")
    assert reverse("admin:backwave_job_change", args=[job.pk]) in text


def test_log_is_searched_by_target_and_read_by_key(person):
    OperatorActionFactory.create_batch(120)
    wanted = OperatorActionFactory.create(target="mail", target_kind="queue")
    client = person()
    assert client.get(LOG, {"q": "mail"}).context["cl"].result_list == [wanted]
    with CaptureQueriesContext(connection) as captured:
        client.get(LOG + client.get(LOG).context["cl"].older_link)
    statements = [each["sql"] for each in captured if "backwave_operatoraction" in each["sql"]]
    assert statements
    assert not any("OFFSET" in sql or "COUNT(" in sql for sql in statements)


def test_entry_of_the_log_opens_read_only(person):
    entry = OperatorActionFactory.create(reason="vendor outage")
    url = reverse("admin:backwave_operatoraction_change", args=[entry.pk])
    response = person().get(url)
    assert response.status_code == 200
    assert b"vendor outage" in response.content
    assert b'<input type="text" name="reason"' not in response.content


def test_log_is_append_only_even_for_superusers(admin_client):
    entry = OperatorActionFactory.create(reason="vendor outage")
    change = reverse("admin:backwave_operatoraction_change", args=[entry.pk])
    delete = reverse("admin:backwave_operatoraction_delete", args=[entry.pk])
    assert admin_client.post(change, {"reason": "no reason"}).status_code == 403
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert admin_client.post(LOG, {"action": "delete_selected"}).status_code == 403
    assert OperatorAction.objects.get().reason == "vendor outage"


def test_log_without_its_right_is_refused(person):
    assert person("view_job").get(LOG).status_code == 403


def test_pages_can_be_put_on_another_site():
    site = AdminSite(name="ops")
    backwave_admin.register(site)
    assert {model.__name__ for model in site._registry} == {
        "Job",
        "Limit",
        "OperatorAction",
        "Pump",
        "Queue",
        "Schedule",
        "Workflow",
    }
    for model_admin in site._registry.values():
        assert model_admin.check() == []
    assert set(site._registry) <= set(admin.site._registry)
