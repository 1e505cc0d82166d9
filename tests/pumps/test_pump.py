from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

import backwave_django as backwave
from backwave_django.core.dials import StopRule
from backwave_django.models import Job, Lease, Outcome, Pump
from backwave_django.pumps import workers
from backwave_django.pumps.shutdown import ABANDONED, DRAINED
from tests.pumps.marks import BEGUN, GO
from tests.pumps.marks import SEEN as RAN
from tests.pumps.running import RunningNode
from tests.pumps.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

DRAIN = StopRule(when_idle=True)
ONCE = backwave.Retry(max_attempts=1)
AT_ONCE = backwave.Retry(max_attempts=3, initial=timedelta(0), maximum=timedelta(0), jitter=0)


@backwave.job("pump.note")
def note(value: object) -> object:
    RAN.append(value)
    return value


@backwave.job("pump.query")
def query() -> int:
    return Group.objects.count()


@backwave.job("pump.block", retry=AT_ONCE)
def block(ctx: backwave.JobContext = backwave.context()) -> int:
    BEGUN.set()
    GO.wait(60)
    return ctx.attempt


@backwave.job("pump.fail", retry=AT_ONCE)
def fail() -> None:
    raise ValueError("again")


@backwave.job("pump.polite", retry=AT_ONCE)
def polite(ctx: backwave.JobContext = backwave.context()) -> str:
    BEGUN.set()
    ctx.wait(timedelta(seconds=60))
    ctx.raise_if_cancelled()
    RAN.append("stopping")
    return "stopped early"


@backwave.job("pump.hang", timeout=timedelta(seconds=0.2), retry=ONCE)
def hang() -> None:
    GO.wait(60)


@backwave.job("pump.progress")
def progress(ctx: backwave.JobContext = backwave.context()) -> None:
    ctx.progress(3, 10, "packing")
    BEGUN.set()
    GO.wait(60)


def state(handle: backwave.JobHandle) -> str:
    return Job.objects.values_list("state", flat=True).get(pk=handle.id)


def test_everything_that_is_due_runs_once():
    handles = note.enqueue_many([(number,) for number in range(100)])
    with RunningNode(stop=DRAIN) as running:
        assert running.join() == DRAINED
    assert sorted(RAN) == list(range(100))
    assert {state(handle) for handle in handles} == {"succeeded"}
    assert not Lease.objects.exists()


@pytest.mark.parametrize("before", [0, 60])
def test_what_is_claimed_with_a_body_that_blocks_runs_meanwhile(before, monkeypatch):
    """Brisk bodies are run in a row by one thread, and nothing tells that the next one is brisk."""
    monkeypatch.setattr(workers, "_BRISK_SECONDS", 10.0)  # however slow this machine is today
    monkeypatch.setattr(workers, "_REST_SECONDS", 600.0)  # when one looks around by itself
    note.enqueue_many([(number,) for number in range(before)])
    with RunningNode(POLL_INTERVAL=30):
        until(lambda: len(RAN) == before)
        with transaction.atomic():
            blocked = [block.options(priority=50).enqueue() for _ in range(2)]
            note.enqueue_many([(number,) for number in range(3)])
        until(lambda: len(RAN) == before + 3)
        assert {state(each) for each in blocked} == {"leased"}
        GO.set()


def test_outputs_are_kept():
    handle = note.enqueue({"a": 1})
    with RunningNode(stop=DRAIN) as running:
        running.join()
    assert handle.refresh().output == {"a": 1}


def test_a_failing_job_is_tried_again_and_then_dead_lettered():
    handle = fail.enqueue()
    with RunningNode(stop=DRAIN) as running:
        assert running.join() == DRAINED
    assert state(handle) == "dead_lettered"
    outcomes = Outcome.objects.filter(job_id=handle.id)
    assert [outcome.kind for outcome in outcomes.order_by("run")] == ["failed"] * 3
    assert outcomes[0].message == "again"


