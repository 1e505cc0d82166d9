"""Actions on jobs: asked about first, allowed by a right of their own, honest about the result."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from backwave_django.admin import acting
from backwave_django.models import Job, OperatorAction
from tests.admin.conftest import VIEW, text_of
from tests.factories import JobFactory, LeaseFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:backwave_job_changelist")
RIGHTS = {
    "requeue_jobs": "requeue_job",
    "cancel_jobs": "cancel_job",
    "run_jobs_now": "run_job_now",
}


def chosen(action, *jobs, **values):
    return {"action": action, "_selected_action": [str(job.pk) for job in jobs], **values}


def confirmed(action, *jobs, **values):
    return chosen(action, *jobs, confirmed="1", reason="because", **values)


def told(response):
    return [str(message) for message in response.context["messages"]]


def state_of(job):
    return Job.objects.get(pk=job.pk).state


def test_choosing_an_action_asks_first_and_changes_nothing(person):
    due, ended = JobFactory.create(), JobFactory.create(state="succeeded")
    running = LeaseFactory.create().job
    client = person(*VIEW, "cancel_job")
    text = text_of(client.post(LIST, chosen("cancel_jobs", due, ended, running)))
    for words in (
        "2 jobs will change.",
        "1 is in a state that this does not apply to",
        "1 of them is running",
        "their bodies decide",
        f"backwave_cancel {running.pk} {ended.pk} {due.pk}",
    ):
        assert words in " ".join(text.split())
    assert [state_of(job) for job in (due, ended, running)] == ["scheduled", "succeeded", "leased"]
    assert not OperatorAction.objects.exists()


def test_confirmed_action_happens_and_is_counted_honestly(person):
    due, ended = JobFactory.create(), JobFactory.create(state="succeeded")
    running = LeaseFactory.create().job
    client = person(*VIEW, "cancel_job")
    response = client.post(LIST, confirmed("cancel_jobs", due, ended, running), follow=True)
    (text,) = told(response)
    assert text == "1 job cancelled, 1 running job asked to stop, 1 had already changed."
    assert state_of(due) == "cancelled"
    entry = OperatorAction.objects.get(target=str(due.pk))
    assert (entry.source, entry.reason, entry.result) == ("admin", "because", "done")
    assert entry.actor_name.startswith("person-")


def test_action_on_one_job_is_in_the_jobs_history_and_leads_back_to_it(person):
    dead = JobFactory.create(state="dead_lettered")
    response = person(*VIEW, "requeue_job").post(
        LIST, confirmed("requeue_jobs", dead, from_job="1")
    )
    assert response["Location"] == reverse("admin:backwave_job_change", args=[dead.pk])
    assert state_of(dead) == "scheduled"
    (entry,) = LogEntry.objects.all()
    assert (entry.object_id, entry.change_message) == (str(dead.pk), "Requeue")


def test_list_keeps_its_filters_after_an_action(person):
    dead = JobFactory.create(state="dead_lettered")
    url = f"{LIST}?state=dead_lettered"
    response = person(*VIEW, "requeue_job").post(url, confirmed("requeue_jobs", dead))
    assert response["Location"] == url


def test_sent_twice_is_done_once_and_says_so(person):
    dead = JobFactory.create_batch(10, state="dead_lettered")
    client = person(*VIEW, "requeue_job")
    first = client.post(LIST, confirmed("requeue_jobs", *dead), follow=True)
    second = client.post(LIST, confirmed("requeue_jobs", *dead), follow=True)
    assert told(first) == ["10 jobs requeued."]
    assert told(second) == ["10 had already changed."]
    assert OperatorAction.objects.filter(result="done").count() == 10


def test_requeue_reports_what_meets_a_live_unique_key(person):
    JobFactory.create(unique_key="k")
    dead = JobFactory.create_batch(2, state="dead_lettered", unique_key="k", unique_live=None)
    other = JobFactory.create(state="dead_lettered")
    client = person(*VIEW, "requeue_job")
    response = client.post(LIST, confirmed("requeue_jobs", *dead, other), follow=True)
    (text,) = told(response)
    assert text.startswith("1 job requeued, 2 skipped, because other live jobs hold")


def test_run_now_makes_jobs_due(person):
    job = JobFactory.create(due_at="2099-01-01T00:00Z")
    client = person(*VIEW, "run_job_now")
    response = client.post(LIST, confirmed("run_jobs_now", job), follow=True)
    assert told(response) == ["1 job is due now."]


def test_refusal_of_one_job_is_told_in_words(person):
    job = JobFactory.create(state="succeeded")
    client = person(*VIEW, "requeue_job")
    (text,) = told(client.post(LIST, confirmed("requeue_jobs", job), follow=True))
    assert text.startswith("1 had already changed.")
    assert "succeeded" in text


@pytest.mark.parametrize("action", RIGHTS)
def test_person_who_may_only_look_acts_in_no_way(person, action):
    jobs = {
        "requeue_jobs": JobFactory.create(state="dead_lettered"),
        "cancel_jobs": JobFactory.create(),
        "run_jobs_now": JobFactory.create(due_at="2099-01-01T00:00Z"),
    }
    job = jobs[action]
    before = Job.objects.values().get(pk=job.pk)
    client = person()
    assert client.post(LIST, confirmed(action, job)).status_code == 403
    assert client.post(LIST, chosen(action, job, select_across="1", index="0")).status_code == 403
    client.get(LIST, confirmed(action, job))
    assert Job.objects.values().get(pk=job.pk) == before
    assert not OperatorAction.objects.exists()
    assert action not in text_of(client.get(LIST))


@pytest.mark.parametrize(("action", "right"), RIGHTS.items())
def test_one_right_allows_one_action(person, action, right):
    job = JobFactory.create()
    client = person(*VIEW, right)
    for each in RIGHTS:
        expected = 200 if each == action else 403
        assert client.post(LIST, chosen(each, job)).status_code == expected


def test_right_to_act_without_right_to_look_is_not_enough(person):
    client = person("cancel_job")
    assert client.post(LIST, confirmed("cancel_jobs", JobFactory.create())).status_code == 403


def test_without_csrf_token_nothing_happens(django_user_model):
    user = django_user_model.objects.create_superuser("root")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    job = JobFactory.create()
    assert client.post(LIST, confirmed("cancel_jobs", job)).status_code == 403
    assert state_of(job) == "scheduled"


@pytest.mark.parametrize("action", ["", "delete_selected", "_act", "get_urls"])
def test_action_that_is_none_does_nothing(admin_client, action):
    job = JobFactory.create()
    response = admin_client.post(LIST, confirmed(action, job), follow=True)
    assert told(response) == ["Choose an action. Nothing was changed."]
    assert state_of(job) == "scheduled"


def test_nothing_chosen_and_too_much_chosen_is_said(admin_client, monkeypatch):
    empty = admin_client.post(LIST, {"action": "cancel_jobs"}, follow=True)
    assert told(empty) == ["Choose at least one job. Nothing was changed."]
    many = {"action": "cancel_jobs", "_selected_action": [f"{n:032x}" for n in range(501)]}
    much = admin_client.post(LIST, many, follow=True)
    assert told(much) == ["Choose at most 500 jobs at once. Nothing was changed."]


def test_select_across_acts_on_what_was_ticked_only(admin_client):
    ticked, other = JobFactory.create(), JobFactory.create()
    admin_client.post(LIST, confirmed("cancel_jobs", ticked, select_across="1"))
    assert [state_of(job) for job in (ticked, other)] == ["cancelled", "scheduled"]


def test_reason_that_is_too_long_is_asked_again(admin_client):
    job = JobFactory.create()
    values = {**confirmed("cancel_jobs", job), "reason": "x" * 2001}
    text = text_of(admin_client.post(LIST, values))
    assert "at most 2000 characters" in text
    assert state_of(job) == "scheduled"


def test_confirmation_lists_the_first_jobs_and_counts_the_rest(admin_client):
    jobs = JobFactory.create_batch(acting.MOST_LISTED + 3)
    assert "and 3 more" in text_of(admin_client.post(LIST, chosen("cancel_jobs", *jobs)))
