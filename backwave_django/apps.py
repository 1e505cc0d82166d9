"""The Django app: where the rooms are wired together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from backwave_django.conf import get_config
from backwave_django.jobs import ports
from backwave_django.jobs.registry import registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from backwave_django.core.contract import ActionAnswer, Actor
    from backwave_django.core.jobs import Enqueued, NewJob


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


def _ports() -> ports.Ports:
    """Connect what jobs ask for with the rooms that do it. Those import the models."""
    from backwave_django.monitor.caps import unnoted_limits  # noqa: PLC0415 - see above
    from backwave_django.monitor.clock import database_clock  # noqa: PLC0415 - see above
    from backwave_django.monitor.records import read_record  # noqa: PLC0415 - see above
    from backwave_django.operations import cancel  # noqa: PLC0415 - see above
    from backwave_django.store import default_store  # noqa: PLC0415 - see above

    class Intake:
        """New jobs go to the store, on Django's connection."""

        def enqueue(self, jobs: Sequence[NewJob]) -> tuple[Enqueued, ...]:
            return default_store().enqueue(jobs)

        def declare_limits(self, limits: Mapping[str, int]) -> None:
            # Looking first: an upsert would lock the key's row until the caller commits.
            unnoted = unnoted_limits(limits, using=get_config().database)
            if unnoted:
                default_store().declare_limits(unnoted)

    class Desk:
        """Jobs are read by the monitor and acted upon by the operator actions."""

        def read(self, job_id: UUID) -> ports.JobRecord | None:
            return read_record(job_id, using=get_config().database)

        def cancel(self, job_id: UUID, *, actor: Actor) -> ActionAnswer:
            return cancel([job_id], actor=actor, now=database_clock())[0]

    return ports.Ports(intake=Intake(), desk=Desk(), now=timezone.now)
