"""The fence: one narrow row while a job is leased."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Lease(models.Model):
    """A pump's time-bounded claim on one job for one attempt.

    Deleted by exactly one of report, recover, expire and dispose. ``retry`` holds the numbers
    that govern the attempt, so that any node can dispose of it. No foreign key constraint: its
    trigger costs more than the statements; the store keeps the reference true.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    job = models.OneToOneField(
        "backwave.Job", on_delete=models.DO_NOTHING, db_constraint=False, related_name="lease"
    )
    queue = models.CharField(max_length=100)
    limit_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL is "no key"
    pump_id = models.UUIDField(_("pump"))
    run = models.IntegerField()
    acquired_at = models.DateTimeField(_("acquired"))
    expires_at = models.DateTimeField(_("expires"))
    cancel_requested = models.BooleanField(_("cancellation requested"), default=False)
    retry = models.CharField(max_length=120)
    progress_done = models.BigIntegerField(null=True)
    progress_total = models.BigIntegerField(null=True)
    progress_message = models.CharField(max_length=200, null=True)  # noqa: DJ001

    class Meta:
        default_permissions = ("view",)
        verbose_name = _("lease")
        verbose_name_plural = _("leases")
        indexes = [
            models.Index(name="backwave_lease_queue", fields=["queue"]),
            models.Index(
                name="backwave_lease_limit_key",
                fields=["limit_key"],
                condition=models.Q(limit_key__isnull=False),
            ),
            models.Index(name="backwave_lease_expires", fields=["expires_at"]),
            models.Index(name="backwave_lease_pump", fields=["pump_id"]),
        ]

    def __str__(self) -> str:
        return f"lease {self.pk}"
