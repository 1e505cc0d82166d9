"""Workflows: a list, a page for each, and a question before each action."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

import backwave_django as backwave
from backwave_django.models import Job, OperatorAction, Workflow
from backwave_django.testing import Harness
from tests.admin.conftest import VIEW, text_of
from tests.jobs.flowing import plan, work

pytestmark = pytest.mark.django_db

LIST = reverse("admin:backwave_workflow_changelist")
LOOK = (*VIEW, "view_workflow")


def url(page, workflow_id):
    return reverse(f"admin:backwave_workflow_{page}", args=[workflow_id])


@pytest.fixture
def harness():
    plan()
    with Harness() as opened:
        yield opened


@pytest.fixture
def failed(harness):
    """A workflow whose second of three steps failed."""
    plan(charge=["fail"])
    with backwave.workflow("checkout 7") as flow:
        ok = flow.add(work.s("validate"), name="validate")
        paid = flow.add(work.s("charge"), after=ok, name="pay")
        flow.add(work.s("pack"), after=paid)
    harness.run_until_idle()
    return flow


def test_list_shows_each_workflow_with_what_its_jobs_add_up_to(person, failed):
    text = text_of(person(*LOOK).get(LIST))
    for words in ("checkout 7", "failed", "succeeded", "dead-lettered"):
        assert words in text.lower()


def test_list_takes_the_same_number_of_statements_for_any_number_of_workflows(person, harness):
    client = person(*LOOK)
    counts = []
    for _ in range(2):
        for _ in range(10):
            backwave.chain(work.s("a"), work.s("b")).enqueue()
        with CaptureQueriesContext(connection) as captured:
            text_of(client.get(LIST))
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_list_says_how_workflows_come_about_when_there_is_none(person):
    assert "There is no workflow" in text_of(person(*LOOK).get(LIST))


def test_list_is_searched_by_id(person, failed):
    backwave.chain(work.s("a")).enqueue(name="another one")
    client = person(*LOOK)
    text = text_of(client.get(LIST, {"q": str(failed.id)}))
    assert "checkout 7" in text
    assert "another one" not in text
    assert "checkout 7" not in text_of(client.get(LIST, {"q": "no id"}))


def test_page_shows_members_with_their_steps_and_what_they_wait_for(person, harness):
    with backwave.workflow("checkout 8") as flow:
        ok = flow.add(work.s("validate"), name="validate")
        flow.add(work.s("charge"), after=ok, name="pay")
    text = text_of(person(*LOOK).get(url("change", flow.id)))
    for words in ("checkout 8", "Running", "validate", "pay", "awaiting", str(ok.id)):
        assert words in text, words
    assert text.count(str(ok.id)) == 3, "as a link, by its id, and as what the other waits for"
    assert "Cancel…" not in text, "no right, no control"


def test_job_page_leads_to_the_workflow(person, failed):
    job = Job.objects.get(pk=failed.steps["pay"].id)
    page = reverse("admin:backwave_job_change", args=[job.pk])
    text = text_of(person(*LOOK).get(page))
    assert url("change", failed.id) in text
    assert "Waits for" in text
    assert "Waited for by" in text


@pytest.mark.parametrize("workflow_id", ["404", "00000000-0000-0000-0000-000000000404"])
def test_page_of_nothing_leads_to_the_list(person, workflow_id):
    page = reverse("admin:backwave_workflow_change", args=[workflow_id])
    response = person(*LOOK).get(page, follow=True)
    assert f"Workflow {workflow_id} is gone" in text_of(response)


def test_retry_asks_then_brings_failures_back(person, failed, harness):
    client = person(*LOOK, "retry_workflow")
    assert "Retry…" in text_of(client.get(url("change", failed.id)))
    ask = url("retry", failed.id)
    assert "wait for each other again" in text_of(client.get(ask)).replace("\n", " ")
    assert not OperatorAction.objects.exists()
    response = client.post(ask, {"scope": "failed", "reason": "gateway is back"}, follow=True)
    assert "2 jobs came back." in text_of(response)
    action = OperatorAction.objects.get()
    assert (action.action, action.reason, action.source) == ("retry", "gateway is back", "admin")
    assert failed.handle.status == "running"


def test_restart_leads_to_the_new_workflow(person, failed):
    client = person(*LOOK, "restart_workflow")
    response = client.post(url("restart", failed.id), {"reason": "all of it"}, follow=True)
    assert "3 jobs enqueued." in text_of(response)
    new = Workflow.objects.exclude(pk=failed.id).get()
    assert response.redirect_chain == [(url("change", new.pk), 302)]


def test_cancel_ends_what_waits(person, harness):
    handle = backwave.chain(work.s("a"), work.s("b")).enqueue()
    client = person(*LOOK, "cancel_workflow")
    response = client.post(url("cancel", handle.id), {"reason": "wrong order"}, follow=True)
    assert "2 jobs cancelled or asked to stop." in text_of(response)
    assert handle.status == "cancelled"


def test_action_that_comes_too_late_says_so(person, failed):
    client = person(*LOOK, "cancel_workflow")
    response = client.post(url("cancel", failed.id), {"reason": "too late"}, follow=True)
    assert "Nothing was changed: every job of it has ended." in text_of(response)


@pytest.mark.parametrize("name", ["cancel", "retry", "restart"])
def test_each_action_has_a_right_of_its_own(person, failed, name):
    others = {"cancel_workflow", "retry_workflow", "restart_workflow"} - {f"{name}_workflow"}
    client = person(*LOOK, *others)
    assert client.get(url(name, failed.id)).status_code == 403
    assert client.post(url(name, failed.id), {"reason": "x"}).status_code == 403
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize("name", ["cancel", "retry", "restart"])
def test_no_action_without_a_reason(person, failed, name):
    client = person(*LOOK, f"{name}_workflow")
    text_of(client.post(url(name, failed.id), {"reason": " "}))
    assert not OperatorAction.objects.exists()


def test_nobody_sees_workflows_without_the_right(person, failed):
    client = person("view_job")
    assert client.get(LIST).status_code == 403
    assert client.get(url("change", failed.id)).status_code == 403