def test_once_ends_after_one_claim():
    note.enqueue_many([(number,) for number in range(10)])
    with RunningNode(stop=StopRule(once=True)) as running:
        assert running.join() == DRAINED
    assert len(RAN) == 4


def test_max_jobs_ends_after_so_many_attempts():
    note.enqueue_many([(number,) for number in range(10)])
    with RunningNode(stop=StopRule(max_jobs=6)) as running:
        assert running.join() == DRAINED
    assert len(RAN) == 6


def test_a_job_enqueued_while_pumps_idle_is_hinted_to_them():
    # The next poll is far away: only the hint can bring it forward.
    with RunningNode(POLL_INTERVAL=600) as running:
        until(Pump.objects.exists, what="the pump registers")
        until(lambda: all(pump.vitals.is_well() for pump in running.node.pumps))
        note.enqueue("hinted")
        until(lambda: RAN == ["hinted"])


def test_a_drain_waits_for_what_runs():
    handle = block.enqueue()
    with RunningNode() as running:
        BEGUN.wait(30)
        running.node.drain()
        note.enqueue("too late")
        GO.set()
        assert running.join() == DRAINED
    assert state(handle) == "succeeded"
    assert RAN == []


def test_a_polite_body_sees_the_drain_at_once():
    handle = polite.enqueue()
    with RunningNode() as running:
        BEGUN.wait(30)
        running.node.drain()
        assert running.join() == DRAINED
    assert RAN == ["stopping"]
    assert handle.refresh().output == "stopped early"


def test_f091_a_body_that_outlives_the_grace_is_released_unspent():
    handle = block.enqueue()
    with RunningNode(SHUTDOWN_TIMEOUT=0.5) as running:
        BEGUN.wait(30)
        running.node.drain()
        assert running.join() == ABANDONED
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.spent, job.run) == ("scheduled", 0, 1)
    GO.set()
    with RunningNode(stop=DRAIN) as running:
        assert running.join() == DRAINED
    assert handle.refresh().output == 1


def test_f142_f145_a_time_out_is_final_and_its_slot_is_usable_again():
    handles = [hang.enqueue() for _ in range(4)]
    with RunningNode(POOL_SIZE=4):
        until(lambda: {state(handle) for handle in handles} == {"dead_lettered"})
        note.enqueue_many([(number,) for number in range(20)])
        until(lambda: sorted(RAN) == list(range(20)), what="new workers take the slots over")
        GO.set()
    assert {Job.objects.get(pk=handle.id).cause for handle in handles} == {"timeout"}


def test_f146_cancelling_a_running_job_reaches_its_body():
    handle = polite.enqueue()
    with RunningNode():
        BEGUN.wait(30)
        handle.cancel(actor="test")
        until(lambda: state(handle) == "cancelled")
    assert RAN == []


def test_progress_is_stored_with_the_lease():
    progress.enqueue()
    with RunningNode(LEASE_DURATION=1, HEARTBEAT_INTERVAL=0.1):
        BEGUN.wait(30)
        lease = until(lambda: Lease.objects.filter(progress_done=3).first())
        GO.set()
    assert lease is not None
    assert (lease.progress_total, lease.progress_message) == (10, "packing")


def test_pumps_register_and_say_good_bye():
    with RunningNode(PUMPS=2) as running:
        until(lambda: Pump.objects.filter(health="healthy").count() == 2)
    assert running.code == DRAINED
    assert set(Pump.objects.values_list("health", flat=True)) == {"stopped"}


@pytest.mark.vendor("postgresql")
def test_f056_no_session_is_left_when_a_node_has_ended():
    query.enqueue_many([()] * 10)
    with RunningNode(stop=DRAIN, PUMPS=2) as running:
        running.join()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name, query FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert until(lambda: cursor.fetchall() == [])


def test_a_health_file_appears_while_all_pumps_are_well(tmp_path):
    with RunningNode(health_file=tmp_path / "health"):
        until((tmp_path / "health").exists)
