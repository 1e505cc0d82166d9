"""The page of one job: everything to know about it, less what the person may not see."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import reverse

from backwave_django.models import Job
from tests.admin.conftest import VIEW, text_of
from tests.factories import (
    T0,
    DependencyFactory,
    JobFactory,
    LeaseFactory,
    OperatorActionFactory,
    OutcomeFactory,
    PumpFactory,
)

pytestmark = pytest.mark.django_db

SECRETS = '{"args": [], "kwargs": {"user": "u", "password": "hunter2", "cards": ["4111"]}}'


def page(job):
    return reverse("admin:backwave_job_change", args=[job.pk])


def dead_job(**values):
    job = JobFactory.create(state="dead_lettered", run=1, spent=1, payload=SECRETS, **values)
    OutcomeFactory.create(
        job=job,
        message="no route to hunter3",
        traceback="Traceback of hunter4",
        log="line of hunter5",
        pump_id=PumpFactory.create(hostname="web-9").pk,
    )
    return job


def test_page_says_what_happened_and_why(person):
    text = text_of(person().get(page(dead_job(tags={"tenant": "acme"}, unique_key="u:1"))))
    for words in (
        "It is dead-lettered after 1 attempt: no attempts left.",
        "failed → scheduled",
        "TimeoutError",
        "web-9",
        "9 s",
        "acme",
        "u:1",
    ):
        assert words in text


def test_without_the_right_people_see_the_shape_and_no_values(person):
    with CaptureQueriesContext(connection) as captured:
        text = text_of(person().get(page(dead_job())))
    assert "hunter" not in text
    assert "4111" not in text
    assert "&quot;password&quot;: &quot;str(7)&quot;" in text
    assert "&quot;cards&quot;: &quot;list(1) of str&quot;" in text
    assert "Values are hidden." in text
    assert "Messages and tracebacks are hidden." in text
    reads = [each["sql"] for each in captured if each["sql"].startswith("SELECT")]
    assert not any('"traceback"' in sql for sql in reads)


def test_with_the_right_people_see_values_but_no_secrets(person):
    text = text_of(person(*VIEW, "view_job_sensitive").get(page(dead_job())))
    assert "hunter2" not in text
    for shown in ("4111", "********", "hunter3", "hunter4", "hunter5"):
        assert shown in text


def test_kill_switch_hides_the_values_from_everybody(admin_client):
    with (
        override_settings(BACKWAVE={"EXPOSE_SENSITIVE": False}),
        CaptureQueriesContext(connection) as captured,
    ):
        text = text_of(admin_client.get(page(dead_job())))
    assert "hunter" not in text
    assert "Payload" not in text
    reads = [each["sql"] for each in captured if each["sql"].startswith("SELECT")]
    assert not any('"payload"' in sql for sql in reads)


def test_page_stays_out_of_caches(person):
    assert "no-store" in person().get(page(dead_job()))["Cache-Control"]


def test_data_is_never_html(admin_client):
    evil = "<script>alert(1)</script>"
    job = JobFactory.create(
        wire_name=evil, queue=evil[:90], payload=f'"{evil}"', tags={evil: evil}, unique_key=evil
    )
    OutcomeFactory.create(job=job, run=0, error_class=evil, message=evil, traceback=evil)
    assert "<script>alert" not in text_of(admin_client.get(page(job)))


def test_payload_that_cannot_be_decoded_says_so(admin_client):
    text = text_of(admin_client.get(page(JobFactory.create(payload="{not json"))))
    assert "It cannot be decoded:" in text


def test_large_payload_is_cut(admin_client):
    job = JobFactory.create(payload='{"args": [], "kwargs": {"x": "%s"}}' % ("y" * 100_000))
    response = admin_client.get(page(job))
    assert "more characters" in text_of(response)
    assert len(response.content) < 60_000


def test_running_job_shows_its_lease_and_progress(person):
    lease = LeaseFactory.create(progress_done=1200, progress_total=2000, progress_message="rows")
    text = text_of(person().get(page(lease.job)))
    assert "Ends, unless renewed" in text
    assert "1,200/2,000 rows" in text


def test_dependencies_link_to_each_other(person):
    edge = DependencyFactory.create(parent__wire_name="shop.charge")
    client = person()
    assert page(edge.parent) in text_of(client.get(page(edge.child)))
    assert page(edge.child) in text_of(client.get(page(edge.parent)))


def test_parent_that_was_purged_is_named_without_a_link(person):
    edge = DependencyFactory.create()
    edge.parent.delete()
    text = text_of(person().get(page(edge.child)))
    assert f"{edge.parent_id} (gone)" in text


def test_operator_log_shows_only_to_those_who_may_see_it(person):
    job = JobFactory.create()
    OperatorActionFactory.create(target=str(job.pk), reason="vendor outage")
    assert "vendor outage" in text_of(person().get(page(job)))
    assert "vendor outage" not in text_of(person("view_job").get(page(job)))


def test_only_actions_that_are_allowed_and_would_change_the_job_are_offered(person):
    def offered(client, job):
        return [action.name for action in client.get(page(job)).context["actions"]]

    everything = (*VIEW, "requeue_job", "cancel_job", "run_job_now")
    dead, due = dead_job(), JobFactory.create()
    assert offered(person(), dead) == []
    assert offered(person(*everything), dead) == ["requeue_jobs"]
    assert offered(person(*everything), due) == ["cancel_jobs", "run_jobs_now"]
    assert offered(person(*everything), JobFactory.create(state="succeeded")) == []


@pytest.mark.parametrize("text", ["01900000-0000-7000-8000-000000000001", "no-id"])
def test_job_that_is_gone_leads_back_to_the_list(person, text):
    url = reverse("admin:backwave_job_change", args=[text])
    response = person().get(url, follow=True)
    assert response.redirect_chain[-1][0] == reverse("admin:backwave_job_changelist")
    assert f"Job {text} is gone" in text_of(response)


def test_page_takes_a_bounded_number_of_statements(person):
    client = person()
    job = dead_job()
    for run in range(2, 40):
        OutcomeFactory.create(job=job, run=run)
    with CaptureQueriesContext(connection) as captured:
        client.get(page(job))
    assert len(captured) <= 16


def test_history_opens(person):
    job = dead_job()
    url = reverse("admin:backwave_job_history", args=[job.pk])
    assert person().get(url).status_code == 200


def test_post_to_the_page_of_a_job_changes_nothing(admin_client):
    job = JobFactory.create(due_at=T0)
    assert admin_client.post(page(job), {"queue": "other"}).status_code == 403
    assert Job.objects.get().queue == "default"


def test_page_without_right_to_view_is_refused(person):
    assert person("view_queue").get(page(JobFactory.create())).status_code == 403
