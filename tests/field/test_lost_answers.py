"""Answers of the database that never arrive, and rows that it will not take."""

from functools import partial

import pytest

from backwave_django.models import Job, Lease, Outcome
from tests.field import jobs
from tests.field.ground import QUICK
from tests.field.passing import passes
from tests.field.servers import PUMPS, Background, cut, run
from tests.fieldapp import jobs as field_jobs
from tests.pumps.waiting import until

pytestmark = pytest.mark.vendor("postgresql")


def _succeeded(count: int) -> bool:
    return Job.objects.filter(state="succeeded").count() == count


def kinds(handle):
    rows = Outcome.objects.filter(job_id=handle.id).order_by("run")
    return list(rows.values_list("kind", flat=True))


def test_leases_of_a_claim_whose_answer_is_lost_come_back_unspent(field, ledger, closed, wire):
    process = field.ready(environ={"DATABASE_URL": wire.url}, LEASE_DURATION=60)
    wire.lose("of-a-claim")
    handle = jobs.say.enqueue("of-a-claim")
    until(wire.lost.is_set, what="the claim's answer is lost")
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(process) == [0]
    assert kinds(handle) == ["released", "succeeded"]
    job = Job.objects.get(pk=handle.id)
    assert (job.run, job.spent) == (2, 0)
    assert [entry.attempt for entry in ledger.of("finish")] == [1]
    assert process.log.count("degraded") == process.log.count("healed") == 1


@pytest.mark.parametrize("waiting", [0, 1], ids=["alone", "with a claim"])
def test_a_report_whose_answer_is_lost_doubles_nothing(field, ledger, closed, wire, waiting):
    process = field.ready(environ={"DATABASE_URL": wire.url}, LEASE_DURATION=60, POOL_SIZE=1)
    handle = jobs.say.enqueue("of-a-report", str(field.gate))
    until(lambda: ledger.of("start"))
    others = field_jobs.noop.options(priority=-1).enqueue_many([()] * waiting)
    wire.lose("of-a-report")
    field.open_gate()
    until(wire.lost.is_set, what="the report's answer is lost")
    until(lambda: Job.objects.filter(state="succeeded").count() == 1 + waiting)
    closed()
    assert field.stop(process) == [0]
    assert kinds(handle) == ["succeeded"]
    assert process.log.count("unless that answer was lost") == 1
    assert len([entry for entry in ledger.of("start") if entry.job_id == handle.id]) == 1
    assert {entry.attempt for entry in ledger.entries()} == {1}
    assert all(kinds(other)[-1] == "succeeded" for other in others)


@pytest.fixture
def _poison(transactional_db):
    """Let the database refuse one value as data, wherever it comes from."""
    run(
        "CREATE FUNCTION ground_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.output = '\"poison\"' THEN RAISE 'cannot be had' USING ERRCODE = '22023'; END IF; "
        "RETURN NEW; END $$; "
        "CREATE TRIGGER ground_refuse BEFORE UPDATE ON backwave_job FOR EACH ROW "
        "EXECUTE FUNCTION ground_refuse()"
    )
    yield
    run("DROP FUNCTION ground_refuse CASCADE")


@pytest.mark.usefixtures("_poison")
def test_a_row_that_is_refused_as_data_ends_alone_and_says_why(field, ledger, closed):
    words = [*(["fine"] * 5), "poison", *(["fine"] * 5)]
    handles = jobs.say.enqueue_many([(word, str(field.gate)) for word in words])
    process = field.ready(POOL_SIZE=len(words))
    until(lambda: len(ledger.of("start")) == len(words))
    field.open_gate()
    until(lambda: Job.objects.filter(state="succeeded").count() == len(words) - 1)
    until(lambda: handles[5].refresh().state == "dead_lettered")
    closed()
    assert field.stop(process) == [0]
    job, outcome = Job.objects.get(pk=handles[5].id), Outcome.objects.get(job_id=handles[5].id)
    assert (job.cause, job.run) == ("output", 1)
    assert outcome.message is not None
    assert "cannot be had" in outcome.message
    assert "degraded" not in process.log


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(20, marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_f010_sessions_that_are_cut_again_and_again_cost_no_outcome(field, ledger, closed, rounds):
    process = field.ready(POOL_SIZE=8)
    for number in range(1, rounds + 1):
        handles = jobs.work.enqueue_many([(0.05 * n,) for n in range(12)])
        with Background(lambda: cut(PUMPS), every_seconds=0.1):
            passes(1.5)
        until(partial(_succeeded, 12 * number))
        assert all(handle.refresh().state == "succeeded" for handle in handles)
    closed()
    assert field.stop(process) == [0]
    assert not Lease.objects.exists()


def test_f010_a_wire_that_hangs_is_given_up_in_time(field, ledger, closed, wire):
    handle = field_jobs.until.enqueue(str(field.gate))
    process = field.ready(environ={"DATABASE_URL": wire.url}, LEASE_DURATION=6)
    until(lambda: ledger.of("start"))
    wire.hang()
    # A sixth of the lease, however long nobody says anything.
    until(lambda: "silent for 1 s" in process.log, seconds=1 + QUICK["HEARTBEAT_INTERVAL"] + 10)
    wire.flow()
    until(lambda: "healed" in process.log)
    field.open_gate()
    until(lambda: handle.refresh().state == "succeeded")
    closed()
    assert field.stop(process) == [0]
    assert kinds(handle) == ["succeeded"]
