"""What a body may read of other jobs."""

from uuid import UUID

import pytest

import backwave_django as backwave
from backwave_django.models import Outcome
from backwave_django.testing import Harness
from tests.jobs.flowing import double, plan, read, read_double, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness():
    plan()
    with Harness() as opened:
        yield opened


def problem_of(handle):
    assert handle.refresh().state == "dead_lettered"
    outcome = Outcome.objects.get(job_id=handle.id)
    assert str(outcome.error_class).endswith("NotAnAncestor")
    return outcome.message


def test_any_ancestor_can_be_read(harness):
    first = double.enqueue(21)
    second = work.options(after=first).enqueue("between")
    last = read.options(after=second).enqueue(first.id)
    harness.run_until_idle()
    assert last.refresh().output == [42, "succeeded"]


def test_an_ancestor_that_failed_has_a_state_and_no_output(harness):
    plan(bad=["fail"])
    first = work.enqueue("bad")
    last = read.options(after=first, after_mode="on_any").enqueue(first.id)
    harness.run_until_idle()
    assert last.refresh().output == [None, "dead_lettered"]


def test_a_sibling_is_refused(harness):
    root = work.enqueue("root")
    sibling = double.options(after=root).enqueue(1)
    reader = read.options(after=root).enqueue(sibling.id)
    harness.run_until_idle()
    assert problem_of(reader) == (
        f"job {sibling.id} is no ancestor of this flowing.read job {reader.id}; only a job that "
        "it waits for has surely ended: name it with after=..."
    )


def test_steps_are_found_by_name(harness):
    with backwave.workflow("names") as flow:
        flow.add(double.s(1), name="one")
        two = flow.add(double.s(2), name="two")
        good = flow.add(read.s("two"), after=two)
        bad = flow.add(read.s("one"), after=two)
        unknown = flow.add(read.s("three"), after=two)
    harness.run_until_idle()
    assert good.refresh().output == [4, "succeeded"]
    assert problem_of(bad).startswith(f"step 'one', job {flow.steps['one'].id}, is no ancestor")
    assert "is a step or a job type 'three'" in problem_of(unknown)


def test_the_only_ancestor_of_a_type_is_found_by_type_wire_name_and_alias(harness):
    first = double.enqueue(21)
    by_name = read.options(after=first).enqueue("flowing.double")
    by_type = read_double.options(after=first).enqueue()
    harness.run_until_idle()
    assert by_name.refresh().output == [42, "succeeded"]
    assert by_type.refresh().output == 42


def test_of_two_ancestors_of_a_type_neither_is_meant(harness):
    pair = [double.enqueue(1), double.enqueue(2)]
    reader = read.options(after=pair).enqueue("flowing.double")
    harness.run_until_idle()
    assert "more than one ancestor of this job is a flowing.double" in problem_of(reader)


def test_parents_come_in_the_order_in_which_they_were_named(harness):
    seen: list[object] = []

    @backwave.job("kin.look")
    def look(ctx: backwave.JobContext = backwave.context()) -> None:
        seen.extend((parent.id, parent.state, parent.output) for parent in ctx.parents)

    one, two = double.enqueue(1), double.enqueue(2)
    look.options(after=[two, one]).enqueue()
    harness.run_until_idle()
    assert seen == [(two.id, "succeeded", 4), (one.id, "succeeded", 2)]


def test_a_body_called_as_plain_python_reads_what_it_has_the_handle_of(harness):
    first = double.enqueue(21)
    harness.run_until_idle()
    assert read(first) == [42, "succeeded"]
    with pytest.raises(backwave.NotAnAncestor, match="called as plain Python"):
        read("flowing.double")
    with pytest.raises(backwave.JobGone):
        read(UUID(int=404))


def test_a_plain_call_has_no_parents():
    @backwave.job("kin.orphan")
    def orphan(ctx: backwave.JobContext = backwave.context()) -> int:
        return len(ctx.parents)

    assert orphan() == 0
