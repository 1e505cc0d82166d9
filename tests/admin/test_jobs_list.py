"""The list of jobs: it costs the same on any table, and shows nothing that it should not."""

import re
from datetime import timedelta
from itertools import chain
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from backwave_django.admin import filters, lists
from backwave_django.admin.acting import BY_NAME
from backwave_django.admin.jobs import JobAdmin
from backwave_django.core.states import JobState
from backwave_django.models import Job
from backwave_django.monitor.patience import TookTooLong
from tests.admin.conftest import VIEW, text_of
from tests.factories import T0, DependencyFactory, JobFactory, LeaseFactory, PumpFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:backwave_job_changelist")
OLD = UUID("01900000-0000-7000-8000-000000000001")
STATES = [
    "scheduled",
    "awaiting",
    "leased",
    "succeeded",
    "dead_lettered",
    "quarantined",
    "expired",
    "cancelled",
]


def shown(response):
    return [job.pk for job in response.context["cl"].result_list]


def many(count, **values):
    """Insert jobs in one statement."""
    return Job.objects.bulk_create(JobFactory.build_batch(count, **values))


def walk(client, link, parameters):
    """Follow ``link`` (newer or older) to the end; return the ids of each page."""
    pages = []
    while True:
        response = client.get(LIST + parameters)
        pages.append(shown(response))
        parameters = getattr(response.context["cl"], f"{link}_link")
        if not parameters:
            return pages


def test_newest_jobs_come_first(person):
    jobs = many(3)
    response = person().get(LIST)
    assert shown(response) == [job.pk for job in reversed(jobs)]
    text_of(response)


def test_pages_go_to_the_end_and_back_and_miss_none(person):
    jobs = many(120)
    newest_first = [job.pk for job in reversed(jobs)]
    client = person()
    older = walk(client, "older", "?per=50")
    assert older == [newest_first[:50], newest_first[50:100], newest_first[100:]]
    last = client.get(LIST + "?per=50").context["cl"].older_link
    last = client.get(LIST + last).context["cl"].older_link
    back = walk(client, "newer", last)
    assert back == [newest_first[100:], newest_first[50:100], newest_first[:50]]


def test_page_before_the_first_full_one_is_the_first_page(person):
    jobs = many(60)
    client = person()
    second = client.get(LIST + client.get(LIST + "?per=50").context["cl"].older_link)
    many(3)
    first = client.get(LIST + second.context["cl"].newer_link)
    assert len(shown(first)) == 50
    assert shown(first)[-1] == jobs[10].pk, "the place held, although jobs were added"


def test_scheduled_jobs_come_in_claim_order_unkeyed_first(person):
    def job(**values):
        return JobFactory.create(**values).pk

    later = job(due_at=T0 + timedelta(days=1))
    keyed = job(limit_key="k", due_at=T0 - timedelta(days=9))
    urgent = job(priority=-5)
    earlier = job(due_at=T0 - timedelta(days=1))
    other_queue = job(queue="a")
    client = person()
    expected = [other_queue, urgent, earlier, later, keyed]
    assert shown(client.get(f"{LIST}?state=scheduled")) == expected


def test_scheduled_jobs_page_across_both_segments(person):
    plain = [job.pk for job in many(55)]
    keyed = [job.pk for job in many(55, limit_key="k")]
    client = person()
    older = walk(client, "older", "?state=scheduled&per=50")
    assert [len(page) for page in older] == [50, 50, 10]
    assert list(chain(*older)) == plain + keyed
    end = client.get(LIST + "?state=scheduled&per=50")
    for _ in range(2):
        end = client.get(LIST + end.context["cl"].older_link)
    back = walk(client, "newer", end.context["cl"].newer_link)
    assert [len(page) for page in back] == [50, 50]
    assert back == [older[1], older[0]]


def test_jobs_of_equal_order_are_told_apart_by_id(person):
    jobs = many(101, state="cancelled")
    pages = walk(person(), "older", "?state=cancelled&per=50")
    assert list(chain(*pages)) == [job.pk for job in reversed(jobs)]


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_a_tab_with_its_own_jobs(person, state):
    for each in STATES[3:]:
        JobFactory.create(state=each)
    JobFactory.create()
    LeaseFactory.create()
    DependencyFactory.create()
    response = person().get(f"{LIST}?state={state}")
    assert {job.state for job in response.context["cl"].result_list} == {state}
    tabs = {tab.link: tab.number for tab in response.context["cl"].tabs}
    assert tabs[f"?state={state}"].number == len(shown(response))
    assert f'href="?state={state}" aria-current="page"' in text_of(response)


@pytest.mark.parametrize("state", ["", *STATES])
def test_list_never_counts_skips_or_sorts_the_table(person, state):
    many(120, state="succeeded")
    many(60)
    client = person(*VIEW, "cancel_job")
    for parameters in ("?per=50", "?per=50&queue=default&type=shop.send_receipt"):
        page = f"{parameters}&state={state}"
        for _ in range(3):
            with CaptureQueriesContext(connection) as captured:
                response = client.get(LIST + page)
            text_of(response)
            assert_cheap(captured)
            page = response.context["cl"].older_link or page


@pytest.mark.parametrize("state", STATES)
def test_each_tab_walks_an_index_made_for_it(state):
    """However little the database knows: nothing was analysed, the table is empty."""
    for segment in filters.segments_of(JobState(state)):
        rows = Job.objects.filter(segment.condition).order_by(*segment.order(backwards=False))
        with CaptureQueriesContext(connection), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute("SET LOCAL enable_bitmapscan = off")
            plan = rows[:101].explain()
        assert "backwave_job_" in plan or state == "awaiting", plan
        assert "TEMP B-TREE" not in plan
        assert "Sort" not in plan or state == "awaiting", plan


