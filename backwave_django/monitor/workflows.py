"""Workflows as they stand: their members by state, from which their status is derived."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from backwave_django.conf import get_config
from backwave_django.core.states import JobState
from backwave_django.core.workflows import WorkflowStatus, status_of
from backwave_django.jobs.ports import WorkflowRecord
from backwave_django.models import Dependency, Job, OperatorAction, Workflow
from backwave_django.monitor.details import MOST_ACTIONS, SENSITIVE_JOB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django_stubs_ext import StrPromise

#: A workflow of a hundred thousand jobs still opens.
MOST_MEMBERS: Final = 200
MOST_GATES: Final = 1_000

_LABELS: Final[dict[WorkflowStatus, StrPromise]] = {
    WorkflowStatus.RUNNING: gettext_lazy("running"),
    WorkflowStatus.FAILING: gettext_lazy("failing"),
    WorkflowStatus.SUCCEEDED: gettext_lazy("succeeded"),
    WorkflowStatus.FAILED: gettext_lazy("failed"),
    WorkflowStatus.CANCELLED: gettext_lazy("cancelled"),
}


def read_workflow(workflow_id: UUID) -> WorkflowRecord | None:
    """Return the workflow as it stands, or ``None`` when there is none."""
    row = Workflow.objects.using(get_config().database).filter(pk=workflow_id).first()
    if row is None:
        return None
    return WorkflowRecord(
        id=row.pk,
        name=row.name,
        created_at=row.created_at,
        counts=member_counts([row.pk])[row.pk],
        steps={name: UUID(job_id) for name, job_id in (row.steps or {}).items()},
    )


def member_counts(workflow_ids: Iterable[UUID]) -> Mapping[UUID, Mapping[JobState, int]]:
    """Return how many members of each workflow are in each state, in the order of ``JobState``.

    States without any are left out; a workflow without members has an empty mapping.
    """
    found: defaultdict[UUID, dict[JobState, int]] = defaultdict(dict)
    rows = (
        Job.objects.using(get_config().database)
        .filter(workflow__in=list(workflow_ids))
        .values_list("workflow", "state")
        .annotate(count=Count("id"))
    )
    order = {state.value: place for place, state in enumerate(JobState)}
    for workflow_id, state, count in sorted(rows, key=lambda row: order[row[1]]):
        found[workflow_id][JobState(state)] = count
    return found


class Gate(NamedTuple):
    """A parent that a member still waits for; ``wire_name`` is empty when it is gone."""

    id: UUID
    wire_name: str


class Member(NamedTuple):
    """One job of a workflow, the name of its step, and what it still waits for."""

    job: Job
    step: str
    gates: tuple[Gate, ...]


class WorkflowDetail(NamedTuple):
    """One workflow with its first members, in the order in which they were added."""

    record: WorkflowRecord
    status: WorkflowStatus | None
    members: tuple[Member, ...]
    actions: tuple[OperatorAction, ...]

    @property
    def unlisted(self) -> int:
        """How many members are not among ``members``."""
        return sum(self.record.counts.values()) - len(self.members)


def workflow_detail(workflow_id: UUID) -> WorkflowDetail | None:
    """Return the workflow with what a page of it shows, or ``None`` when there is none."""
    record = read_workflow(workflow_id)
    if record is None:
        return None
    alias = get_config().database
    jobs = Job.objects.using(alias).filter(workflow=workflow_id).defer(*SENSITIVE_JOB)
    listed = list(jobs.order_by("id")[:MOST_MEMBERS])
    gates = _gates([job.pk for job in listed if job.pending_parents])
    steps = {job_id: name for name, job_id in record.steps.items()}
    log = OperatorAction.objects.using(alias).filter(
        target_kind="workflow", target=str(workflow_id)
    )
    return WorkflowDetail(
        record=record,
        status=status_of(record.counts),
        members=tuple(
            Member(job, steps.get(job.pk, ""), tuple(gates.get(job.pk, ()))) for job in listed
        ),
        actions=tuple(log.order_by("-id")[:MOST_ACTIONS]),
    )


def _gates(children: Iterable[UUID]) -> Mapping[UUID, list[Gate]]:
    """Return the parents that each job still waits for."""
    alias = get_config().database
    edges = Dependency.objects.using(alias).filter(child_id__in=list(children), settled=False)
    pairs = list(edges.order_by("id").values_list("child_id", "parent_id")[:MOST_GATES])
    parents = Job.objects.using(alias).filter(pk__in={parent for _child, parent in pairs})
    names = dict(parents.values_list("pk", "wire_name"))
    found: defaultdict[UUID, list[Gate]] = defaultdict(list)
    for child, parent in pairs:
        found[child].append(Gate(parent, names.get(parent, "")))
    return found


def status_label(status: WorkflowStatus | None) -> str:
    """Return the status as a person reads it."""
    return str(_LABELS[status]) if status is not None else _("empty")
