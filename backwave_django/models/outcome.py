"""The append-only record of how attempts, and jobs without one, ended."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Outcome(models.Model):
    """The recorded end of one attempt. ``run`` is NULL when no lease was involved."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(
        "backwave.Job",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="outcomes",
    )
    run = models.IntegerField(null=True)
    attempt = models.IntegerField()
    kind = models.CharField(_("what happened"), max_length=16)
    state = models.CharField(_("state after"), max_length=16)
    cause = models.CharField(max_length=16, null=True)  # noqa: DJ001 - NULL is "not terminal"
    pump_id = models.UUIDField(_("pump"), null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField()
    error_class = models.CharField(max_length=255, null=True)  # noqa: DJ001
    message = models.TextField(null=True)  # noqa: DJ001
    traceback = models.TextField(null=True)  # noqa: DJ001
    fingerprint = models.CharField(max_length=32, null=True)  # noqa: DJ001
    log = models.TextField(null=True)  # noqa: DJ001
    next_due_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ("view",)
        verbose_name = _("outcome")
        verbose_name_plural = _("outcomes")
        constraints = [
            models.UniqueConstraint(name="backwave_outcome_run", fields=["job", "run"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} (attempt {self.attempt})"
