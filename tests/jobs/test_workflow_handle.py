from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import backwave_django as backwave
from backwave_django.models import Job, OperatorAction
from backwave_django.testing import Harness
from tests.jobs.flowing import RAN, plan, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness():
    plan()
    with Harness() as opened:
        yield opened


def three():
    return backwave.chain(work.s("a"), work.s("b"), work.s("c")).enqueue(name="abc")


def test_a_handle_is_made_of_any_id(harness):
    handle = backwave.WorkflowHandle(str(three().id))
    assert (handle.name, handle.status, handle.steps) == ("abc", "running", {})
    assert handle.counts == {"scheduled": 1, "awaiting": 2}


def test_a_handle_of_nothing_says_so(harness):
    with pytest.raises(backwave.WorkflowGone, match="404"):
        _ = backwave.WorkflowHandle(UUID(int=0x404)).status


def test_cancelling_ends_all_that_waits(harness):
    handle = three()
    answer = handle.cancel(actor="ada", reason="wrong order")
    assert (answer.result, len(answer.jobs)) == ("done", 3)
    assert handle.refresh().status == "cancelled"
    action = OperatorAction.objects.get()
    assert (action.actor_name, action.action, action.target) == ("ada", "cancel", str(handle.id))
    assert (action.reason, action.before) == ("wrong order", {"scheduled": 1, "awaiting": 2})


def test_cancelling_takes_as_many_statements_whatever_the_size(harness):
    taken = []
    for size in (2, 200):
        fan = backwave.parallel(work.s(str(number)) for number in range(size)).then(work.s("end"))
        handle = fan.enqueue()
        with CaptureQueriesContext(connection) as statements:
            answer = handle.cancel(actor="ada")
        assert len(answer.jobs) == size + 1
        taken.append(len(statements))
    assert taken[0] == taken[1]


def test_retrying_goes_on_where_it_failed(harness):
    plan(b=["fail"])
    handle = three()
    harness.run_until_idle()
    assert handle.refresh().status == "failed"
    assert handle.retry(actor="ada").result == "done"
    assert handle.refresh().status == "running"
    harness.run_until_idle()
    assert RAN == ["a", "b", "b", "c"]
    assert handle.refresh().status == "succeeded"
    assert handle.retry(actor="ada").detail == "no job of it failed"


def test_restarting_runs_it_all_under_new_ids(harness):
    handle = three()
    assert handle.restart(actor="ada").result == "refused"
    harness.run_until_idle()
    answer = handle.restart(actor="ada")
    again = backwave.WorkflowHandle(answer.restarted_as)
    assert (again.name, again.status) == ("abc", "running")
    harness.run_until_idle()
    assert RAN == ["a", "b", "c"] * 2
    assert Job.objects.count() == 6


def test_a_scope_that_is_none_is_refused(harness):
    with pytest.raises(backwave.InvalidOption, match="failed_and_below"):
        three().retry("all", actor="ada")
