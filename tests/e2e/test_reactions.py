"""What happens because of a process that died."""

from backwave_django.models import Job
from tests.fieldapp import jobs, reactions
from tests.pumps.waiting import until


def test_f139_a_job_lost_by_a_crash_frees_who_waits_and_is_told_once(field, ledger):
    lost = reactions.kill_for_good.enqueue()
    child = jobs.noop.options(after=lost, after_mode="on_any").enqueue()
    doomed = jobs.noop.options(after=lost).enqueue()
    field.runpumps("--processes", "2", LEASE_DURATION=600)
    until(lambda: child.refresh().state == "succeeded")
    until(lambda: ledger.of("buried"))
    assert (lost.refresh().state, lost.cause) == ("dead_lettered", "attempts")
    assert (doomed.refresh().state, doomed.cause) == ("cancelled", "parent")
    (told,) = Job.objects.filter(wire_name="field.bury")
    until(lambda: Job.objects.get(pk=told.pk).state == "succeeded")
    assert Job.objects.get(pk=told.pk).output == f'"{lost.id}"'
    starts = [entry.job_id for entry in ledger.of("start")]
    assert sorted(starts) == sorted([lost.id, child.id])
