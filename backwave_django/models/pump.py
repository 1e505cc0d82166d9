"""The registry of pumps: who runs, where, and what it knows."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Pump(models.Model):
    """One pump, live or gone. ``seen_at``: its last beat, as it sees the database's clock."""

    id = models.UUIDField(primary_key=True, editable=False)
    group = models.CharField(_("group"), max_length=100)
    node = models.CharField(_("node"), max_length=200)
    hostname = models.CharField(max_length=255)
    pid = models.IntegerField(_("process"))
    boot_id = models.CharField(max_length=64)
    pid_namespace = models.CharField(max_length=64)
    version = models.CharField(_("version"), max_length=64)
    queues = models.JSONField(_("queues"), default=list)
    wire_names = models.JSONField(_("job types"), default=dict)
    pool_size = models.IntegerField(_("slots"))
    lease_seconds = models.FloatField()
    health = models.CharField(_("health"), max_length=16)
    problem = models.TextField(_("problem"), default="", blank=True)
    executing = models.IntegerField(_("executing"), default=0)
    abandoned = models.IntegerField(_("abandoned"), default=0)
    succeeded = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    memory_bytes = models.BigIntegerField(default=0)
    drain_requested = models.BooleanField(default=False)
    started_at = models.DateTimeField(_("started"))
    seen_at = models.DateTimeField(_("last heartbeat"))
    stopped_at = models.DateTimeField(_("stopped"), null=True)

    class Meta:
        default_permissions = ("view",)
        permissions = [("drain_pump", "Can drain pumps")]
        verbose_name = _("pump")
        verbose_name_plural = _("pumps")
        indexes = [models.Index(name="backwave_pump_seen", fields=["seen_at"])]

    def __str__(self) -> str:
        return f"{self.group} on {self.hostname}:{self.pid}"
