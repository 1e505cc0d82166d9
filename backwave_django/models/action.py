"""The audit of what people asked for."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class OperatorAction(models.Model):
    """One operator action, written in the transaction that carried it out. Append-only."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(_("when"))
    actor_name = models.CharField(_("who"), max_length=150)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        null=True,
        on_delete=models.SET_NULL,
        db_constraint=False,
        related_name="+",
    )
    source = models.CharField(_("from"), max_length=16)
    action = models.CharField(_("action"), max_length=32)
    target_kind = models.CharField(max_length=16)
    target = models.CharField(_("target"), max_length=200)
    reason = models.TextField(_("reason"), default="", blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    result = models.CharField(_("result"), max_length=16)

    class Meta:
        default_permissions = ("view",)
        verbose_name = _("operator action")
        verbose_name_plural = _("operator log")
        indexes = [
            models.Index(name="backwave_action_target", fields=["target_kind", "target", "id"]),
            models.Index(name="backwave_action_at", fields=["at"]),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.action} {self.target}"