def assert_cheap(captured, most=22):
    statements = [each["sql"] for each in captured]
    assert len(statements) <= most, statements
    for sql in (each for each in statements if "backwave_job" in each):
        assert " OFFSET " not in sql
        assert "DISTINCT" not in sql.replace("SELECT DISTINCT e.child_id AS one", "")
        assert sql.lower().count("count(") == sql.count("LIMIT 10001"), "a count that is not capped"
        assert "LIMIT" in sql or '"backwave_job"."id" =' in sql or '"id" IN (' in sql


def test_number_of_statements_does_not_grow_with_the_page(person):
    client = person()
    counts = []
    for size in (1, 150):
        many(size, state="dead_lettered")
        with CaptureQueriesContext(connection) as captured:
            client.get(f"{LIST}?per=200")
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_list_reads_no_payload_and_no_output(person):
    JobFactory.create(payload='"hunter2"', output='"hunter2"', state="succeeded")
    with CaptureQueriesContext(connection) as captured:
        text = text_of(person().get(LIST))
    assert "hunter2" not in text
    listing = [each["sql"] for each in captured if "ORDER BY" in each["sql"]]
    assert not any(re.search(r'"(payload|output)"', sql) for sql in listing)


@pytest.mark.parametrize(
    "lookup",
    [
        "payload__contains=hunter2",
        "output__startswith=h",
        "outcomes__traceback__contains=h",
        "tags__secret=1",
        "state__exact=scheduled",
        "unique_key=a",
    ],
)
def test_lookups_by_url_are_refused_even_to_those_who_may_see_all(admin_client, lookup):
    JobFactory.create()
    assert admin_client.get(f"{LIST}?{lookup}").status_code == 400


def test_sorting_by_url_changes_nothing(person):
    jobs = many(3)
    assert shown(person().get(f"{LIST}?o=2.3")) == [job.pk for job in reversed(jobs)]


@pytest.mark.parametrize("cursor", ["x", "W10", "WzEsMl0", "!!", "WzAsIm5vdC1hbi1pZCJd"])
def test_cursor_that_was_tampered_with_is_the_first_page(person, cursor):
    job = JobFactory.create()
    client = person()
    for parameter in ("after", "before"):
        assert shown(client.get(f"{LIST}?{parameter}={cursor}")) == [job.pk]


def test_list_is_narrowed_by_queue_and_type(person):
    wanted = JobFactory.create(queue="mail", wire_name="mail.send")
    JobFactory.create(queue="mail", wire_name="mail.other")
    JobFactory.create(wire_name="mail.send")
    PumpFactory.create(queues=["mail"], wire_names={"mail.send": 1}, seen_at=T0)
    response = person().get(f"{LIST}?queue=mail&type=mail.send")
    assert shown(response) == [wanted.pk]
    text = text_of(response)
    assert '<option value="mail" selected>' in text
    assert '<option value="mail.send" selected>' in text


def test_empty_choice_of_a_filter_narrows_nothing(person):
    job = JobFactory.create()
    assert shown(person().get(f"{LIST}?q=&queue=&type=")) == [job.pk]


def test_whole_id_in_the_search_box_opens_the_job(person):
    job = JobFactory.create()
    response = person().get(LIST, {"q": f" {job.pk} "})
    assert response["Location"] == reverse("admin:backwave_job_change", args=[job.pk])
    assert shown(person().get(LIST, {"q": "00000000-0000-7000-8000-000000000000"})) == []


def test_beginning_of_an_id_finds_jobs(person):
    JobFactory.create(id=OLD)
    JobFactory.create()
    assert shown(person().get(LIST, {"q": "01900000-0000"})) == [OLD]


def test_name_of_a_type_finds_jobs_also_by_part_if_the_type_is_known(person, monkeypatch):
    class Known:
        def known(self):
            return (("shop.send_receipt", 1), ("mail.push", 1))

    monkeypatch.setattr(filters, "registry", Known())
    receipt = JobFactory.create(wire_name="shop.send_receipt").pk
    forgotten = JobFactory.create(wire_name="gone.task").pk
    client = person()
    assert shown(client.get(LIST, {"q": "RECEIPT"})) == [receipt]
    assert shown(client.get(LIST, {"q": "shop.*"})) == [receipt]
    assert shown(client.get(LIST, {"q": "gone.task"})) == [forgotten]
    assert shown(client.get(LIST, {"q": "gone"})) == []


def test_empty_lists_say_what_it_means(person):
    client = person()
    assert "No jobs have been enqueued." in text_of(client.get(LIST))
    assert "No job matches." in text_of(client.get(f"{LIST}?state=expired"))


def test_list_that_takes_too_long_degrades_alone(person, monkeypatch):
    def give_up(*args, **kwargs):
        raise TookTooLong

    monkeypatch.setattr(lists, "read_page", give_up)
    assert "This took longer than 3 seconds" in text_of(person().get(LIST))


def test_page_without_right_to_view_is_refused(person):
    assert person("view_pump").get(LIST).status_code == 403


def test_every_action_names_the_right_it_needs():
    assert set(JobAdmin.actions) == set(BY_NAME)
    for name in BY_NAME:
        assert getattr(JobAdmin, name).allowed_permissions, name


def test_nobody_adds_changes_or_deletes_rows(admin_client):
    job = JobFactory.create()
    url = reverse("admin:backwave_job_change", args=[job.pk])
    assert admin_client.get(reverse("admin:backwave_job_add")).status_code == 403
    assert admin_client.get(reverse("admin:backwave_job_delete", args=[job.pk])).status_code == 403
    assert admin_client.post(url, {"state": "succeeded"}).status_code in {200, 403, 405}
    assert Job.objects.get().state == "scheduled"
