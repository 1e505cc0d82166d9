"""The commands that act: thin over the operator actions, honest in text and exit code."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

import backwave_django as backwave
from backwave_django import monitor
from backwave_django.core.errors import UnknownJobType
from backwave_django.jobs.registry import registry
from backwave_django.models import Job, Limit, OperatorAction, Queue
from tests.factories import JobFactory, LeaseFactory, uuid7

pytestmark = pytest.mark.django_db

MISSING = str(uuid7(1))


def run(*arguments):
    out = StringIO()
    call_command(*map(str, arguments), stdout=out)
    return out.getvalue()


def test_cancel_tells_what_came_of_each_job():
    waiting, running = JobFactory.create(), LeaseFactory.create().job
    out = run("backwave_cancel", waiting.pk, running.pk, "--reason=vendor outage", "--actor=ops")
    assert f"{waiting.pk} done cancelled" in out
    assert f"{running.pk} requested leased (it runs; its body was asked to stop)" in out
    entry = OperatorAction.objects.get(target=str(waiting.pk))
    assert (entry.actor_name, entry.source, entry.reason) == ("ops", "command", "vendor outage")


def test_cancel_fails_if_any_job_was_left_as_it_was():
    waiting, ended = JobFactory.create(), JobFactory.create(state="succeeded")
    with pytest.raises(CommandError, match="2 of 3 jobs were left as they are: 1 done, 1 refused"):
        run("backwave_cancel", waiting.pk, ended.pk, MISSING)
    assert Job.objects.get(pk=waiting.pk).state == "cancelled"


def test_requeue_brings_jobs_back():
    dead = JobFactory.create(state="dead_lettered", spent=3)
    assert "done scheduled" in run("backwave_requeue", dead.pk)
    assert Job.objects.get().spent == 0
    assert OperatorAction.objects.get().actor_name, "the user of the process, unless it is told"


@pytest.mark.parametrize("command", ["backwave_cancel", "backwave_requeue", "backwave_why"])
def test_what_is_no_id_is_refused(command):
    with pytest.raises(CommandError, match="'nonsense' is no job id: write all 36"):
        run(command, "nonsense")


def test_pause_lasts_for_a_span_until_a_time_or_until_resumed():
    before = monitor.database_clock()
    out = run("backwave_pause", "mail", "--for=30m", "--reason=vendor outage")
    queue = Queue.objects.get(pk="mail")
    assert queue.paused_until is not None
    assert timedelta(minutes=30) <= queue.paused_until - before < timedelta(minutes=31)
    assert out.startswith("Queue mail is paused until ")
    run("backwave_pause", "mail", "--until=2099-01-02T03:04:05", "--reason=x")
    queue.refresh_from_db()
    assert queue.paused_until == datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert "until it is resumed" in run("backwave_pause", "mail", "--reason=x")
    assert run("backwave_resume", "mail", "--reason=back") == "Queue mail is resumed.\n"
    assert not Queue.objects.get(pk="mail").paused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["backwave_pause", "mail"], "--reason"),
        (["backwave_pause", "mail", "--reason= "], "say why"),
        (["backwave_pause", "mail", "--for=-3", "--reason=x"], "--for: '-3' is no span"),
        (["backwave_pause", "mail", "--for=soon", "--reason=x"], "--for: 'soon' is no span"),
        (["backwave_pause", "mail", "--until=soon", "--reason=x"], "--until: 'soon' is no instant"),
        (["backwave_pause", "mail", "--until=2001-01-01T00:00", "--reason=x"], "in the future"),
        (["backwave_resume", "q" * 101, "--reason=x"], "1 to 100 characters"),
        (["backwave_limit", "3", "--reason=x"], "--queue --key is required"),
        (["backwave_limit", "--queue=mail", "many", "--reason=x"], "'many' is no limit:"),
        (["backwave_limit", "--key=", "3", "--reason=x"], "1 to 200 characters"),
        (["backwave_limit", "--key=", "--rate=1/day", "--reason=x"], "1 to 200 characters"),
        (["backwave_limit", "--queue=mail", "--reason=x"], "Name a LIMIT, a --rate, or both"),
        (
            ["backwave_limit", "--queue=mail", "--rate=fast", "--reason=x"],
            "'fast' is no rate: write starts and a period",
        ),
        (["backwave_window", "mail", "--reason=x"], "WINDOW --clear is required"),
        (["backwave_window", "mail", "always"], "--reason"),
        (["backwave_window", "mail", "at night", "--reason=x"], "'at' is no window"),
        (["backwave_enqueue", "shop.send_receipt", "--args=[1"], "--args: .* is not JSON"),
        (["backwave_enqueue", "shop.send_receipt", "--args=7"], "--args: '7' is neither"),
    ],
)
def test_wrong_usage_is_told_and_changes_nothing(arguments, words):
    with pytest.raises(CommandError, match=words):
        run(*arguments)
    assert not OperatorAction.objects.exists()


def test_limit_is_set_and_lifted():
    assert run("backwave_limit", "--queue=mail", 3, "--reason=x") == "mail has a limit of 3.\n"
    assert Queue.objects.get(pk="mail").limit == 3
    run("backwave_limit", "--queue=mail", "none", "--reason=x")
    assert Queue.objects.get(pk="mail").limit is None
    run("backwave_limit", "--key=gateway", 2, "--reason=x")
    assert Limit.objects.get(pk="gateway").limit == 2
    for number in (-1, 2**31):
        with pytest.raises(CommandError, match="zero or more"):
            run("backwave_limit", "--reason=x", "--queue=mail", "--", number)


def test_rate_is_set_beside_a_limit_or_alone():
    out = run("backwave_limit", "--queue=mail", 3, "--rate=10/second", "--reason=x")
    assert out == "mail has a limit of 3 and a rate of 10/second.\n"
    run("backwave_limit", "--queue=mail", "--rate=none", "--reason=x")
    assert (Queue.objects.get(pk="mail").limit, Queue.objects.get(pk="mail").rate) == (3, None)
    run("backwave_limit", "--key=tenant:*", "--rate=100/5 minutes", "--reason=x")
    row = Limit.objects.get(pk="tenant:*")
    assert (row.limit, row.rate, row.source) == (None, "100/5 minutes", "pattern")
    actions = OperatorAction.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["set_limit", "set_rate", "set_rate", "set_rate"]


def test_limit_and_rate_are_set_both_or_none():
    with pytest.raises(CommandError, match="zero or more"):
        run("backwave_limit", "--queue=mail", "--rate=1/day", "--reason=x", "--", -1)
    assert not Queue.objects.filter(rate__isnull=False).exists()


def test_lifted_limit_and_rate_of_a_queue_return_to_those_of_the_settings():
    Queue.objects.create(name="mail", limit_default=20, rate_default="9/second")
    run("backwave_limit", "--queue=mail", 3, "--rate=1/second", "--reason=x")
    out = run("backwave_limit", "--queue=mail", "none", "--reason=x")
    assert out == "mail has the settings' limit of 20.\n"
    out = run("backwave_limit", "--queue=mail", "none", "--rate=none", "--reason=x")
    assert out == "mail has the settings' limit of 20 and the settings' rate of 9/second.\n"
    Queue.objects.update(limit_default=None)
    out = run("backwave_limit", "--queue=mail", "none", "--rate=2/second", "--reason=x")
    assert out == "mail has no limit and a rate of 2/second.\n"
    # What operators chose is in the log, and nothing else.
    shown = OperatorAction.objects.order_by("id").values_list("before", "after")
    assert list(shown)[2:4] == [
        ({"limit": 3}, {"limit": None}),
        ({"limit": None}, {"limit": None}),
    ]


def test_window_is_set_and_cleared():
    out = run("backwave_window", "mail", "always", "--reason=x", "--actor=ops")
    assert out == "Queue mail is served always: now open.\n"
    opens = monitor.database_clock() + timedelta(hours=3)
    window = f"{opens:%H}:00-{opens + timedelta(hours=1):%H}:00 UTC"
    assert f"now closed until {opens:%Y-%m-%dT%H}:00:00" in run(
        "backwave_window", "mail", window, "--reason=nights"
    )
    Queue.objects.update(window_default="Mon-Fri 08:00-18:00 UTC")
    assert "served Mon-Fri 08:00-18:00 UTC" in run(
        "backwave_window", "mail", "--clear", "--reason=x"
    )
    entry = OperatorAction.objects.order_by("id")[0]
    assert (entry.action, entry.actor_name, entry.after) == (
        "set_window",
        "ops",
        {"window": "always"},
    )


def test_purge_says_how_much_is_gone():
    JobFactory.create_batch(
        2, state="succeeded", terminal_at=monitor.database_clock() - timedelta(days=8)
    )
    JobFactory.create(state="succeeded", terminal_at=monitor.database_clock())
    assert run("backwave_purge") == "2 rows were past their retention and are gone.\n"
    assert Job.objects.count() == 1


@pytest.fixture
def greet():
    try:
        return registry.get("tests.greet_by_command")
    except UnknownJobType:

        @backwave.job("tests.greet_by_command")
        def greet(name: str, times: int = 1) -> None: ...

        return greet


def test_enqueue_prints_the_id_of_the_new_job(greet):
    by_name = run(
        "backwave_enqueue",
        greet.wire_name,
        '--args={"name": "Ada"}',
        "--queue=bulk",
        "--priority=7",
        "--delay=1h",
        "--unique=k",
    )
    job = Job.objects.get(pk=by_name.strip())
    assert (job.queue, job.priority, job.unique_key) == ("bulk", -7, "k")
    assert job.due_at > monitor.database_clock() + timedelta(minutes=50)
    assert json.loads(job.payload)["kwargs"] == {"name": "Ada"}
    in_order = run("backwave_enqueue", greet.wire_name, '--args=["Ada", 2]')
    job = Job.objects.get(pk=in_order.strip())
    assert json.loads(job.payload)["kwargs"] == {"name": "Ada", "times": 2}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tests.greet_by_comand"], "did you mean 'tests.greet_by_command'"),
        (["tests.greet_by_command"], "name"),
        (["tests.greet_by_command", '--args=["Ada"]', "--priority=101"], "priority=101"),
    ],
)
def test_enqueue_refuses_what_cannot_run(greet, arguments, words):
    with pytest.raises(CommandError, match=words):
        run("backwave_enqueue", *arguments)
    assert not Job.objects.exists()
