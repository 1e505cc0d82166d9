"""Durable background jobs for Django, in the database you already have.

``import backwave_django as backwave``: everything that a job's author uses is here. Importing
this package imports no models.
"""

from backwave_django.core.contract import ActionAnswer, ActionResult, Actor, WorkflowAnswer
from backwave_django.core.errors import (
    BackwaveError,
    Cancelled,
    ConfigurationError,
    DuplicateWireName,
    GiveUp,
    InsideTransaction,
    InvalidDeclaration,
    InvalidOption,
    JobGone,
    JobTimedOut,
    NotAnAncestor,
    PayloadTooLarge,
    RetryAfter,
    Snooze,
    StoreError,
    StoreUnavailable,
    UnknownJobType,
    UnknownParent,
    UnserializableValue,
    UsageError,
    WaitTimeout,
    WorkflowClosed,
    WorkflowGone,
    WrongArguments,
)
from backwave_django.core.observing import OutcomeEvent
from backwave_django.core.retries import Retry
from backwave_django.core.states import Cause, JobState
from backwave_django.core.workflows import RetryScope, WorkflowStatus
from backwave_django.jobs.by_name import aenqueue, enqueue
from backwave_django.jobs.context import JobContext, current
from backwave_django.jobs.decorators import job
from backwave_django.jobs.enqueue import BoundOptions
from backwave_django.jobs.flow import Workflow, workflow
from backwave_django.jobs.graphs import Graph, chain, parallel
from backwave_django.jobs.handle import JobHandle
from backwave_django.jobs.injection import context, service
from backwave_django.jobs.job_type import JobType
from backwave_django.jobs.limits import Limit
from backwave_django.jobs.observers import on_outcome
from backwave_django.jobs.ports import JobRecord, Reason
from backwave_django.jobs.schedules import add_schedule, schedule
from backwave_django.jobs.signatures import Signature
from backwave_django.jobs.workflow_handle import WorkflowHandle

__all__ = [
    "ActionAnswer",
    "ActionResult",
    "Actor",
    "BackwaveError",
    "BoundOptions",
    "Cancelled",
    "Cause",
    "ConfigurationError",
    "DuplicateWireName",
    "GiveUp",
    "Graph",
    "InsideTransaction",
    "InvalidDeclaration",
    "InvalidOption",
    "JobContext",
    "JobGone",
    "JobHandle",
    "JobRecord",
    "JobState",
    "JobTimedOut",
    "JobType",
    "Limit",
    "NotAnAncestor",
    "OutcomeEvent",
    "PayloadTooLarge",
    "Reason",
    "Retry",
    "RetryAfter",
    "RetryScope",
    "Signature",
    "Snooze",
    "StoreError",
    "StoreUnavailable",
    "UnknownJobType",
    "UnknownParent",
    "UnserializableValue",
    "UsageError",
    "WaitTimeout",
    "Workflow",
    "WorkflowAnswer",
    "WorkflowClosed",
    "WorkflowGone",
    "WorkflowHandle",
    "WorkflowStatus",
    "WrongArguments",
    "add_schedule",
    "aenqueue",
    "chain",
    "context",
    "current",
    "enqueue",
    "job",
    "on_outcome",
    "parallel",
    "schedule",
    "service",
    "workflow",
]
