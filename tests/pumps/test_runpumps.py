from contextlib import ExitStack

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

import backwave_django as backwave
from backwave_django.models import Job, Lease, Queue
from tests.conformance.subjects import held_row
from tests.pumps.running import RunningNode
from tests.pumps.waiting import until


@backwave.job("command.note")
def note() -> str:
    return "ran"


@backwave.job("command.count_leases")
def count_leases() -> int:
    return Lease.objects.count()


@pytest.mark.django_db
def test_f055_inside_a_test_case_it_refuses_and_says_what_to_use():
    note.enqueue()
    with pytest.raises(CommandError) as caught:
        call_command("runpumps", "--drain")
    assert "TransactionTestCase" in str(caught.value)
    assert "backwave_harness" in str(caught.value)
    assert Job.objects.count() == 1
    assert connection.is_usable()


@pytest.mark.django_db(transaction=True)
def test_in_a_transaction_test_it_drains_and_returns(capsys):
    handle = note.enqueue()
    call_command("runpumps", "--drain")
    assert handle.refresh().output == "ran"
    assert "group default" in capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
def test_windows_of_the_settings_are_noted_and_forgotten_when_pumps_start(settings):
    for windows, noted in [({"reports": "20:00-06:00 UTC"}, "20:00-06:00 UTC"), ({}, None)]:
        queues = {"default": {"QUEUES": ["default", "reports"]}}
        settings.BACKWAVE = {"GROUPS": queues, "WINDOWS": windows}
        call_command("runpumps", "--drain")
        assert Queue.objects.get().window_default == noted


@pytest.mark.django_db(transaction=True)
def test_limits_of_the_settings_are_noted_changed_and_forgotten_when_pumps_start(settings):
    steps = [
        ({"reports": {"LIMIT": 3, "RATE": "9/second"}}, (3, "9/second")),
        ({"reports": 4}, (4, None)),
        ({}, (None, None)),
    ]
    for limits, noted in steps:
        queues = {"default": {"QUEUES": ["default", "reports"]}}
        settings.BACKWAVE = {"GROUPS": queues, "LIMITS": limits}
        call_command("runpumps", "--drain")
        row = Queue.objects.get()
        assert (row.pk, row.limit_default, row.rate_default) == ("reports", *noted)


@pytest.mark.django_db(transaction=True)
def test_limit_of_the_settings_holds_when_pumps_run(settings):
    # Not more of them on SQLite: types of other tests are atomic.
    dials = {"PUMPS": 2 if connection.vendor == "postgresql" else 1}
    settings.BACKWAVE = {"GROUPS": {"default": dials}, "LIMITS": {"default": 1}}
    handles = count_leases.enqueue_many([()] * 12)
    call_command("runpumps", "--drain")
    assert [handle.refresh().output for handle in handles] == [1] * 12


def sessions_that_wait_for_locks():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.vendor("postgresql")
def test_no_pump_claims_before_the_limits_of_the_settings_are_noted(settings):
    settings.BACKWAVE = {"LIMITS": {"default": 1}}
    Queue.objects.create(name="default")
    handles = count_leases.enqueue_many([()] * 12)
    with ExitStack() as stack:
        with held_row(Queue, name="default"):
            stack.enter_context(RunningNode(PUMPS=2))
            until(lambda: sessions_that_wait_for_locks() == 2)
        until(lambda: not Job.objects.exclude(state="succeeded").exists())
    assert [handle.refresh().output for handle in handles] == [1] * 12


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("option", [["--reload"], ["--processes", "2"]])
def test_what_needs_a_command_line_of_its_own_refuses_to_be_called(option):
    with pytest.raises(CommandError, match="call it from a shell"):
        call_command("runpumps", *option)


GROUPS = {"GROUPS": {"web": {"QUEUES": ["critical"]}, "bulk": {"QUEUES": ["imports"]}}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--group", "nowhere"], 'BACKWAVE["GROUPS"] has: bulk, web'),
        ([], "There is no group 'default'"),
        (["--group", "web", "--group", "web"], "--group web is given twice"),
        (["--group", "web", "--queues", "imports"], "'imports', which no chosen group serves"),
        (["--group", "web", "--max-jobs", "0"], "no whole number of 1 or more"),
        (["--group", "web", "--processes", "two"], "no whole number of 1 or more"),
        (["--group", "web", "--once", "--drain"], "not allowed with argument"),
    ],
)
def test_wrong_usage_is_refused_by_name(options, said, settings):
    settings.BACKWAVE = GROUPS
    with pytest.raises(CommandError) as caught:
        call_command("runpumps", *options)
    assert said in str(caught.value)


@pytest.mark.django_db(transaction=True)
def test_a_middleware_that_is_not_there_is_refused(settings):
    settings.BACKWAVE = {**GROUPS, "MIDDLEWARE": ["no.such.middleware"]}
    with pytest.raises(CommandError, match="which cannot be imported"):
        call_command("runpumps", "--group", "web", "--drain")


def test_help_tells_units_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        call_command("runpumps", "--help")
    told = capsys.readouterr().out
    assert "143  ended by a second SIGTERM" in told
    assert "SHUTDOWN_TIMEOUT (seconds" in told
    assert "--child-of" not in told
