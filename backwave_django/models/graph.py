"""Edges between jobs, the queue of parents whose edges wait, and named graphs."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Dependency(models.Model):
    """``child`` waits until ``parent`` is terminal; a settled edge waits no more."""

    id = models.BigAutoField(primary_key=True)
    parent = models.ForeignKey(
        "backwave.Job",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="child_edges",
    )
    child = models.ForeignKey(
        "backwave.Job",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="parent_edges",
    )
    mode = models.CharField(
        max_length=16, choices=[("on_success", _("on success")), ("on_any", _("on any end"))]
    )
    settled = models.BooleanField(default=False)

    class Meta:
        default_permissions = ("view",)
        verbose_name = _("dependency")
        verbose_name_plural = _("dependencies")
        constraints = [
            models.UniqueConstraint(name="backwave_dependency_edge", fields=["parent", "child"]),
        ]
        indexes = [
            models.Index(name="backwave_dependency_child", fields=["child"]),
            models.Index(
                name="backwave_dependency_open",
                fields=["parent", "child"],
                condition=models.Q(settled=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.parent_id} -> {self.child_id}"


class SettleQueue(models.Model):
    """A parent whose edges wait for the sweep: too many, locked, or linked while it ended."""

    id = models.BigAutoField(primary_key=True)
    parent_id = models.UUIDField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(name="backwave_settle_parent", fields=["parent_id"])]

    def __str__(self) -> str:
        return str(self.parent_id)


class Workflow(models.Model):
    """The name and id of a set of jobs tied by dependencies; its status is derived.

    ``steps`` maps the names of steps to the ids of their jobs; ``size`` is how many jobs the
    workflow began with.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    name = models.CharField(_("name"), max_length=200)
    created_at = models.DateTimeField(_("created"))
    steps = models.JSONField(null=True)
    size = models.IntegerField(_("jobs"), null=True)

    class Meta:
        default_permissions = ("view",)
        permissions = [
            ("cancel_workflow", "Can cancel workflows"),
            ("retry_workflow", "Can retry workflows in place"),
            ("restart_workflow", "Can restart workflows"),
        ]
        verbose_name = _("workflow")
        verbose_name_plural = _("workflows")

    def __str__(self) -> str:
        return self.name
