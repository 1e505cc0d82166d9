"""A double click, or two people at once: what was asked for happens once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse

from backwave_django.models import Job, OperatorAction
from tests.factories import JobFactory, OutcomeFactory

LIST = reverse("admin:backwave_job_changelist")


@pytest.mark.django_db(transaction=True)
def test_two_requeues_of_the_same_jobs_at_once_requeue_each_once(django_user_model):
    jobs = JobFactory.create_batch(10, state="dead_lettered", run=1, spent=1)
    for job in jobs:
        OutcomeFactory.create(job=job)
    django_user_model.objects.create_superuser("root")
    values = {
        "action": "requeue_jobs",
        "_selected_action": [str(job.pk) for job in jobs],
        "confirmed": "1",
    }
    together = Barrier(2, timeout=30)

    def send():
        client = Client()
        client.force_login(django_user_model.objects.get())
        together.wait()
        try:
            return client.post(LIST, values).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as people:
        assert [each.result() for each in [people.submit(send), people.submit(send)]] == [302, 302]
    assert set(Job.objects.values_list("state", "run", "spent")) == {("scheduled", 1, 0)}
    results = list(OperatorAction.objects.values_list("result", flat=True))
    assert sorted(results) == ["done"] * 10 + ["refused"] * 10
    assert {job.outcomes.count() for job in jobs} == {1}
