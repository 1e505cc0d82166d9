"""What is going on: counts, timelines, and why a job does not run. Reads only.

Nothing here looks at more rows than it shows: counts stop at ``CAP``, lists have a limit, and no
statement walks the history. Ages of heartbeats and leases are measured by the database's clock,
``database_clock``, because the nodes' clocks differ.
"""

from backwave_django.jobs.ports import Reason
from backwave_django.monitor.alerts import Alert, alerts
from backwave_django.monitor.causes import cause_label, outcome_label
from backwave_django.monitor.clock import database_clock, moment, span
from backwave_django.monitor.counts import CAP, Capped, LaneCounts, job_counts, lane_counts
from backwave_django.monitor.details import Attempt, JobDetail, Relative, read_job
from backwave_django.monitor.doctor import examine
from backwave_django.monitor.limits import (
    KeyView,
    bound_texts,
    key_views,
    queue_rate_text,
    window_text,
)
from backwave_django.monitor.pumps import Pulse, PumpView, pump_of, pump_views
from backwave_django.monitor.queues import (
    QueueView,
    known_queues,
    known_wire_names,
    queue_view,
    queue_views,
)
from backwave_django.monitor.schedules import (
    ScheduleView,
    Standing,
    next_runs,
    past_runs,
    schedule_view,
    schedule_views,
)
from backwave_django.monitor.why import paused_text, why
from backwave_django.monitor.workflows import (
    Gate,
    Member,
    WorkflowDetail,
    member_counts,
    read_workflow,
    status_label,
    workflow_detail,
)

__all__ = [
    "CAP",
    "Alert",
    "Attempt",
    "Capped",
    "Gate",
    "JobDetail",
    "KeyView",
    "LaneCounts",
    "Member",
    "Pulse",
    "PumpView",
    "QueueView",
    "Reason",
    "Relative",
    "ScheduleView",
    "Standing",
    "WorkflowDetail",
    "alerts",
    "bound_texts",
    "cause_label",
    "database_clock",
    "examine",
    "job_counts",
    "key_views",
    "known_queues",
    "known_wire_names",
    "lane_counts",
    "member_counts",
    "moment",
    "next_runs",
    "outcome_label",
    "past_runs",
    "paused_text",
    "pump_of",
    "pump_views",
    "queue_rate_text",
    "queue_view",
    "queue_views",
    "read_job",
    "read_workflow",
    "schedule_view",
    "schedule_views",
    "span",
    "status_label",
    "why",
    "window_text",
    "workflow_detail",
]
