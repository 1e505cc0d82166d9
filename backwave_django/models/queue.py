"""What operators decided about queues and limit keys. A row is made when it is first needed."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Queue(models.Model):
    """A queue's switches. A queue without a row is not paused, has no limit and is always open.

    Rates and windows are kept as they are written; ``rate_full_at`` is when the rate's bucket of
    tokens is full again. ``limit``, ``rate`` and ``window`` are an operator's, each goes before
    what the settings say: ``limit_default``, ``rate_default`` and ``window_default``.
    """

    name = models.CharField(_("name"), max_length=100, primary_key=True)
    paused = models.BooleanField(_("paused"), default=False)
    paused_at = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(_("paused until"), null=True)
    paused_by = models.CharField(_("paused by"), max_length=150, null=True)  # noqa: DJ001
    pause_reason = models.TextField(_("reason"), null=True)  # noqa: DJ001
    limit = models.IntegerField(_("limit"), null=True)
    rate = models.CharField(_("rate"), max_length=40, null=True)  # noqa: DJ001
    rate_full_at = models.DateTimeField(null=True)
    window = models.CharField(_("window"), max_length=500, null=True)  # noqa: DJ001
    limit_default = models.IntegerField(null=True)
    rate_default = models.CharField(max_length=40, null=True)  # noqa: DJ001
    window_default = models.CharField(max_length=500, null=True)  # noqa: DJ001

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
            models.CheckConstraint(
                name="backwave_queue_limit_default",
                condition=Q(limit_default__isnull=True) | Q(limit_default__gte=0),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Limit(models.Model):
    """What limits the jobs under one limit key: how many are leased at once, how many start.

    A row of the source ``pattern`` holds an operator's numbers for all keys that begin as its
    own does before the ``*``. One of the source ``code`` without numbers was made for such a key,
    so that it has a row to lock and a bucket of tokens.
    """

    key = models.CharField(_("key"), max_length=200, primary_key=True)
    limit = models.IntegerField(_("limit"), null=True)
    rate = models.CharField(_("rate"), max_length=40, null=True)  # noqa: DJ001
    rate_full_at = models.DateTimeField(null=True)
    source = models.CharField(
        _("set by"),
        max_length=16,
        choices=[
            ("code", _("code")),
            ("operator", _("operator")),
            ("pattern", _("operator, for a pattern")),
        ],
    )

    class Meta:
        default_permissions = ("view",)
        permissions = [("set_limit", "Can change limits of keys")]
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        constraints = [
            models.CheckConstraint(name="backwave_limit_positive", condition=Q(limit__gte=0)),
        ]
        indexes = [
            models.Index(
                name="backwave_limit_pattern", fields=["key"], condition=Q(source="pattern")
            ),
        ]

    def __str__(self) -> str:
        return self.key
