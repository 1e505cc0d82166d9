"""The admin: the console of the people who run this in production.

``register(site)`` puts the pages on an ``AdminSite``; importing this puts them on Django's own.
"""

from __future__ import annotations

from django.contrib import admin

from backwave_django.admin.jobs import JobAdmin
from backwave_django.admin.limits import LimitAdmin
from backwave_django.admin.log import OperatorActionAdmin
from backwave_django.admin.pumps import PumpAdmin
from backwave_django.admin.queues import QueueAdmin
from backwave_django.admin.schedules import ScheduleAdmin
from backwave_django.admin.workflows import WorkflowAdmin
from backwave_django.models import Job, Limit, OperatorAction, Pump, Queue, Schedule, Workflow

__all__ = [
    "JobAdmin",
    "LimitAdmin",
    "OperatorActionAdmin",
    "PumpAdmin",
    "QueueAdmin",
    "ScheduleAdmin",
    "WorkflowAdmin",
    "register",
]


def register(site: admin.AdminSite) -> None:
    """Put the pages on ``site``."""
    site.register(Job, JobAdmin)
    site.register(Queue, QueueAdmin)
    site.register(Limit, LimitAdmin)
    site.register(Schedule, ScheduleAdmin)
    site.register(Workflow, WorkflowAdmin)
    site.register(Pump, PumpAdmin)
    site.register(OperatorAction, OperatorActionAdmin)


register(admin.site)
