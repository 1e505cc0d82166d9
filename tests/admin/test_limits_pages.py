"""Limits, rates and windows: shown with queues and keys, changed by a form that asks why."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from backwave_django.models import Limit, OperatorAction, Queue
from tests.admin.conftest import VIEW, text_of
from tests.factories import JobFactory, LeaseFactory, QueueFactory

pytestmark = pytest.mark.django_db

QUEUES = reverse("admin:backwave_queue_changelist")
LIMIT = reverse("admin:backwave_queue_limit", args=["mail"])
WINDOW = reverse("admin:backwave_queue_window", args=["mail"])
KEYS = reverse("admin:backwave_limit_changelist")
SET = reverse("admin:backwave_limit_set")
OPERATOR = (*VIEW, "view_limit", "change_queue_limit", "set_limit")


def actions():
    return list(OperatorAction.objects.order_by("id").values_list("action", "target", "after"))


def shut():
    """A window that opens in some hours, whenever this runs."""
    begins = timezone.now() + timedelta(hours=3)
    return f"{begins:%H}:00-{begins + timedelta(hours=1):%H}:00 UTC"


def test_queue_page_shows_limit_rate_and_window(person):
    later = timezone.now() + timedelta(seconds=40)
    QueueFactory.create(name="mail", limit=7, rate="1/minute", rate_full_at=later, window=shut())
    QueueFactory.create(
        name="open", limit=2, limit_default=20, rate_default="9/day", window_default="always"
    )
    text = text_of(person().get(QUEUES))
    for words in (
        "0/7",
        "1/minute",
        "Its limit: 7. An operator says so.",
        "Its rate is used up: 1/minute. The next token comes at",
        "closed",
        "The queue mail is outside its window, ",
        "0/2",
        "Its limit: 2. An operator says so. The settings say 20.",
        "Its rate: 9/day. The settings say so.",
        "Its window: always. The settings say so.",
    ):
        assert words in text
    assert "Limit…" not in text
    assert "Window…" not in text, "no right, no control"


def test_queue_is_limited_and_rated_in_one_go(person):
    client = person(*OPERATOR)
    assert "Limit…" in text_of(client.get(QUEUES))
    assert "Empty: as the settings say, else no limit." in text_of(client.get(LIMIT))
    assert "Empty: no limit." in text_of(client.get(SET)), "settings say nothing of keys"
    values = {"number": "3", "rate": "10 / second", "reason": "vendor asks"}
    assert "Queue mail is limited anew." in text_of(client.post(LIMIT, values, follow=True))
    row = Queue.objects.get(pk="mail")
    assert (row.limit, row.rate) == (3, "10/second")
    assert 'value="10/second"' in text_of(client.get(LIMIT))
    assert "This is what holds already." in text_of(client.post(LIMIT, values))
    client.post(LIMIT, {"number": "3", "rate": "", "reason": "vendor asks"})
    assert actions() == [
        ("set_limit", "mail", {"limit": 3}),
        ("set_rate", "mail", {"rate": "10/second"}),
        ("set_rate", "mail", {"rate": None}),
    ]


def test_empty_fields_return_a_queue_to_what_the_settings_say(person):
    client = person(*OPERATOR)
    QueueFactory.create(name="mail", limit=3, limit_default=20, rate_default="9/second")
    text = text_of(client.get(LIMIT))
    assert "Its limit: 3. An operator says so. The settings say 20." in text
    assert "Its rate: 9/second. The settings say so." in text
    # The fields are what operators chose: who saves them as they are chooses nothing new.
    assert ('value="3"' in text, 'value="9/second"' in text) == (True, False)
    client.post(LIMIT, {"number": "", "rate": "", "reason": "over"})
    assert actions() == [("set_limit", "mail", {"limit": None})]
    assert "Its limit: 20. The settings say so." in text_of(client.get(QUEUES))
    assert "This is what holds already." in text_of(
        client.post(LIMIT, {"number": "", "rate": "", "reason": "over"})
    )


def test_window_is_set_and_forgotten(person):
    client = person(*OPERATOR)
    assert "no pump claims from it" in text_of(client.get(WINDOW))
    values = {"window": "20:00-06:00 Europe/Zurich", "reason": "nights only"}
    assert "Queue mail has its window." in text_of(client.post(WINDOW, values, follow=True))
    assert "20:00-06:00 Europe/Zurich" in text_of(client.get(WINDOW))
    client.post(WINDOW, {"window": " ", "reason": "days, too"})
    assert Queue.objects.get(pk="mail").window is None
    assert [action for action, _target, _after in actions()] == ["set_window", "set_window"]


@pytest.mark.parametrize(
    ("url", "values", "words"),
    [
        (LIMIT, {"number": "3"}, "This field is required."),
        (LIMIT, {"number": "-1", "reason": "x"}, "greater than or equal to 0"),
        (LIMIT, {"rate": "fast", "reason": "x"}, "“fast” cannot be: write starts and a period"),
        (WINDOW, {"window": "20:00-06:00", "reason": "x"}, "end with a time zone"),
        (SET, {"key": "a", "rate": "1/week", "reason": "x"}, "“1/week” cannot be"),
        (SET, {"key": "", "number": "1", "reason": "x"}, "This field is required."),
        (SET, {"key": "a", "reason": "x"}, "Give a number, a rate, or both."),
    ],
)
def test_what_cannot_be_is_asked_again(person, url, values, words):
    assert words in text_of(person(*OPERATOR).post(url, values)).replace("&quot;", '"')
    assert actions() == []


@pytest.mark.parametrize("url", [LIMIT, WINDOW, SET])
def test_person_who_may_only_look_changes_nothing(person, url):
    client = person(*VIEW, "view_limit")
    assert client.get(url).status_code == 403
    values = {"key": "a", "number": "1", "window": "always", "reason": "x"}
    assert client.post(url, values).status_code == 403
    assert client.post(KEYS, {}).status_code == 403
    assert actions() == []


def test_keys_are_listed_below_the_patterns_with_what_holds_for_them(person):
    later = timezone.now() + timedelta(seconds=40)
    Limit.objects.create(key="zone:*", rate="1/minute", source="pattern")
    Limit.objects.create(key="zone:1", source="code", rate_full_at=later)
    Limit.objects.create(key="gateway", limit=5, source="operator")
    LeaseFactory.create(job=JobFactory.create(state="leased", run=1), limit_key="gateway")
    text = text_of(person(*OPERATOR).get(KEYS))
    places = [text.index(words) for words in (">zone:*<", ">gateway<", ">zone:1<")]
    assert places == sorted(places)
    assert "the pattern zone:*" in text
    assert "1/minute (next token" in text
    assert '<td class="field-running">1</td>' in text
    assert "key=zone%3A%2A" in text
    assert "key=zone" not in text_of(person(*VIEW, "view_limit").get(KEYS)), "no right, no control"


def test_list_of_keys_is_searched_by_their_beginning_at_the_same_cost(person):
    client = person(*OPERATOR)
    assert "No key is limited." in text_of(client.get(KEYS))
    counts = []
    for size in (3, 30):
        Limit.objects.bulk_create(
            Limit(key=f"{size}:{number}", limit=1, source="code") for number in range(size)
        )
        with CaptureQueriesContext(connection) as captured:
            text = text_of(client.get(KEYS, {"q": f"{size}:"}))
        counts.append(len(captured))
        assert text.count("field-key_text") == size
    assert counts[0] == counts[1]
    assert "No key begins so." in text_of(client.get(KEYS, {"q": "nowhere"}))


def test_key_and_pattern_are_limited_and_forgotten(person):
    client = person(*OPERATOR)
    Limit.objects.create(key="gateway", limit=5, source="code")
    assert 'value="5"' in text_of(client.get(SET, {"key": "gateway"}))
    client.post(SET, {"key": "gateway", "number": "5", "rate": "2/second", "reason": "x"})
    client.post(SET, {"key": "tenant:*", "rate": "1/minute", "reason": "x"})
    rows = Limit.objects.order_by("key").values_list("key", "limit", "rate", "source")
    assert list(rows) == [
        ("gateway", 5, "2/second", "operator"),
        ("tenant:*", None, "1/minute", "pattern"),
    ]
    client.post(SET, {"key": "gateway", "number": "", "rate": "", "reason": "x"})
    assert list(rows.values_list("key", flat=True)) == ["tenant:*"]
    assert [action for action, _target, _after in actions()] == [
        *("set_limit", "set_rate", "set_rate", "set_limit", "set_rate"),
    ]
    log = reverse("admin:backwave_operatoraction_changelist")
    assert "limit_key gateway" in text_of(client.get(log, {"q": "gateway"}))


def test_address_of_one_key_leads_to_the_list(person):
    Limit.objects.create(key="gateway", limit=5, source="code")
    change = reverse("admin:backwave_limit_change", args=["gateway"])
    assert person(*OPERATOR).get(change)["Location"] == KEYS
    assert person("view_job").get(change).status_code == 403
