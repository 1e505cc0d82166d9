"""The jobs that a job waited for, directly or through others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import connections
from django.db.models.expressions import RawSQL

from backwave_django.conf import get_config
from backwave_django.models import Dependency, Job, Workflow
from backwave_django.monitor.records import record_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from backwave_django.jobs.ports import JobRecord

_UPWARDS: Final = """
WITH RECURSIVE up(id) AS (
  SELECT d.parent_id FROM {edges} d WHERE d.child_id = %s
  UNION SELECT d.parent_id FROM {edges} d JOIN up ON d.child_id = up.id)
SELECT up.id FROM up
"""
#: Who wants the only ancestor of a type must hear that there is another.
_MOST: Final = 2


class DatabaseKin:
    """Reads edges and jobs on Django's connection of the calling thread."""

    def parents(self, job_id: UUID) -> tuple[JobRecord, ...]:
        """Return the jobs that this one waited for, in the order in which it named them."""
        edges = Dependency.objects.using(get_config().database).filter(child_id=job_id)
        ids = list(edges.order_by("id").values_list("parent_id", flat=True))
        found = {job.pk: job for job in _jobs().filter(pk__in=ids)}
        return tuple(record_of(found[parent]) for parent in ids if parent in found)

    def ancestor(self, job_id: UUID, wanted: UUID) -> JobRecord | None:
        """Return the job ``wanted``, if this one waited for it, directly or through others."""
        job = _ancestors(job_id).filter(pk=wanted).first()
        return None if job is None else record_of(job)

    def ancestors_of(self, job_id: UUID, wire_names: Sequence[str]) -> tuple[JobRecord, ...]:
        """Return the ancestors of a type; at most two, for who wants the only one."""
        found = _ancestors(job_id).filter(wire_name__in=wire_names)[:_MOST]
        return tuple(map(record_of, found))

    def step(self, workflow_id: UUID, name: str) -> UUID | None:
        """Return the job of a named step of a workflow."""
        flows = Workflow.objects.using(get_config().database).filter(pk=workflow_id)
        steps = flows.values_list("steps", flat=True).first()
        found = (steps or {}).get(name)
        return None if found is None else UUID(found)


def _jobs() -> QuerySet[Job]:
    return Job.objects.using(get_config().database).defer("payload")


def _ancestors(job_id: UUID) -> QuerySet[Job]:
    here = connections[get_config().database]
    edges = here.ops.quote_name(Dependency._meta.db_table)  # noqa: SLF001 - the documented way to a table's name
    key = Job._meta.get_field("id").get_db_prep_value(job_id, here)  # noqa: SLF001 - as above
    upwards = RawSQL(_UPWARDS.format(edges=edges), [key])  # noqa: S611 - no text but a table's name
    return _jobs().filter(pk__in=upwards)
