"""Templates that mint jobs as time passes."""

from __future__ import annotations

from datetime import UTC, datetime

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from backwave_django.core.errors import InvalidOption
from backwave_django.core.schedules import Rule

_ANY_INSTANT = datetime(2024, 1, 1, tzinfo=UTC)


class Schedule(models.Model):
    """A cron or interval template.

    ``cursor`` is the instant up to which every tick was decided about, ``next_at`` the tick that
    comes after it. ``priority`` is as a caller writes it, high first.
    """

    name = models.CharField(_("name"), max_length=200, primary_key=True)
    cron = models.CharField(_("cron expression"), max_length=200, null=True)  # noqa: DJ001
    every_seconds = models.FloatField(_("interval in seconds"), null=True)
    timezone = models.CharField(_("time zone"), max_length=64, default="UTC")
    wire_name = models.CharField(_("type"), max_length=200)
    queue = models.CharField(_("queue"), max_length=100)
    priority = models.SmallIntegerField(default=0)
    payload = models.TextField(_("payload"))
    payload_version = models.IntegerField(default=1)
    tags = models.JSONField(_("tags"), null=True, blank=True)
    limit_key = models.CharField(_("limit key"), max_length=200, null=True, blank=True)  # noqa: DJ001
    catch_up = models.CharField(
        _("missed ticks"),
        max_length=16,
        default="skip",
        choices=[("skip", _("skip them")), ("coalesce", _("make up for them with one job"))],
    )
    no_overlap = models.BooleanField(_("no overlap"), default=False)
    enabled = models.BooleanField(_("enabled"), default=True)
    owner = models.CharField(max_length=100, null=True)  # noqa: DJ001 - NULL: made in the admin
    release = models.BigIntegerField(null=True)
    retired_at = models.DateTimeField(null=True)
    cursor = models.DateTimeField(null=True)
    next_at = models.DateTimeField(_("next tick"), null=True)
    skipped = models.IntegerField(_("skipped ticks"), default=0)
    last_skipped_at = models.DateTimeField(null=True)
    last_skip_reason = models.CharField(max_length=16, null=True)  # noqa: DJ001
    problem = models.TextField(_("problem"), default="", blank=True)
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view", "add", "change", "delete")
        permissions = [
            ("pause_schedule", "Can pause and resume schedules"),
            ("trigger_schedule", "Can run schedules now"),
        ]
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        constraints = [
            models.CheckConstraint(
                name="backwave_schedule_rule",
                condition=Q(cron__isnull=False, every_seconds__isnull=True)
                | Q(cron__isnull=True, every_seconds__gt=0),
            ),
        ]
        indexes = [
            models.Index(
                name="backwave_schedule_next", fields=["next_at"], condition=Q(enabled=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse a rule that cannot work, by the name of its field. For forms: no ``save`` asks."""
        try:
            Rule(
                cron=self.cron, every_seconds=self.every_seconds, timezone=self.timezone
            ).timetable(anchor=_ANY_INSTANT)
        except InvalidOption as error:
            named = {"every": "every_seconds"}.get(error.option, error.option)
            raise ValidationError({named: error.hint}) from None
