"""The Django app: where the rooms are wired together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from backwave_django.conf import get_config
from backwave_django.jobs import ports
from backwave_django.jobs.registry import registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from backwave_django.core.contract import ActionAnswer, Actor, WorkflowAnswer
    from backwave_django.core.jobs import Enqueued, NewJob
    from backwave_django.core.limits import Cap
    from backwave_django.core.workflows import NewWorkflow, RetryScope


class BackwaveConfig(AppConfig):
    """Background jobs in the database of the project."""

    name = "backwave_django"
    label = "backwave"
    verbose_name = _("Background jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, wire the rooms, and import the ``jobs`` module of every app.

        An app without one is passed over. What such a module raises passes through: a process
        that does not know its jobs must not start.
        """
        from backwave_django import checks  # noqa: F401, PLC0415 - importing it registers them

        ports.wire(_ports())
        autodiscover_modules("jobs")
        # Names that could not be derived while Django started: what is wrong with them shows now.
        registry.all()


# What follows connects what jobs ask for with the rooms that do it. Those import the models, so
# nothing of them may be imported before the apps are ready.


def _ports() -> ports.Ports:
    from backwave_django.monitor.clock import database_clock  # noqa: PLC0415 - see above
    from backwave_django.monitor.kin import DatabaseKin  # noqa: PLC0415 - see above

    return ports.Ports(
        intake=_intake(), desk=_desk(), kin=DatabaseKin(), flows=_flows(), now=database_clock
    )


def _intake() -> ports.Intake:
    from backwave_django.monitor.caps import unnoted_limits  # noqa: PLC0415 - see above
    from backwave_django.store import default_store  # noqa: PLC0415 - see above

    class Intake:
        """New jobs go to the store, on Django's connection."""

        def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
            return default_store().enqueue(jobs)

        def start_workflow(
            self, workflow: NewWorkflow, jobs: Sequence[NewJob]
        ) -> tuple[Enqueued, ...]:
            return default_store().start_workflow(workflow, jobs)

        def declare_limits(self, limits: Mapping[str, Cap]) -> None:
            # Looking first: an upsert would lock the key's row until the caller commits.
            unnoted = unnoted_limits(limits, using=get_config().database)
            if unnoted:
                default_store().declare_limits(unnoted)

    return Intake()


def _desk() -> ports.Desk:
    from backwave_django.monitor.clock import database_clock  # noqa: PLC0415 - see above
    from backwave_django.monitor.records import read_record  # noqa: PLC0415 - see above
    from backwave_django.monitor.why import explain  # noqa: PLC0415 - see above
    from backwave_django.operations import cancel  # noqa: PLC0415 - see above

    class Desk:
        """Jobs are read by the monitor and acted upon by the operator actions."""

        def read(self, job_id: UUID) -> ports.JobRecord | None:
            return read_record(job_id, using=get_config().database)

        def explain(self, job_id: UUID) -> tuple[ports.Reason, ...]:
            return explain(job_id, clock=database_clock())

        def cancel(self, job_id: UUID, *, actor: Actor) -> ActionAnswer:
            return cancel([job_id], actor=actor, now=database_clock())[0]

    return Desk()


def _flows() -> ports.Flows:
    from backwave_django import operations  # noqa: PLC0415 - see above
    from backwave_django.monitor.clock import database_clock  # noqa: PLC0415 - see above
    from backwave_django.monitor.workflows import read_workflow  # noqa: PLC0415 - see above

    class Flows:
        """Workflows are read by the monitor and acted upon by the operator actions."""

        def read(self, workflow_id: UUID) -> ports.WorkflowRecord | None:
            return read_workflow(workflow_id)

        def cancel(self, workflow_id: UUID, *, actor: Actor) -> WorkflowAnswer:
            return operations.cancel_workflow(workflow_id, actor=actor, now=database_clock())

        def retry(self, workflow_id: UUID, *, scope: RetryScope, actor: Actor) -> WorkflowAnswer:
            return operations.retry_workflow(
                workflow_id, scope=scope, actor=actor, now=database_clock()
            )

        def restart(self, workflow_id: UUID, *, actor: Actor) -> WorkflowAnswer:
            return operations.restart_workflow(workflow_id, actor=actor, now=database_clock())

    return Flows()
