import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import transaction

import backwave_django as backwave
from backwave_django.models import Dependency, Job, Limit, Workflow
from backwave_django.testing import Harness
from tests.jobs.flowing import RAN, double, limited, named_after, patient, plan, total, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness():
    plan()
    with Harness() as opened:
        yield opened


def edges():
    return {(edge.parent_id, edge.child_id): edge.mode for edge in Dependency.objects.all()}


def test_steps_run_after_those_that_they_name(harness):
    with backwave.workflow("checkout") as flow:
        ok = flow.add(work, "validate")
        paid = flow.add(work, "charge", after=ok)
        packed = flow.add(work, "pack", after=[ok, paid])
    row = Workflow.objects.get(pk=flow.id)
    assert (row.name, row.size) == ("checkout", 3)
    assert set(edges()) == {(ok.id, paid.id), (ok.id, packed.id), (paid.id, packed.id)}
    assert [step.state for step in (ok, paid, packed)] == ["scheduled", "awaiting", "awaiting"]
    harness.run_until_idle()
    assert RAN == ["validate", "charge", "pack"]
    assert flow.handle.status == backwave.WorkflowStatus.SUCCEEDED


def test_nothing_is_inserted_before_the_block_ends(harness):
    with backwave.workflow("checkout") as flow:
        flow.add(work, "first")
        assert not Job.objects.exists()
    assert Job.objects.get().workflow == flow.id


def test_a_block_that_raises_inserts_nothing(harness):
    def fail():
        with backwave.workflow("checkout") as flow:
            flow.add(work, "first")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not Job.objects.exists()
    assert not Workflow.objects.exists()


def test_a_rollback_takes_the_workflow_with_it(harness):
    flow = backwave.workflow("checkout")

    def fail():
        with transaction.atomic():
            with flow:
                flow.add(work, "first")
            assert flow.handle.status == "running"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(backwave.WorkflowGone, match=str(flow.id)):
        flow.handle.refresh()


def test_a_graph_is_inserted_whole_or_not_at_all(harness):
    missing = backwave.JobHandle("00000000-0000-0000-0000-000000000404")

    def begin():
        with backwave.workflow("checkout") as flow:
            flow.add(work, "first")
            flow.add(work, "second", after=missing)

    with pytest.raises(backwave.UnknownParent):
        begin()
    assert not Job.objects.exists()


def test_a_workflow_without_steps_is_none(harness):
    with backwave.workflow("checkout"):
        pass
    assert not Workflow.objects.exists()


def test_arguments_are_checked_where_a_step_is_added(harness):
    with backwave.workflow("checkout") as flow:
        with pytest.raises(backwave.WrongArguments):
            flow.add(double)  # type: ignore[call-overload]  # what is tested
        with pytest.raises(backwave.UnserializableValue):
            flow.add(work.s(object()))  # type: ignore[arg-type]  # what is tested
        with pytest.raises(backwave.InvalidOption, match="write a job type"):
            flow.add(print, "x")  # type: ignore[call-overload]  # what is tested
    assert not Job.objects.exists()


def test_a_call_takes_a_name_and_a_mode_of_its_own(harness):
    plan(first=["fail"])
    with backwave.workflow("checkout") as flow:
        first = flow.add(work.s("first"), name="begin")
        last = flow.add(work.s("last"), after=first, after_mode="on_any", name="clean up")
    assert Workflow.objects.get().steps == {"begin": str(first.id), "clean up": str(last.id)}
    assert flow.steps == flow.handle.steps == {"begin": first, "clean up": last}
    harness.run_until_idle()
    assert last.refresh().state == "succeeded"
    assert flow.handle.status == "failed"


def test_steps_have_options(harness):
    with backwave.workflow("checkout") as flow:
        ok = flow.add(work.options(queue="bulk", priority=7), "first")
        flow.add(work.options(after=ok, after_mode="on_any", tags={"a": 1}), "second")
    first, second = Job.objects.order_by("id")
    assert (first.queue, first.priority, second.tags) == ("bulk", -7, {"a": 1})
    assert edges() == {(first.pk, second.pk): "on_any"}


