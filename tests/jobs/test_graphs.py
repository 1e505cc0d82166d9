import pytest
from asgiref.sync import async_to_sync

import backwave_django as backwave
from backwave_django.models import Dependency, Job, Workflow
from backwave_django.testing import Harness
from tests.jobs.flowing import RAN, double, plan, total, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness():
    plan()
    with Harness() as opened:
        yield opened


def test_a_chain_runs_one_after_the_other(harness):
    handle = backwave.chain(work.s("fetch"), work.s("parse"), work.s("store")).enqueue()
    assert handle.counts == {"scheduled": 1, "awaiting": 2}
    harness.run_until_idle()
    assert RAN == ["fetch", "parse", "store"]
    assert handle.refresh().status == "succeeded"


def test_a_chain_ends_where_a_call_fails(harness):
    plan(parse=["fail"])
    handle = backwave.chain(work.s("fetch"), work.s("parse"), work.s("store")).enqueue()
    harness.run_until_idle()
    assert RAN == ["fetch", "parse"]
    assert handle.refresh().counts == {"succeeded": 1, "dead_lettered": 1, "cancelled": 1}
    assert handle.status == "failed"


def test_a_group_is_followed_by_what_waits_for_all_of_it(harness):
    group = backwave.parallel(double.s(number) for number in (1, 2, 3))
    handle = group.then(total.s(), work.s("told")).enqueue(name="sum")
    harness.run_until_idle()
    assert handle.name == "sum"
    assert Job.objects.get(wire_name="flowing.total").output == "12"
    assert RAN == ["told"]


def test_graphs_are_parts_of_graphs(harness):
    graph = backwave.chain(
        work.s("first"),
        backwave.parallel(backwave.chain(work.s("left 1"), work.s("left 2")), [work.s("right")]),
        work.s("last"),
    )
    assert [call.args for call in graph.calls()] == [
        *(("first",), ("left 1",), ("left 2",), ("right",), ("last",)),
    ]
    graph.enqueue()
    names = {job.pk: job for job in Job.objects.all()}
    pairs = {(names[e.parent_id].payload, names[e.child_id].payload) for e in edges()}
    assert {(told(parent), told(child)) for parent, child in pairs} == {
        ("first", "left 1"),
        ("first", "right"),
        ("left 1", "left 2"),
        ("left 2", "last"),
        ("right", "last"),
    }
    harness.run_until_idle()
    assert (RAN[0], RAN[-1], len(RAN)) == ("first", "last", 5)


def edges():
    return Dependency.objects.all()


def told(payload):
    return payload.partition('"name":"')[2].partition('"')[0]


def test_an_empty_group_passes_on_what_came_before_it(harness):
    backwave.chain(work.s("first"), backwave.parallel(), work.s("last")).enqueue()
    assert edges().count() == 1


def test_a_graph_without_calls_is_nothing(harness):
    names: list[str] = []
    handle = backwave.parallel(work.s(name) for name in names).enqueue()
    assert not Workflow.objects.exists()
    with pytest.raises(backwave.WorkflowGone):
        handle.refresh()


def test_a_graph_can_be_enqueued_any_number_of_times(harness):
    graph = backwave.chain(work.s("a"), work.s("b"))
    assert graph.enqueue() != graph.enqueue()
    assert Job.objects.count() == 4
    assert len({job.workflow for job in Job.objects.all()}) == 2


def test_calls_keep_their_options(harness):
    backwave.chain(work.options(queue="bulk").s("a"), work.options(tags={"x": 1}).s("b")).enqueue()
    first, second = Job.objects.order_by("id")
    assert (first.queue, second.tags) == ("bulk", {"x": 1})


@pytest.mark.parametrize(
    ("graph", "name"),
    [
        (backwave.chain(work.s("a")), "flowing.work"),
        (backwave.chain(double.s(1), work.s("a"), work.s("b")), "flowing.double + 2"),
    ],
)
def test_a_workflow_is_named_after_its_first_call_unless_it_is_given_a_name(harness, graph, name):
    assert graph.enqueue().name == name
    assert graph.enqueue(name="mine").name == "mine"


@pytest.mark.parametrize("part", [work, "flowing.work", 7, None])
def test_what_is_no_call_is_refused(part):
    with pytest.raises(backwave.InvalidOption, match="write calls, chains and groups"):
        backwave.chain(work.s("a"), part)


def test_graphs_do_not_show_arguments():
    assert "secret" not in repr(backwave.chain(work.s("secret")))


def test_async_code_has_a_door_of_its_own(harness):
    handle = async_to_sync(backwave.chain(work.s("a"), work.s("b")).aenqueue)(name="async")
    assert (handle.name, handle.status) == ("async", "running")
