"""What operators decided about queues and limit keys. A row is made when it is first needed."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Queue(models.Model):
    """A queue's switches. A queue without a row is not paused and has no limit."""

    name = models.CharField(_("name"), max_length=100, primary_key=True)
    paused = models.BooleanField(_("paused"), default=False)
    paused_at = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(_("paused until"), null=True)
    paused_by = models.CharField(_("paused by"), max_length=150, null=True)  # noqa: DJ001
    pause_reason = models.TextField(_("reason"), null=True)  # noqa: DJ001
    limit = models.IntegerField(_("limit"), null=True)

    class Meta:
        default_permissions = ("view",)
        permissions = [
            ("pause_queue", "Can pause and resume queues"),
            ("change_queue_limit", "Can change queue limits"),
        ]
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        constraints = [
            models.CheckConstraint(
                name="backwave_queue_limit", condition=Q(limit__isnull=True) | Q(limit__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Limit(models.Model):
    """A cap on the jobs leased at once under one limit key."""

    key = models.CharField(_("key"), max_length=200, primary_key=True)
    limit = models.IntegerField(_("limit"))
    source = models.CharField(
        _("set by"), max_length=16, choices=[("code", _("code")), ("operator", _("operator"))]
    )

    class Meta:
        default_permissions = ("view",)
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        constraints = [
            models.CheckConstraint(name="backwave_limit_positive", condition=Q(limit__gte=0)),
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.limit}"