def test_a_step_may_wait_for_a_job_outside(harness):
    outside = work.enqueue("outside")
    with backwave.workflow("checkout") as flow:
        flow.add(work, "inside", after=outside)
    harness.run_until_idle()
    assert RAN == ["outside", "inside"]


def test_a_step_whose_unique_key_is_held_stands_for_the_holder(harness):
    holder = work.options(unique="flow:1").enqueue("there before")
    with backwave.workflow("checkout") as flow:
        step = flow.add(work.options(unique="flow:1"), "not again")
        flow.add(work, "last", after=step)
    assert (step.id, step.created) == (holder.id, False)
    harness.run_until_idle()
    assert RAN == ["there before", "last"]


def test_two_steps_of_a_name_are_refused():
    with backwave.workflow("checkout") as flow:
        flow.add(work.s("a"), name="pay")
        with pytest.raises(backwave.InvalidOption, match="another step of this workflow has it"):
            flow.add(work.s("b"), name="pay")


@pytest.mark.parametrize("name", ["", "x" * 201, "nul\0", 7])
def test_names_have_bounds(name):
    with pytest.raises(backwave.InvalidOption, match="name="):
        backwave.workflow(name)


def test_a_mode_that_is_none_is_refused():
    flow = backwave.workflow("checkout")
    with flow, pytest.raises(backwave.InvalidOption, match="'on_success', 'on_any'"):
        flow.add(work.s("a"), after_mode="always")


def test_a_body_with_a_parameter_called_after_is_added_as_a_call(harness):
    with backwave.workflow("checkout") as flow:
        first = flow.add(work, "first")
        for after in (first, ()):
            with pytest.raises(backwave.InvalidOption, match="has a parameter of this name"):
                flow.add(named_after, "noon", after=after)
        step = flow.add(named_after.s(after="noon"), after=first)
    harness.run_until_idle()
    assert step.refresh().output == "noon"


def test_steps_are_added_inside_the_block_only():
    flow = backwave.workflow("checkout")
    with pytest.raises(backwave.WorkflowClosed, match="inside its `with` block"):
        flow.add(work, "too early")
    with flow:
        flow.add(work, "in time")
    with pytest.raises(backwave.WorkflowClosed):
        flow.add(work, "too late")
    with pytest.raises(backwave.WorkflowClosed, match="make another one"), flow:
        flow.add(work, "again")
    assert Job.objects.count() == 1


def test_limits_of_computed_keys_are_noted(harness):
    with backwave.workflow("checkout") as flow:
        flow.add(limited, "acme")
    assert Limit.objects.get(key="flowing:acme").limit == 2
    assert Job.objects.get().limit_key == "flowing:acme"


def test_a_plain_block_in_async_code_says_what_to_write():
    async def begin() -> None:
        with backwave.workflow("checkout") as flow:
            flow.add(work, "first")

    with pytest.raises(SynchronousOnlyOperation, match="async with"):
        async_to_sync(begin)()


def test_async_code_has_a_door_of_its_own(harness):
    async def begin() -> backwave.WorkflowHandle:
        async with backwave.workflow("checkout") as flow:
            flow.add(work, "first")
        return await flow.handle.arefresh()

    assert async_to_sync(begin)().counts == {"scheduled": 1}


def test_a_join_reads_what_its_parents_returned(harness):
    with backwave.workflow("sum") as flow:
        doubled = [flow.add(double, number) for number in (1, 2, 3)]
        answer = flow.add(total, after=doubled)
    harness.run_until_idle()
    assert answer.refresh().output == 12


def test_f137_a_join_starts_once_after_the_last_success(harness):
    plan(slow=["fail", "fail"])
    with backwave.workflow("join") as flow:
        parents = [flow.add(patient, name) for name in ("quick", "slow", "third")]
        join = flow.add(work, "join", after=parents)
    harness.run_until_idle()
    assert join.refresh().state == "awaiting"
    harness.advance(seconds=10)
    assert RAN == ["quick", "slow", "third", "slow", "slow", "join"]
    assert (join.refresh().state, join.record.run) == ("succeeded", 1)
