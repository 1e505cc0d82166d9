"""The tables. Only the store, operations, the monitor and the admin may touch them."""

from backwave_django.models.action import OperatorAction
from backwave_django.models.graph import Dependency, SettleQueue, Workflow
from backwave_django.models.job import Job
from backwave_django.models.lease import Lease
from backwave_django.models.outcome import Outcome
from backwave_django.models.pump import Pump
from backwave_django.models.queue import Limit, Queue
from backwave_django.models.schedule import Schedule

__all__ = [
    "Dependency",
    "Job",
    "Lease",
    "Limit",
    "OperatorAction",
    "Outcome",
    "Pump",
    "Queue",
    "Schedule",
    "SettleQueue",
    "Workflow",
]
