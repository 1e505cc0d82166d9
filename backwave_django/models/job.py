"""The wide row of a job. Heartbeats never touch it; a lease does that."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from backwave_django.models.choices import STATE_CHOICES, STATES, TERMINAL_STATES


class Job(models.Model):
    """One piece of work and where it stands.

    ``priority`` is stored inverted (-100 is most urgent), so that one ascending index serves the
    claim order. ``unique_live`` repeats ``unique_key`` while the job is not terminal: a nullable
    unique column keeps live keys unique on every database. ``payload`` and ``output`` are JSON
    texts of the payload codec.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    wire_name = models.CharField(_("type"), max_length=200)
    queue = models.CharField(_("queue"), max_length=100)
    state = models.CharField(_("state"), max_length=16, choices=STATE_CHOICES)
    priority = models.SmallIntegerField(_("priority (stored)"), default=0)
    due_at = models.DateTimeField(_("due"))
    deadline = models.DateTimeField(_("deadline"), null=True)
    run = models.IntegerField(_("runs"), default=0, help_text=_("How often it was claimed."))
    spent = models.IntegerField(_("attempts spent"), default=0)
    max_attempts = models.IntegerField(
        _("attempts allowed"), null=True, help_text=_("As of the last claim.")
    )
    payload = models.TextField(_("payload"))
    payload_version = models.IntegerField(_("payload version"), default=1)
    output = models.TextField(_("output"), null=True)  # noqa: DJ001 - NULL is "returned nothing yet"
    tags = models.JSONField(_("tags"), default=dict)
    unique_key = models.CharField(_("unique key"), max_length=255, null=True)  # noqa: DJ001
    unique_live = models.CharField(max_length=255, null=True)  # noqa: DJ001
    limit_key = models.CharField(_("limit key"), max_length=200, null=True)  # noqa: DJ001
    unroutable_since = models.DateTimeField(_("unroutable since"), null=True)
    cause = models.CharField(_("cause"), max_length=16, null=True)  # noqa: DJ001
    pending_parents = models.IntegerField(_("parents waited for"), default=0)
    schedule = models.CharField(_("schedule"), max_length=200, null=True)  # noqa: DJ001
    scheduled_for = models.DateTimeField(_("nominal time"), null=True)
    workflow = models.UUIDField(_("workflow"), null=True)
    trace = models.CharField(_("trace"), max_length=255, null=True)  # noqa: DJ001
    created_at = models.DateTimeField(_("enqueued"))
    terminal_at = models.DateTimeField(_("ended"), null=True)

    class Meta:
        default_permissions = ("view",)
        permissions = [
            ("view_job_sensitive", "Can view sensitive job data"),
            ("requeue_job", "Can requeue jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("run_job_now", "Can run jobs now"),
        ]
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        constraints = [
            models.CheckConstraint(name="backwave_job_state", condition=Q(state__in=STATES)),
            models.CheckConstraint(
                name="backwave_job_terminal",
                condition=Q(
                    state__in=TERMINAL_STATES, terminal_at__isnull=False, cause__isnull=False
                )
                | (~Q(state__in=TERMINAL_STATES) & Q(terminal_at__isnull=True, cause__isnull=True)),
            ),
            models.CheckConstraint(
                name="backwave_job_counters",
                condition=Q(run__gte=0, spent__gte=0, pending_parents__gte=0),
            ),
            models.CheckConstraint(
                name="backwave_job_unique_live",
                condition=Q(unique_live__isnull=True) | Q(unique_live=F("unique_key")),
            ),
            # Most jobs have neither, and each index that lists them costs every insert and update.
            models.UniqueConstraint(
                name="backwave_job_live_key",
                fields=["unique_live"],
                condition=Q(unique_live__isnull=False),
            ),
            models.UniqueConstraint(
                name="backwave_job_one_tick",
                fields=["schedule", "scheduled_for"],
                condition=Q(schedule__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                name="backwave_job_claim",
                fields=["queue", "priority", "due_at", "id"],
                condition=Q(state="scheduled", limit_key__isnull=True),
            ),
            models.Index(
                name="backwave_job_claim_keyed",
                fields=["queue", "limit_key", "priority", "due_at", "id"],
                condition=Q(state="scheduled", limit_key__isnull=False),
            ),
            models.Index(
                name="backwave_job_deadline",
                fields=["deadline"],
                condition=Q(state="scheduled", deadline__isnull=False),
            ),
            models.Index(name="backwave_job_leased", fields=["id"], condition=Q(state="leased")),
            models.Index(
                name="backwave_job_terminal",
                fields=["state", "terminal_at", "id"],
                condition=Q(state__in=TERMINAL_STATES),
            ),
            models.Index(
                name="backwave_job_unique",
                fields=["unique_key"],
                condition=Q(unique_key__isnull=False),
            ),
            models.Index(
                name="backwave_job_workflow",
                fields=["workflow"],
                condition=Q(workflow__isnull=False),
            ),
            models.Index(name="backwave_job_type", fields=["wire_name", "id"]),
            models.Index(
                name="backwave_job_schedule_live",
                fields=["schedule"],
                condition=Q(schedule__isnull=False, state__in=["scheduled", "awaiting", "leased"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.wire_name} {self.pk}"
